"""The timeline in a page: a bar for each forward of the trace, and numbers that do not touch."""

import pytest
from playwright.sync_api import expect

from decoders.trace.events import Forward
from decoders.trace.trace import from_json
from tests.browser.test_page import press, trace
from tests.browser.window import resize

TICKS = """() => [...document.querySelectorAll('.dp-texts > g.dp-slides text')]
  .map(text => text.getBoundingClientRect()).map(box => [box.left, box.right]).sort((a, b) => a[0] - b[0])"""


def test_pearl_shows_when_its_forwards_ran(visit):
    """Decoded on a wide page, and drawn again on a phone."""
    page = visit()
    page.wait_for_function("decodingExplorer.app.models.state === 'ready'")
    lanes = [{"strategy": "pearl", "parameters": {}}]
    setup = {"prompt": "Once upon a time", "max_new_tokens": 20, "lanes": lanes}
    page.evaluate("setup => decodingExplorer.app.applySetup(setup)", setup)
    press(page, "Run")
    page.wait_for_function("decodingExplorer.state === 'done'", timeout=60_000)
    expect(page.get_by_role("tab", name="Timeline")).to_have_attribute("aria-selected", "true")
    found = from_json(trace(page, 0))
    forwards = [f for step in found.steps for f in step.of(Forward)]
    scene = "decodingExplorer.app.lanes[0].scene"
    marks = page.evaluate(f"{scene}.marksAt(99).filter(m => m.kind === 'cell' && m.fill !== 'hatched')")
    measured = [m for m in marks if m["id"].startswith("measured.")]
    assert len(measured) == len(forwards) == len(marks) - len(measured)
    unit = page.evaluate(f"{scene}.view.panels.lanes.x_unit")
    for mark, forward in zip(measured, forwards, strict=True):
        assert mark["w"] * unit == pytest.approx(forward.seconds * 1e3, abs=0.01 * unit)
    for width in (1400, 390):
        resize(page, width)
        page.wait_for_function(f"!{scene}.waiting")
        expect(page.locator(".dp-texts").first).to_contain_text("Measured")
        expect(page.locator(".dp-texts").first).to_contain_text("erived")
        ticks = page.evaluate(TICKS)
        assert len(ticks) > 1 and all(a[1] < b[0] for a, b in zip(ticks, ticks[1:], strict=False))
        assert page.evaluate("document.documentElement.scrollWidth") == width
