"""What a strategy that drafts and verifies says of itself follows from its pair."""

import pytest

from decoders import registry
from decoders.engine.capabilities import Capability
from decoders.lane import Lane, Limits
from decoders.parameters import integer, switch
from decoders.refusal import Refusal
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify, speculative
from decoders.speculative.default_verifier import fits, simplest
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.draft_model import draft_chain
from decoders.speculative.interfaces import FIXED, Draft, Drafter, Pair
from decoders.speculative.verifiers.block_verification import BLOCK
from decoders.strategy import Part
from tests.helpers import tiny_models

COUNT = integer("num_assistant_tokens", 3, "Tokens that the draft guesses per round.", low=1)


@pytest.fixture(autouse=True)
def only_here(monkeypatch):
    """Strategies that a test declares are forgotten after it."""
    registry.strategies()
    monkeypatch.setattr(registry, "_STRATEGIES", dict(registry._STRATEGIES))


def nothing_drafted(**further) -> Drafter:
    return Drafter(lambda lane: Draft(lane.tip), FIXED, name="nothing", says="It drafts nothing.", **further)


def test_a_pair_is_a_whole_strategy():
    @speculative(name="mine", title="Mine", parameters=(COUNT, *GREEDY))
    def mine_pair(parameters: dict) -> Pair:
        """Drafts a chain.

        How it does so.
        """
        return simplest(draft_chain(parameters), parameters["temperature"])

    mine = registry.get("mine")
    assert (mine.summary, mine.run.__doc__) == ("Drafts a chain.", mine_pair.__doc__)
    assert (mine.family, mine.needs, mine.view) == ("speculative", ("target", "draft"), "draft_rounds")
    assert {"one_round", "timeline", "entropy", "text"} <= set(mine.views)
    values = mine.check({})
    assert mine.badge(values) == "lossless: equal to greedy"
    assert mine.badge(values | {"temperature": 1.0}) == "exact in distribution"
    assert [part.kind for part in mine.parts(values)] == ["drafter", "verifier", "processors"]
    assert mine.reads(values) == {} and mine.together(values) is None

    models = {"target": tiny_models.make("llama", 0), "draft": tiny_models.make("llama", 1)}
    prompt = tiny_models.tokenizer()("the cat sat on a mat")["input_ids"]
    for temperature in (0.0, 1.0):
        given = {"temperature": temperature, "num_assistant_tokens": 3}
        found, other = (
            Lane(name, prompt, models, given, limits=Limits(16)).run() for name in ("mine", "speculative")
        )
        assert found.output() == other.output() and len(found.steps) == len(other.steps)


def test_what_is_declared_goes_before_what_follows():
    @draft_and_verify(
        lambda parameters: simplest(nothing_drafted(), parameters["temperature"]),
        name="mine",
        title="Mine",
        parameters=GREEDY,
        needs=("target", "other"),
        views=("text",),
        badge=lambda parameters: "relaxed",
        further_part=lambda parameters: Part("schedule", "as it comes", "It waits for nothing."),
    )
    def writes_nothing(lane):
        """Writes nothing."""
        yield

    mine = registry.get("mine")
    values = mine.check({})
    assert (mine.needs, mine.views, mine.badge(values)) == (("target", "other"), ("text",), "relaxed")
    assert [part.kind for part in mine.parts(values)][-1] == "schedule"


def test_a_strategy_reads_what_its_parts_read():
    @speculative(name="mine", title="Mine", parameters=(switch("states", False, "Reads them."), *GREEDY))
    def mine_pair(parameters: dict) -> Pair:
        """Drafts nothing."""
        reads = (Capability.HIDDEN_STATES,) if parameters["states"] else ()
        return simplest(nothing_drafted(reads=reads), parameters["temperature"])

    mine = registry.get("mine")
    assert (mine.needs, mine.view) == (("target",), "draft_rounds")
    assert mine.reads(mine.check({})) == {}
    assert mine.reads(mine.check({"states": True})) == {"target": {Capability.HIDDEN_STATES}}


def test_a_verifier_is_refused_where_it_would_be_wrong():
    @speculative(name="mine", title="Mine", parameters=GREEDY, fits=fits)
    def mine_pair(parameters: dict) -> Pair:
        """Drafts nothing."""
        return nothing_drafted(), BLOCK

    with pytest.raises(Refusal, match="Block verification would distort .* guesses are fixed; choose"):
        registry.get("mine").check({})


def test_a_verifier_is_refused_by_its_own_name():
    given = {"acceptance": "as published", "tree": "widths", "temperature": 1.0}
    with pytest.raises(Refusal) as refused:
        registry.get("redrafter").check(given)
    assert "ypical" not in str(refused.value)
    assert "has no rule for guesses that are sampled" in str(refused.value)


def test_only_the_verifier_that_looks_up_neighbours_reads_the_output_embedding():
    speculation = registry.get("speculation")
    reads = {"target": {Capability.OUTPUT_EMBEDDING}}
    assert speculation.reads(speculation.check({"verifier": "neighbours"})) == reads
    assert speculation.reads(speculation.check({})) == {}


def test_a_loop_of_its_own_runs_as_it_stands():
    seen = []

    def mine_pair(parameters: dict) -> Pair:
        return simplest(draft_chain(parameters), parameters["temperature"])

    @draft_and_verify(mine_pair, name="mine", title="Mine", parameters=(COUNT, *GREEDY))
    def mine(lane):
        """Drafts a chain."""
        drafter, verifier = mine_pair(lane.parameters)
        for _ in rounds(lane, drafter, verifier):
            seen.append(lane.written)
            yield

    models = {"target": tiny_models.make("llama", 0), "draft": tiny_models.make("llama", 1)}
    prompt = tiny_models.tokenizer()("the cat sat")["input_ids"]
    trace = Lane("mine", prompt, models, {}, limits=Limits(6)).run()
    assert len(seen) == len(trace.steps) and seen[-1] == len(trace.output())
