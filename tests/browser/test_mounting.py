"""Gradio's front end mounts under a stored run that is on screen already."""

import pytest

from tests.browser.test_page import ready


def test_nothing_moves_or_covers_the_stored_run_when_gradio_mounts(visit):
    page = visit()
    frame = """ready => {
      document.documentElement.classList.toggle("explorer-home-ready", ready);
      const chip = document.querySelector(".dp-chip");
      const column = document.querySelector("gradio-app main > .column");
      column.style.visibility = "visible";  // as Gradio's own loader says
      return [getComputedStyle(chip).borderLeftWidth, getComputedStyle(column).visibility];
    }"""
    page.wait_for_selector("html.explorer-home-ready")
    ready(page)
    assert page.evaluate(frame, False) == ["1px", "hidden"]
    assert page.evaluate(frame, True) == ["1px", "visible"]


@pytest.mark.parametrize("size", [(1400, 900), (320, 640)])
def test_the_row_of_tabs_looks_the_same_before_and_after(visit, size):
    """The first picture is looked at without Gradio's scripts, which mount the second."""
    page = visit(*size, lone=True)
    look = """row => [...document.querySelectorAll(row + " button")].filter(b => b.offsetWidth).map(b => {
      const { x, y, width, height } = b.getBoundingClientRect();
      return [b.textContent.trim(), getComputedStyle(b).font, x, y, width, height];
    })"""
    ready(page)
    after = page.evaluate(look, "#explorer-tabs > .tab-wrapper")
    page.route("**/assets/*.js", lambda route: route.abort())
    page.reload(wait_until="domcontentloaded")
    page.wait_for_function("window.decodingExplorer && decodingExplorer.drawn")
    before = page.evaluate(look, ".sections")
    assert len(before) == len(after) == 7
    for (name, font, *box), (name_after, font_after, *box_after) in zip(before, after, strict=True):
        assert (name, font) == (name_after, font_after)
        assert box == pytest.approx(box_after, abs=0.5), name


def test_a_page_at_rest_requests_no_frames(visit):
    """Gradio's loading screen used to count seconds in every frame for as long as the page was open."""
    page = visit(lone=True)
    page.add_init_script("""
      const request = window.requestAnimationFrame.bind(window);
      window.frames = 0;
      window.requestAnimationFrame = (draw) => (window.frames++, request(draw));
    """)
    page.reload(wait_until="domcontentloaded")
    page.wait_for_selector("html.explorer-home-ready")
    ready(page)
    for _ in range(20):
        before = page.evaluate("window.frames")
        page.wait_for_timeout(500)
        if page.evaluate("window.frames") == before > 0:
            break
    else:
        pytest.fail("frames are requested although nothing moves")
