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


@pytest.mark.parametrize("place", ["p3", "p1-d1-t1"])
def test_a_link_opens_its_text_and_brings_the_place_into_the_middle(chromium, saved, place):
    page = chromium.new_page(viewport={"width": 1400, "height": 700})
    page.goto(saved.as_uri())
    assert page.locator("details[open]").count() == 0
    page.locator(f"a[href='#{place}']").first.click()
    middle = "p => { const box = document.getElementById(p).getBoundingClientRect(); return box.y; }"
    page.wait_for_function("document.querySelectorAll('details[open]').length === 1")
    assert page.locator(f"details[open] #{place}").is_visible() and 200 < page.evaluate(middle, place) < 450
    page.close()

    page = chromium.new_page(viewport={"width": 1400, "height": 700})
    page.goto(f"{saved.as_uri()}#{place}")  # as somebody else was sent it
    page.wait_for_function("document.querySelectorAll('details[open]').length === 1")
    assert page.locator(f"details[open] #{place}").is_visible()
    page.close()
