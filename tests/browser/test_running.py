"""A run under way: how it is held and ended, a page that falls behind, and N from rejection to rejection."""

import re

from playwright.sync_api import expect

from tests.browser.test_page import press, run, start


def test_a_page_that_falls_behind_says_how_far_it_is_and_draws_all_in_the_end(visit, monkeypatch):
    monkeypatch.setattr("explorer.runs.scheduler.PIECE_OPS", 1)
    page = visit()
    page.evaluate("""() => {
      const status = decodingExplorer.app.bar.status, look = () => texts.push(status.textContent);
      window.texts = [];
      new MutationObserver(look).observe(status, { childList: true, characterData: true, subtree: true });
    }""")
    run(page, tokens=24)
    texts = page.evaluate("texts")
    assert any(re.search(r"This page is at step \d+ of \d+ and catches up", text) for text in texts), texts
    assert "catches up" not in page.evaluate("decodingExplorer.app.bar.status.textContent")
    assert page.evaluate("decodingExplorer.lanes.map(lane => lane.count)") == [24, 24]


def test_pause_and_stop(again, slow):
    page = again()
    start(page, "Once", 200)
    press(page, "Run")
    page.wait_for_function("decodingExplorer.lanes[0].count > 3")
    pace = re.compile(r"Decoding … 0\.\d+ s per step of a lane: at most \d+ s more\.|at most \d min more\.")
    expect(page.locator(".status-text")).to_contain_text(pace)
    press(page, "Pause")
    page.wait_for_function("decodingExplorer.state === 'paused'")
    press(page, "Stop")
    page.wait_for_function("decodingExplorer.state === 'stopped'")
    expect(page.get_by_text("Stopped. What was decoded stays.")).to_be_visible()
    assert page.evaluate("decodingExplorer.lanes[0].count") < 200
