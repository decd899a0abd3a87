"""Gradio's front end mounts under a stored run that is on screen already."""

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
