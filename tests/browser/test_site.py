"""The static site, opened from disk: it moves, replays, guides, finds, and asks nothing of a network."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.test_everyone import violations
from tests.helpers.small_site import small_site


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The address of a small site on this disk."""
    out = tmp_path_factory.mktemp("site")
    small_site(out)
    return out.as_uri()


@pytest.fixture
def opened(chromium, site):
    """opened(path): a page of the site; no script may fail, and nothing but files may be asked for."""
    errors, asked = [], []
    context = chromium.new_context(viewport={"width": 1400, "height": 900})

    def go(path: str):
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda said: said.type == "error" and errors.append(said.text))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{site}/{path}")
        return page

    yield go
    context.close()
    assert errors == []
    assert all(url.startswith(("file:", "data:", "blob:")) for url in asked)


def test_the_front_page_moves_until_it_is_paused_and_the_search_leads_on(opened):
    page = opened("index.html")
    front = page.locator("#front")
    expect(front).to_have_attribute("data-step", re.compile("^([4-9]|[1-3][0-9])$"))
    page.get_by_role("button", name="Pause").click()
    step = front.get_attribute("data-step")
    page.wait_for_timeout(800)
    assert front.get_attribute("data-step") == step
    assert violations(page) == []
    page.get_by_role("searchbox").fill("leviathan")
    results = page.locator(".site-found a")
    expect(results.filter(has_text="Speculative decoding").first).to_be_visible()
    assert violations(page, ".site-head") == []
    results.filter(has_text="method").first.click()
    expect(page).to_have_url(re.compile("methods/speculative.html"))
    expect(page.get_by_role("heading", name="Speculative decoding", exact=True)).to_be_visible()


def test_a_methods_page_shows_every_view_and_its_address_keeps_what_is_on_show(opened):
    page = opened("methods/speculative.html#view=entropy&step=2")
    lane = page.get_by_role("region", name="Lane 1", exact=True)
    expect(lane.get_by_role("tab", name="Entropy")).to_have_attribute("aria-selected", "true")
    expect(lane.get_by_role("application")).to_have_attribute("aria-label", re.compile("^Entropy: .* bits"))
    expect(page.get_by_role("slider", name="Step position")).to_have_value("2")
    lane.get_by_role("tab", name="Draft rounds").click()
    expect(page).to_have_url(re.compile("view=draft_rounds&step=2"))
    assert violations(page) == []
    page.get_by_role("button", name="Switch between light and dark").click()
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_lesson_asks_its_questions_and_an_experiment_draws_its_figure(opened):
    page = opened("lessons/draft-trees.html")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_text("Stop 1 of")).to_be_visible()
    expect(page).to_have_url(re.compile("stop=1"))
    assert violations(page) == []
    page = opened("experiments/draft-length.html")
    expect(page.locator(".site-figure .main-svg").first).to_be_visible()
    assert violations(page) == []
    page = opened("papers.html#hydra")
    expect(page.locator("#hydra")).to_have_attribute("open", "")
    assert violations(page, "#hydra", ".site-head") == []
