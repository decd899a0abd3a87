"""What browser tests share: a window that loads its page alone."""


def test_a_window_loads_its_page_and_none_of_chromiums_own(chromium):
    page = chromium.new_page()
    page.goto("data:text/html,alone")
    session = chromium.new_browser_cdp_session()
    targets = session.send("Target.getTargets", {"filter": [{}]})["targetInfos"]
    session.detach()
    page.close()
    assert not [target["url"] for target in targets if target["url"].startswith("chrome://")]
