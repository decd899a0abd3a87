"""The list of strategies: what it finds, what stands first, and that nothing in it is markup."""

import pytest

from explorer.page.find_strategy import entry, found


@pytest.mark.parametrize(
    ("words", "name"),
    [("nucleus", "sample"), ("leviathan", "speculative"), ("", "greedy"), ("best-of-n", "first_finish")],
)
def test_names_aliases_and_authors_lead_to_a_strategy(words, name):
    assert found(words)["html"].startswith(f'<li><button type="button" data-name="{name}"')


def test_all_are_counted_and_what_is_not_there_is_said():
    every, none = found(" "), found("zzz <b>")
    assert every["sentence"] == f"{every['html'].count('<li>')} strategies"
    assert none == {"sentence": "Nothing found for “zzz <b>”. Try fewer words.", "html": ""}
    assert found("leviathan")["sentence"].endswith(("1 strategy", "strategies"))


def test_a_title_is_text_whatever_it_holds():
    made = entry(
        {"name": "x", "title": "<b>", "needs": ["draft"], "picture": None, "parent": "", "summary": "a & b"}
    )
    assert "<b>" not in made and "&lt;b&gt;" in made and "a &amp; b" in made and 'data-needs="draft"' in made
