"""A constraint in a lane's parameters: answered while it is typed, and seen in its own tab."""

from playwright.sync_api import expect

from tests.browser.test_page import press, ready
from tests.browser.window import resize


def test_what_is_typed_is_judged_at_once_and_a_run_shows_what_was_removed(again):
    """Begun on a wide page, corrected and decoded on a phone; both sizes show what was removed."""
    page = again()
    ready(page)
    page.get_by_role("button", name="Parameters", exact=True).first.click()
    panel = page.get_by_role("group", name="Parameters of this lane").first
    expect(panel.get_by_label("constraint_text")).to_be_hidden()
    panel.get_by_text("Constraint", exact=True).click()
    panel.get_by_label("constraint", exact=True).select_option("regex")
    panel.get_by_label("constraint_text").fill("a(b")
    status = panel.get_by_role("status")
    expect(status).to_have_text("The regular expression cannot be used: unclosed group; correct it.")
    expect(panel.locator(".fault")).to_have_text("a(b\n ▲", use_inner_text=True)
    resize(page, 390)
    panel.get_by_label("constraint_text").fill("( the [a-z]{2,5}){4}")
    expect(status).to_contain_text("Ready after")
    expect(panel.locator(".fault")).to_have_text("")
    panel.get_by_role("button", name="Close").click()
    press(page, "Run")
    page.wait_for_function("decodingExplorer.state === 'done'")
    page.get_by_role("tab", name="Constraint").first.click()
    page.wait_for_function("decodingExplorer.lanes[0].view === 'constraint'")
    text = page.evaluate("decodingExplorer.app.lanes[0].rows.length")
    assert text > 0
    for width in (390, 1400):
        resize(page, width)
        expect(page.locator(".scene").first).to_contain_text("kept so far")


def test_an_example_of_a_constraint_fills_the_fields(again):
    page = again()
    ready(page)
    page.get_by_role("button", name="Parameters", exact=True).first.click()
    panel = page.get_by_role("group", name="Parameters of this lane").first
    panel.get_by_text("Constraint", exact=True).click()
    panel.get_by_label("Examples of constraints").select_option(label="A table as CSV")
    panel = page.get_by_role("group", name="Parameters of this lane").first
    expect(panel.get_by_label("constraint", exact=True)).to_have_value("gbnf")
    assert "root ::=" in panel.get_by_label("constraint_text").input_value()
    expect(panel.get_by_role("status")).to_contain_text("Ready after")


def test_the_bias_of_the_mask_is_a_tab_of_its_own_when_it_is_asked_for(again):
    page = again()
    ready(page)
    page.get_by_role("button", name="Parameters", exact=True).first.click()
    panel = page.get_by_role("group", name="Parameters of this lane").first
    panel.get_by_text("Constraint", exact=True).click()
    panel.get_by_label("constraint", exact=True).select_option("choices")
    panel.get_by_label("constraint_text").fill("a cat|the dog|the end")
    panel.get_by_label("constraint_bias", exact=True).check()
    panel.get_by_role("button", name="Close").click()
    press(page, "Run")
    page.wait_for_function("decodingExplorer.state === 'done'")
    page.get_by_role("tab", name="Bias").first.click()
    page.wait_for_function("decodingExplorer.lanes[0].view === 'bias'")
    expect(page.locator(".scene").first).to_contain_text("the mask makes this text")
