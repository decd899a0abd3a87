"""The rows of Methods: whatever a method says of itself is text, and nothing that is known is left out."""

from html.parser import HTMLParser

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from decoders.registry import FAMILIES, strategies
from explorer.page.tabs import method_rows, methods

EVIL = "<img src=x onerror=alert(1)> & \"'"
VOID = ("img", "br")


class Seen(HTMLParser):
    """The tags and the text of some HTML; every tag is closed by its own."""

    def __init__(self, text: str):
        super().__init__()
        self.tags, self.text, self.open = [], "", []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.open += [] if tag in VOID else [tag]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def hostile(value):
    """The same card with every text a hostile one."""
    if isinstance(value, dict):
        return {key: value[key] if key in ("family", "runs_code") else hostile(value[key]) for key in value}
    if isinstance(value, (list, tuple)):
        return [hostile(one) for one in value]
    return EVIL if isinstance(value, str) else value


def test_whatever_a_method_says_is_text():
    card = next(card for card in methods.listing()["methods"] if card["name"] == "treecoder")
    plain, evil = (Seen(method_rows.row(one, FAMILIES, EVIL)) for one in (card, hostile(card)))
    own = [tag for tag, _ in plain.tags if tag != "code"]  # formulas stand between backticks
    assert [tag for tag, _ in evil.tags if tag not in ("code", "p")] == [tag for tag in own if tag != "p"]
    assert sum(tag == "img" for tag, _ in evil.tags) == 4  # small and whole, in two themes
    assert EVIL in evil.text and not any(name.startswith("on") for _, given in evil.tags for name in given)


@pytest.mark.parametrize("name", list(strategies()))
def test_a_row_says_all_that_is_known(name):
    card = next(card for card in methods.listing()["methods"] if card["name"] == name)
    seen = Seen(method_rows.row(card, FAMILIES, "It is walled in."))
    said = [card["title"], FAMILIES[card["family"]], card["badge"], ", ".join(card["aliases"])]
    said += [p["name"] for p in card["parameters"]] + [p["says"] for p in card["parts"]]
    said += [source["title"] for source in card["sources"]]
    said += [step.replace("`", "") for part in card["how"] for step in part.get("steps", [part.get("text")])]
    assert all(words in seen.text for words in said)
    links = [given["href"] for tag, given in seen.tags if tag == "a"]
    assert {source["link"] for source in card["sources"] if source["link"]} == set(links)
    assert ("It is walled in." in seen.text) == card["runs_code"]
    assert sum(tag == "img" for tag, _ in seen.tags) == 4


def test_thumbnails_are_served_and_nothing_else():
    asked = TestClient(Starlette(routes=methods.routes()))
    for kind in ("thumbnail", "picture"):
        found = asked.get(f"/{method_rows.PICTURES}/{kind}/beam/dark")
        assert found.headers["content-type"].startswith("image/svg+xml") and found.text.startswith("<svg")
    assert len(asked.get(f"/{method_rows.PICTURES}/thumbnail/beam/dark").text) < len(found.text)
    for name in ("thumbnail/magic/dark", "thumbnail/beam/red", "thumbnail/..%2fbeam/dark", "magic/beam/dark"):
        assert asked.get(f"/{method_rows.PICTURES}/{name}").status_code == 404
