"""The list of strategies: what it finds, what stands first, and that nothing in it is markup."""

import pytest

from explorer.page.find_strategy import find, strategy_button

BOTH = {"target", "draft"}


@pytest.mark.parametrize(
    ("words", "name"),
    [("nucleus", "sample"), ("leviathan", "speculative"), ("", "greedy"), ("best-of-n", "first_finish")],
)
def test_names_aliases_and_authors_lead_to_a_strategy(words, name):
    assert find(words, BOTH)["html"].startswith(f'<li><button type="button" data-name="{name}"')


def test_all_are_counted_and_what_is_not_there_is_said():
    every, none = find(" ", BOTH), find("zzz <b>", BOTH)
    assert every["sentence"] == f"{every['html'].count('<li>')} strategies"
    assert none == {"sentence": "Nothing found for “zzz <b>”. Try fewer words.", "html": ""}
    assert find("leviathan", BOTH)["sentence"].endswith(("1 strategy", "strategies"))


def test_a_title_is_text_whatever_it_holds():
    method = {
        "name": "x",
        "title": "<b>",
        "needs": ["draft"],
        "picture": None,
        "parent": "",
        "summary": "a & b",
    }
    made = strategy_button(method, BOTH)
    assert "<b>" not in made and "&lt;b&gt;" in made and "a &amp; b" in made and "disabled" not in made
    lacking = strategy_button(method, {"target"})
    assert " disabled" in lacking and "Needs a draft model" in lacking and "a &amp; b" not in lacking
