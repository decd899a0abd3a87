"""The saved acceptance report in a browser: a link opens the closed text that it leads to."""

import pytest

from explorer.acceptance.drafters import Drafter
from explorer.acceptance.measuring import Settings, report
from explorer.acceptance.prompts import Prompt
from explorer.acceptance.report_page import report_page
from tests.helpers import tiny_models


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    target, draft = tiny_models.make(), tiny_models.make(seed=1)
    drafters = [Drafter("other", "speculative", {"target": target, "draft": draft}, draft)]
    prompts = [Prompt("a cat"), Prompt("the")] * 6
    path = tmp_path_factory.mktemp("report") / "report.html"
    found = report(target, drafters, prompts, Settings(max_new_tokens=12))
    path.write_text(report_page(found, "python -m explorer acceptance"), "utf-8")
    return path


def test_a_link_opens_its_text_and_brings_the_place_into_the_middle(chromium, saved):
    """As somebody else was sent it, and by a press in the page. The page is loaded once: it brings Plotly."""
    page = chromium.new_page(viewport={"width": 1400, "height": 700})
    page.goto(f"{saved.as_uri()}#p1-d1-t1")
    middle = "p => { const box = document.getElementById(p).getBoundingClientRect(); return box.y; }"
    for count, place in enumerate(("p1-d1-t1", "p3"), 1):
        page.wait_for_function(f"document.querySelectorAll('details[open]').length === {count}")
        assert page.locator(f"details[open] #{place}").is_visible()
        assert 200 < page.evaluate(middle, place) < 450
        if count == 1:
            page.locator("a[href='#p3']").first.click()
    page.close()
