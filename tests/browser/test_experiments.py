"""The Experiments section in a real browser: a run of messages is drawn as arrows between lanes."""

import pytest

from explorer import experiments

MAPS = [
    (found, one)
    for found in experiments.stored()
    for one in found.get("pictures", [])
    if one["kind"] == "tokens"
]
WITH_MESSAGES = [found for found in experiments.stored() if found.get("messages")]
ENDS = """card => [...card.querySelectorAll('.exchange-arrow')].map(arrow => {
  const lanes = [...card.querySelectorAll('.exchange-lane')].map(lane => {
    const box = lane.getBoundingClientRect();
    return [lane.textContent, box.x + box.width / 2];
  });
  const box = arrow.getBoundingClientRect(), back = arrow.classList.contains('back');
  const far = (lane, x) => Math.abs(lane[1] - x);
  const at = x => lanes.reduce((best, lane) => far(lane, x) < far(best, x) ? lane : best)[0];
  const ends = [at(box.x), at(box.right)];
  return [...(back ? ends.reverse() : ends), box.y];
})"""


@pytest.mark.parametrize("width", [1400, 390])
def test_every_message_is_an_arrow_from_its_sender_to_its_receiver(visit, width):
    """One below the other, in the order in which they were sent; nothing sticks out of the page."""
    page = visit(width, 900)
    page.evaluate("decodingExplorer.app.showSection('experiments')")
    for found in WITH_MESSAGES:
        card = page.locator(f"details[aria-label='{found['title']}']")
        card.locator("summary").click()
        drawn = card.evaluate(ENDS)
        assert [one[:2] for one in drawn] == [[m["sender"], m["receiver"]] for m in found["messages"]]
        heights = [one[2] for one in drawn]
        assert heights == sorted(set(heights))
    assert WITH_MESSAGES and page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_an_arrow_opens_the_decoding_of_its_call(visit):
    """What the generator answered is the text of the lane."""
    found = next(found for found in WITH_MESSAGES if found.get("calls"))
    page = visit(1400, 900)
    page.evaluate("decodingExplorer.app.showSection('experiments')")
    page.locator(f"details[aria-label='{found['title']}'] summary").click()
    last = len(found["calls"])
    page.locator(".exchange-call").last.click()
    says = f"decodingExplorer.app.run.says.startsWith('Call {last} of')"
    page.wait_for_function(f"decodingExplorer.app.section === 'decode' && {says}")
    answer = [m["says"] for m in found["messages"] if m.get("call") == last][-1]
    chips = page.get_by_role("region", name="Lane 1").locator(".dp-chip").all_inner_texts()
    assert answer.partition("text ")[2].replace(" ", "␣") in "".join(chips)


def test_every_picture_of_an_answer_is_drawn_and_read(visit):
    """Also on a phone nothing sticks out, and what is pointed at is said."""
    page = visit(390, 900)
    page.evaluate("decodingExplorer.app.showSection('experiments')")
    kinds = set()
    for found in experiments.stored():
        if pictures := found.get("pictures"):
            card = page.locator(f'details[aria-label="{found["title"]}"]')
            card.locator("summary").click()
            assert card.locator("figure.figure").count() == len(pictures)
            kinds |= {picture["kind"] for picture in pictures}
    assert {"heat", "spread", "board", "clouds"} <= kinds
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    cell = page.locator(".heat-strip .heat-cell").first
    cell.hover()
    said = cell.locator("xpath=ancestor::figure").locator(".chart-read")
    assert said.inner_text() == "greedy, count: .50"


def test_a_map_of_a_text_has_a_cell_for_each_row_and_token_and_scrolls_where_it_is_wide(visit):
    page = visit(390, 900)
    page.evaluate("decodingExplorer.app.showSection('experiments')")
    for title in dict.fromkeys(found["title"] for found, _ in MAPS):
        page.locator(f'details[aria-label="{title}"] summary').click()
    for _, one in MAPS:
        drawn = page.locator(".figure.of-tokens").filter(has_text=one["title"])
        assert drawn.locator(".map-cell").count() == len(one["rows"]) * len(one["tokens"])
        first = drawn.locator(".map-cell i").first
        share = one["values"][0][0] / one["high"]
        assert abs(float(first.evaluate("cell => cell.style.opacity")) - 0.04 - 0.8 * share) < 0.01
    assert MAPS and page.evaluate("document.documentElement.scrollWidth <= innerWidth")
