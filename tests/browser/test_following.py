"""The table of requests that vLLM records, and a lane that grows with its file."""

from types import SimpleNamespace

import pytest
from playwright.sync_api import expect

from decoders.watch.vllm.folder import Folder
from tests.browser.conftest import visits
from tests.explorer.page.tabs.test_following import NEWEST, OLDER, write


@pytest.fixture
def recorded(chromium, tmp_path):
    """A page of an app that follows a folder, and the folder."""
    from explorer.page.layout import build
    from explorer.runs.scheduler import Runs
    from tests.helpers.launched import launched
    from tests.helpers.ready_loader import ready_loader

    write(tmp_path / OLDER, 4, "The text is over.")
    runs = Runs(lambda request: [])
    demo, launch = build(runs, ready_loader(), follow=Folder(tmp_path))
    address = launched(demo, launch)
    with visits(SimpleNamespace(address=address), chromium, []) as go:
        yield go(390, 844, own=True), tmp_path
    demo.close()
    runs.close()


def test_a_request_appears_is_followed_while_it_grows_and_ends(recorded):
    page, folder = recorded
    page.get_by_role("tab", name="Traces", exact=True).click()
    table = page.locator("#explorer-recorded")
    expect(table.get_by_test_id("cell-0-4")).to_have_text("ended: The text is over.")
    write(folder / NEWEST, 2)
    expect(table.get_by_test_id("cell-0-4")).to_have_text("running")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    table.get_by_test_id("cell-0-1").click()
    expect(page.get_by_text("Following request cmpl-2 from vLLM.")).to_be_visible()
    page.wait_for_function("decodingExplorer.lanes[0].rows.length === 2")
    assert page.evaluate("decodingExplorer.state") == "running"
    write(folder / NEWEST, 5, "The text is over.")
    page.wait_for_function("decodingExplorer.state === 'done' && decodingExplorer.lanes[0].rows.length === 5")
    page.get_by_role("tab", name="Traces", exact=True).click()
    page.get_by_role("button", name="Follow the newest").click()
    expect(page.get_by_text("Opened request cmpl-2 from vLLM.")).to_be_visible()
