"""A lane of weighed views in a real browser: the second prompt is typed in, its row is shown."""

from tests.browser.window import resize


def test_a_typed_negative_prompt_is_read_and_shown(visit):
    """Typed on a wide page and decoded on a phone, which both have room for the field and for the picture."""
    page = visit()
    page.wait_for_function("decodingExplorer.app.models.state === 'ready'")
    setup = {"prompt": "Once upon a time", "max_new_tokens": 3, "lanes": [{"strategy": "guidance"}]}
    page.evaluate("(setup) => decodingExplorer.app.applySetup(setup)", setup)
    lane = page.get_by_role("region", name="Lane 1", exact=True)
    lane.get_by_role("button", name="Parameters").click()
    field = lane.get_by_role("textbox", name="negative_prompt")
    field.fill("<b>A dog</b>\nran")
    for width in (1400, 390):
        resize(page, width)
        assert field.evaluate("(e) => e.offsetWidth / e.parentElement.offsetWidth") > 0.9
    lane.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_function("decodingExplorer.state === 'done'")
    assert lane.get_by_role("tab", name="Contrast", selected=True).count() == 1
    for width in (1400, 390):
        resize(page, width)
        page.wait_for_function("!decodingExplorer.app.lanes[0].scene.waiting")
        texts = lane.locator("svg text").all_text_contents()
        assert {"wanted", "unwanted", "combined"} <= set(texts)
    assert "6 target forwards" in lane.inner_text().replace("\n", " ")
    lane.locator(".chips-row .dp-chip").last.click()
    inspector = page.locator("#explorer .inspector")
    inspector.get_by_text("What each view offered").wait_for()
    assert {"model", "negative prompt", "combined"} <= set(
        inspector.locator(".stage-title b").all_inner_texts()
    )
    assert "two contrasted distributions" in inspector.inner_text()
