"""The cards of methods: every strategy has one with a real picture, and every paper is listed honestly."""

from xml.etree import ElementTree

import pytest

from decoders.registry import BADGES, strategies
from decoders.trace.trace import load
from explorer.catalog import method_cards, papers
from explorer.runs.model_pool import Loader
from tests.helpers import tiny_models
from visualizers.registry import titles

NAMES = list(strategies())
TOKENS = 4  # of a run that is recorded here


@pytest.fixture(scope="module")
def listing():
    return method_cards.listing()


def test_every_strategy_has_a_card_made_of_its_declaration(listing):
    cards = {card["name"]: card for card in listing["methods"]}
    assert list(cards) == NAMES and len(NAMES) >= 9
    for name, strategy in strategies().items():
        declared = strategy.declaration()
        assert {key: cards[name][key] for key in declared if key != "papers"} == {
            key: value for key, value in declared.items() if key != "papers"
        }
        assert [paper["slug"] for paper in cards[name]["papers"]] == declared["papers"]
        assert cards[name]["family"] in listing["families"]
        assert cards[name]["badge"] in BADGES and cards[name]["promise"] == BADGES[cards[name]["badge"]]


@pytest.mark.parametrize("name", NAMES)
def test_a_card_says_how_its_method_works(listing, name):
    card = next(card for card in listing["methods"] if card["name"] == name)
    sentences = [card["summary"], *(s for part in card["how"] for s in part.get("steps", [part.get("text")]))]
    assert len(sentences) >= 3 and all(s.endswith((".", ":")) and "\n" not in s for s in sentences)
    assert all(s.count("`") % 2 == 0 for s in sentences)
    assert all(parameter["help"].endswith(".") for parameter in card["parameters"])
    assert all(part["name"] and part["says"].endswith(".") for part in card["parts"])


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_is_a_real_run_of_the_strategy(name):
    trace, says = load(method_cards.file_of(name)), method_cards.picture_facts(name)
    assert trace.strategy == name and says["view"] == titles()[strategies()[name].views[0]]
    check = strategies()[name].check  # a parameter that is newer than the trace has its default
    assert check(trace.parameters) == check(says["parameters"])
    assert 0 < len(trace.output()) <= says["tokens"]
    drawn = ElementTree.fromstring(method_cards.thumbnail(name, "light"))
    assert sum(len(element.get("d", "M").split("M")) - 1 for element in drawn.iter()) >= 6
    assert float(drawn.get("width")) == pytest.approx(200, abs=10)


def test_cards_say_which_methods_can_run_code(listing):
    found = {card["name"] for card in listing["methods"] if card["runs_code"]}
    assert {"pg_td", "treecoder", "rankgen"} <= found and not {"greedy", "beam", "pearl"} & found


def test_pictures_are_small():
    assert sum(method_cards.file_of(name).stat().st_size for name in NAMES) < 20_000 * len(NAMES)


def test_parts_follow_the_parameters():
    speculative = strategies()["speculative"]

    def verifier(**given) -> str:
        return next(p.name for p in speculative.parts(speculative.check(given)) if p.kind == "verifier")

    assert verifier() == "greedy match" and verifier(temperature=1.0) == "token rejection"


def test_every_paper_is_listed_with_its_status_and_family(listing):
    rows = {row["slug"]: row for row in listing["papers"]}
    assert len(rows) == 193 and {row["family"] for row in rows.values()} == set(listing["paper_families"])
    claimed = {paper["slug"] for card in listing["methods"] for paper in card["papers"]}
    claimed |= {slug for one in papers.claims() if one.kind != "strategy" for slug in one.papers}
    assert claimed and {slug for slug, row in rows.items() if row["status"] == "works"} == claimed
    assert all(p["title"] == rows[p["slug"]]["title"] for c in listing["methods"] for p in c["papers"])
    assert listing["summary"] == papers.summary(papers.papers())


def test_pictures_are_drawn_in_the_theme_and_only_where_a_run_is_stored(tmp_path, monkeypatch):
    light, dark = (method_cards.picture("beam", look) for look in ("light", "dark"))
    assert light != dark and light.count("<path") == dark.count("<path")
    with pytest.raises(ValueError, match="There is no strategy 'magic'"):
        method_cards.picture("magic", "light")
    monkeypatch.setattr(method_cards, "FOLDER", tmp_path)
    method_cards.picture.cache_clear()
    with pytest.raises(ValueError, match="No run is stored for Greedy"):
        method_cards.picture("greedy", "light")
    assert method_cards.picture_facts("greedy") is None


def test_recording_writes_a_run_of_each_strategy_that_the_models_allow(tmp_path, monkeypatch):
    monkeypatch.setattr(method_cards, "FOLDER", tmp_path)
    for setup in (method_cards.USUAL, *method_cards.SETUPS.values()):  # how much a run writes is no matter
        if setup.get("max_new_tokens", 0) > TOKENS:
            monkeypatch.setitem(setup, "max_new_tokens", TOKENS)
    loader = Loader("tiny", None)
    loader.models, loader.state = {"target": tiny_models.make(seed=0)}, "ready"
    loader.done.set()
    method_cards.record(loader)
    target = loader.models["target"]
    alone = {n for n, s in strategies().items() if s.needs == ("target",) and target.companion(s.writes_with)}
    alone.remove("server_stream")  # which follows a server
    assert {path.name.removesuffix(".json.gz") for path in tmp_path.iterdir()} == alone
    assert load(method_cards.file_of("greedy")).models == {"target": loader.models["target"].name}
