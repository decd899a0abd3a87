"""What browser tests share: a page that is handed on is as good as new, and a window holds it alone."""

import pytest

from tests.browser.kept_pages import KeptPages

LEAVE = """async () => {
  localStorage.setItem('left', 'yes');
  sessionStorage.setItem('left', 'yes');
  document.cookie = 'left=yes';
  history.pushState(null, '', '#left');
  await new Promise((done) => (indexedDB.open('left').onsuccess = done));
}"""
LEFT = """async () => [
  ...Object.keys(localStorage),
  ...Object.keys(sessionStorage),
  ...document.cookie.split('; '),
  ...(await indexedDB.databases()).map((base) => base.name),
  (await navigator.permissions.query({ name: 'clipboard-read' })).state,
  ...['(prefers-color-scheme: dark)', '(prefers-reduced-motion)', 'print']
    .filter((query) => matchMedia(query).matches),
]"""


def test_a_page_that_is_handed_on_has_nothing_of_the_test_before(app, chromium):
    pages = KeptPages(chromium, app.address)
    page = pages.take(1400, 900, {})
    page.goto(app.address, wait_until="domcontentloaded")
    page.evaluate(LEAVE)
    page.context.grant_permissions(["clipboard-read"])
    page.emulate_media(media="print", color_scheme="dark", reduced_motion="reduce")
    before = page.evaluate(LEFT)
    assert before.count("left") == 3 and "left=yes" in before
    assert {"granted", "print", "(prefers-color-scheme: dark)", "(prefers-reduced-motion)"} < set(before)
    page.context.new_page()
    page.route("**/*", lambda route: route.abort())
    page.context.route("**/*", lambda route: route.abort())
    page.context.set_offline(True)
    pages.give_back(page, {})
    again = pages.take(390, 844, {})
    assert again is page and page.context.pages == [page]
    again.goto(app.address, wait_until="domcontentloaded")
    assert set(again.evaluate(LEFT)) & set(before) <= {"explorer-welcome"}
    assert again.evaluate("[innerWidth, innerHeight]") == [390, 844]
    for lasting in (again.add_init_script, again.context.add_init_script, again.clock.install):
        with pytest.raises(ValueError, match="ask for visit"):
            lasting()
    other = pages.take(390, 844, {"has_touch": True})
    assert other is not page
    other.context.close()
    page.context.close()


def test_a_window_loads_its_page_and_none_of_chromiums_own(chromium):
    page = chromium.new_page()
    page.goto("data:text/html,alone")
    session = chromium.new_browser_cdp_session()
    targets = session.send("Target.getTargets", {"filter": [{}]})["targetInfos"]
    session.detach()
    page.close()
    assert not [target["url"] for target in targets if target["url"].startswith("chrome://")]
