"""Prompt lookup in the page: what a round copies from is marked in the text, and the inspector says so."""

import pytest
from playwright.sync_api import expect

from tests.browser.test_inspector import inspect, lane, panel
from tests.browser.test_page import ready, trace

SPANS = """() => ['copied', 'matched'].map(span => decodingExplorer.lanes[0].chips.marksAt()
  .filter(m => m.span === span).map(m => m.node))"""


@pytest.mark.parametrize(("width", "height"), [(1400, 900), (390, 844)])
def test_the_copied_span_is_marked_while_its_round_is_shown(again, width, height):
    page = again(width, height)
    ready(page)
    setup = {
        "prompt": "the cat sat on the cat",
        "max_new_tokens": 16,
        "lanes": [{"strategy": "prompt_lookup"}],
    }
    page.evaluate("setup => decodingExplorer.app.applySetup(setup)", setup)
    page.evaluate("decodingExplorer.app.press('run')")
    page.wait_for_function("decodingExplorer.state === 'done'")
    steps, seen = trace(page, 0)["steps"], 0
    for number, step in list(enumerate(steps, 1))[:4]:
        page.evaluate("at => decodingExplorer.app.playback.seek(at, true)", number)
        links = [e for e in step["events"] if e["type"] == "Depend"]
        copied = {e["source"] for e in links if e["kind"] == "copy"}
        matched = {n for e in links if e["kind"] == "match" for n in (e["source"], e["target"])} - copied
        page.wait_for_function(f"decodingExplorer.lanes[0].shown === {number}")
        shown = page.evaluate(SPANS)
        assert [set(nodes) for nodes in shown] == [copied, matched]
        if not copied:
            continue
        seen += 1
        expect(lane(page, 1).locator(".chips-row .dp-copied")).to_have_count(len(copied))
        node = next(e["node"] for e in step["events"] if e["type"] == "Propose" and e["source"] == "prompt")
        inspect(page, 1, node)
        expect(panel(page)).to_contain_text("Drafted as a copy of")
        expect(panel(page)).to_contain_text("with which the text ended.")
        expect(panel(page)).to_contain_text("Lane 1, position ")
        expect(panel(page).get_by_role("button", name="Branch here", exact=True)).to_be_visible()
        page.keyboard.press("Escape")
    assert seen
