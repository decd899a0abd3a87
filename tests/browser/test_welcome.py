"""The first visit: what this is in one sentence, and the recorded run replayed up to its first rejection."""

from playwright.sync_api import expect

from tests.browser.test_page import press, ready, run

AT = "decodingExplorer.app.playback.position"


def rejected(page) -> dict:
    """The first rejected token of the recorded run: step and text."""
    return page.evaluate("""() => {
      const history = decodingExplorer.lanes[1].chips.history;
      const found = history.entries.find((entry) => entry.base.state === "rejected");
      return { step: found.born + 1, text: found.base.text };
    }""")


def test_the_first_visit_replays_a_fork_and_stops_on_its_card(visit):
    page = visit(first=True)
    expect(page.get_by_text("Watch a language model decode")).to_be_visible()
    assert page.evaluate(AT) < 3
    fork = rejected(page)
    expect(page.locator(".status-text")).to_contain_text(f"The draft model guessed “{fork['text']}”")
    assert page.evaluate("decodingExplorer.app.lanes[1].shown") == fork["step"]
    expect(page.locator(".dp-card")).to_contain_text("rejected")
    press(page, "Show all")
    expect(page.locator(".status-text")).to_contain_text("A stored run.")
    assert page.evaluate(AT) == 40


def test_a_phone_is_not_scrolled_by_the_replay_and_is_spoken_to_as_one(visit):
    page = visit(390, 844, first=True, own=True, has_touch=True, is_mobile=True)
    status = page.locator(".status-text")
    expect(status).to_contain_text(f"The draft model guessed “{rejected(page)['text']}”")
    expect(status).to_contain_text("Touch any token, drag the slider, or press Run.")
    page.wait_for_function("decodingExplorer.app.lanes[1].scene.card")
    expect(page.get_by_role("heading", name="Decoding Explorer", exact=True)).to_be_in_viewport(ratio=1)
    expect(page.locator(".lane.current .chips-row .is-rejected").last).to_be_in_viewport(ratio=1)
    assert page.evaluate("scrollY") == 0
    press(page, "Show all")
    expect(page.locator(".dp-card")).to_have_count(0)


def test_the_replay_is_skipped_by_a_button_and_ended_by_any_press(visit):
    page = visit(first=True)
    press(page, "Skip")
    assert page.evaluate(AT) == 40
    page = visit(first=True)
    page.keyboard.press("Shift")
    at = page.evaluate(AT)
    page.wait_for_timeout(2500)
    assert page.evaluate(AT) == at
    run(page, tokens=8)
    expect(page.locator(".status-text")).to_contain_text("Done.")


def test_who_was_here_before_or_wants_no_motion_sees_the_whole_run_at_once(visit):
    page = visit(first=True)
    press(page, "Skip")
    page.reload()
    ready(page)
    assert page.evaluate(AT) == 40
    assert visit(first=True, reduced_motion="reduce").evaluate(AT) == 40


def test_the_sentence_can_be_closed_for_good_and_names_the_page_on_a_phone(visit):
    page = visit(390, 844, first=True, reduced_motion="reduce")
    about = page.locator(".about-page")
    name = page.get_by_role("heading", name="Decoding Explorer", exact=True)
    expect(name).to_be_in_viewport(ratio=1)
    expect(about).to_contain_text("side by side")
    page.get_by_role("button", name="Hide this sentence").click()
    expect(about).to_have_count(0)


def test_help_explains_the_words_of_the_pictures(visit):
    page = visit()
    press(page, "Help")
    words = page.locator(".glossary")
    for word in ("bonus", "written instead", "p, q, u", "KV slots"):
        expect(words.get_by_text(word, exact=True)).to_be_visible()
