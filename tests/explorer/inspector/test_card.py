"""The inspector's card says what the facts say, and a token is never markup in it."""

import math
import re

import pytest

from decoders.trace.events import Distribution, Propose, Step, Verdict
from decoders.trace.trace import Trace
from explorer.catalog import recorded_runs
from explorer.inspector.card import NO_DRAFT, card
from explorer.inspector.parts import probability
from explorer.inspector.token_facts import Facts, inspect, inspect_cell
from tests.explorer.inspector.test_token_facts import decoded, made, models  # noqa: F401
from tests.explorer.test_markup import HOSTILE, Reader


def test_a_token_is_never_markup():
    trace = Trace("any", "Any", {}, 0, {"target": "t"}, [0], {0: b"a", 1: HOSTILE.encode(), 2: b"b"})
    events = [
        Propose(1, 0, 1, math.log(0.5), "draft"),
        Distribution(0, "target", [[1, math.log(0.25)], [2, math.log(0.75)]], 0.0, 1.0, among=2),
        Distribution(0, "processed", [[1, math.log(0.25)], [2, math.log(0.75)]], 0.0, 1.0, among=2),
        Verdict(1, "rejected", 0.25, 0.5, 0.9, HOSTILE),
        Propose(2, 1, 1, math.log(0.5), "target"),
    ]
    trace.append(Step(0, events, 0.1))
    for node in trace.nodes():
        shown = card(inspect(trace, node))
        read = Reader(shown["html"])
        assert not {"img", "script"} & {tag for tag, _ in read.elements}
        assert not [name for _, attributes in read.elements for name in attributes if name.startswith("on")]
        if node:
            assert HOSTILE in read.text


def test_numbers_and_reasons_of_a_test_are_in_it():
    read = Reader(card(inspect(made(), 2))["html"])
    for words in (
        ".125 / .5",
        "accept if u < .25",
        "u .9",
        "The draw is above p / q.",
        "rejected in step 1.",
    ):
        assert words in read.text
    assert read.text.count("The draw is above p / q.") == 2  # in the test's picture and in the raw event
    assert "left: 90%" in read.of("style") and "width: 25%" in read.of("style")


def test_the_token_written_after_a_rejection_is_not_said_to_be_drawn():
    """Greedy decoding writes one too."""
    text = Reader(card(inspect(made(), 3))["html"]).text
    assert "written instead in step 1" in text and "resampled in" not in text


def test_scores_have_names_for_people():
    facts = inspect(made(), 3)
    facts["scores"][0]["parts"] = {"mean_logprob": -0.5, "augmented_sum": 1.0}
    text = Reader(card(facts)["html"]).text
    assert "step 1: Σ log p −0.300, rank 1 · mean log p −0.500 · augmented sum 1.000" in text


def test_only_a_lane_that_drafts_speaks_of_drafts():
    for trace, says in zip(recorded_runs.traces(), ("Chosen by the model.", NO_DRAFT), strict=True):
        facts = Facts(trace).of(max(Facts(trace).committed)) | {"source": "target", "verdicts": []}
        assert f">{says}<" in card(facts)["html"]


def test_buttons_lead_to_tokens_and_force_them_but_not_in_a_saved_page():
    live, saved = (Reader(card(inspect(made(), 3), live=live)["html"]) for live in (True, False))
    assert live.of("data-node") == saved.of("data-node") == ["0", "1", "2"]
    assert {"2", "3"} <= set(live.of("data-token")) and saved.of("data-token") == []
    prompt = Reader(card(inspect(made(), 1))["html"])
    assert prompt.of("data-token") == [] and "Given, not decoded." in prompt.text


def test_arrow_keys_walk_parents_children_and_siblings():
    assert card(inspect(made(), 3))["walk"] == {"ArrowLeft": 1, "ArrowUp": 2}
    assert card(inspect(made(), 2))["walk"] == {"ArrowLeft": 1, "ArrowDown": 3}
    assert card(inspect(made(), 1))["walk"] == {"ArrowLeft": 0, "ArrowRight": 3}
    assert card(inspect(made(), 0))["walk"] == {"ArrowRight": 1}
    assert card(inspect(made(), 3))["place"] == ", position 1, step 1"


STRATEGIES = ["speculative", "beam", "jacobi", "contrastive_decoding", "prompt_lookup"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_node_and_cell_of_a_run_has_a_card(models, strategy):  # noqa: F811
    trace = decoded(models, strategy)
    found = Facts(trace)
    for node in found.nodes.token:
        Reader(card(found.of(node))["html"])
    for cell in [cell for stood in found.cells.values() for cell in stood]:
        shown = card(inspect_cell(trace, cell.position, cell.iteration))
        assert f"iteration {cell.iteration}: " in Reader(shown["html"]).text


def test_a_sampler_has_a_column_a_stage_and_says_where_the_draw_fell(models):  # noqa: F811
    trace = decoded(models, "sample", temperature=0.7, top_k=5, top_p=0.95)
    facts = inspect(trace, max(trace.nodes()))
    read = Reader(card(facts)["html"])
    assert f"--stages: {len(facts['stages'])}" in read.of("style")
    for stage in facts["stages"]:
        assert f"entropy {stage['entropy']:.2f} bits" in read.text
    assert re.search(r"the draw: u = \.\d{4} falls on ", read.text)
    assert sum("draw-piece here" in name for name in read.of("class")) == 1


@pytest.mark.parametrize(
    ("p", "text"),
    [(None, "—"), (0, "0"), (0.63, ".630"), (0.03521, ".0352"), (0.09996, ".100"), (1, "1.00"),
     (0.9996, "1.00"), (3.14e-7, "3.1e−7"), (0.00001234, ".0000123")],
)  # fmt: skip
def test_a_probability_has_three_digits(p, text):
    assert probability(p) == text
