"""Transfer Q*: the dossier's toy, exactly, with a table for the target and one for the aligned model; what
each variant asks; and the aligned model that shares the target's forward.
"""

import math

import pytest
import torch

from decoders.chooser import Exhaustive
from decoders.heads import Aligned, Target
from decoders.lane import Lane, Limits
from decoders.models.loaded_model import LoadedModel
from decoders.search.stepwise import scorers
from decoders.search.stepwise.transfer_q import distance, softmax, value, value_of_code
from decoders.trace.events import Forward, Note, Propose, Verdict
from decoders.trace.scores import Measure, Rank, Score
from tests.helpers import tiny_models
from tests.helpers.stateful_tables import StatedTable

FIRST, SECOND = [0.6, 0.4], {0: [0.5, 0.5], 1: [0.8, 0.2]}
REWARDS, OTHER = {0: [0.0, 1.0], 1: [0.0, 2.0]}, {0: [0.0, 1.0], 1: [0.0, 0.0]}
DIRECT, CD = [0.7311, 1.2976], [0.5, 0.4]


def tilted(p: list[float], rewards: list[float]) -> list[float]:
    """p exp(r), normalised: the aligned second token."""
    weights = [chance * math.exp(r) for chance, r in zip(p, rewards, strict=True)]
    return [w / sum(weights) for w in weights]


def totals(found: list[float]) -> list[float]:
    return [math.log(p) + q for p, q in zip(FIRST, found, strict=True)]


def said(prompt: int = 1):
    """Probabilities of the toy after texts after one token."""
    return lambda text: FIRST if len(text) == prompt else SECOND[text[prompt]]


class Tilted:
    """An aligned model that says p exp(r) of the second token; what its reward is stands in its settings."""

    def __init__(self, rewards: dict[int, list[float]]):
        self.rewards, self.settings = rewards, {"reward": {"scorer": "keyword", "keywords": "other"}}

    def rows(self, texts: list[tuple[int, ...]]) -> torch.Tensor:
        return torch.tensor([tilted(SECOND[text[1]], self.rewards[text[1]]) for text in texts]).log()


@pytest.fixture
def toy(monkeypatch):
    """toy(rewards that the model is aligned to): the target; its scorer knows the rewards of whole texts."""

    def score(self, node, whole):
        text = self.lane.tree.text(node)[1:]
        known = OTHER if self.parameters["keywords"] == "other" else REWARDS
        return known[text[0]][text[1]] if len(text) == 2 else 0.0

    monkeypatch.setattr(scorers.Scorer, "score", score)

    def make(rewards) -> StatedTable:
        model = StatedTable(said(), 2)
        model.heads["aligned"] = Tilted(rewards)
        return model

    return make


def first_step(model, seed=0, chooser=None, tokens=2, **parameters):
    parameters = {"scorer": "keyword", "keywords": "any", "guidance": 1.0} | parameters
    lane = Lane("transfer_q", [0], {"target": model}, parameters, seed, Limits(tokens), chooser)
    lane.advance()
    lane.close()
    return lane.trace


def told(trace) -> list[Score]:
    """The totals of the first step's candidates, by token."""
    token = {e.node: e.token for e in trace.steps[0].of(Propose)}
    found = [e for e in trace.steps[0].of(Rank) if e.name == "total"]
    return sorted(found, key=lambda e: token[e.node])


def expected(model, **parameters) -> list[float]:
    """The values of both candidates, over everything that may be drawn."""

    def run(chooser):
        return tuple(e.parts["value"] for e in told(first_step(model, chooser=chooser, **parameters)))

    law = Exhaustive().distribution(run)
    return [sum(mass * found[token] for found, mass in law.items()) for token in (0, 1)]


def test_the_toy_s_numbers_by_hand():
    """Even with the exact aligned model its own law comes of the soft values alone."""
    direct = [value(REWARDS[z], REWARDS[z], 1.0, tilted(SECOND[z], REWARDS[z])) for z in (0, 1)]
    soft = [
        math.log(sum(p * math.exp(r) for p, r in zip(SECOND[z], REWARDS[z], strict=True))) for z in (0, 1)
    ]
    assert direct == pytest.approx(DIRECT, abs=1e-4) and soft == pytest.approx([0.6201, 0.8232], abs=1e-4)
    assert softmax(totals(direct)) == pytest.approx([0.4598, 0.5402], abs=1e-4)
    assert softmax(totals(CD)) == pytest.approx([0.6237, 0.3763], abs=1e-4)
    assert softmax(totals(soft)) == pytest.approx([0.5504, 0.4496], abs=1e-4)
    assert totals(direct) == pytest.approx([0.2202, 0.3813], abs=1e-4)
    assert totals(CD) == pytest.approx([-0.0108, -0.5163], abs=1e-4)


def test_another_reward_is_corrected_for_and_must_be_normalised():
    pairs = [(REWARDS[z], OTHER[z], tilted(SECOND[z], OTHER[z])) for z in (0, 1)]
    assert [value(r, b, 1.0, p) for r, b, p in pairs] == pytest.approx(DIRECT, abs=1e-4)
    rough = [value_of_code(r, b, p, sharpness=1.0) for r, b, p in pairs]
    assert rough == pytest.approx([0.7311, 2.9556], abs=1e-4)


def test_the_strategy_s_values_are_the_toy_s(toy):
    model = toy(REWARDS)
    assert expected(model) == pytest.approx(DIRECT, abs=1e-4)
    assert expected(model, variant="cd") == pytest.approx(CD, abs=1e-6)
    assert expected(model, variant="args") == [0.0, 0.0]


def test_indirect_weighs_what_it_drew_by_both_rewards(toy):
    """Two continuations of each: the ratio of the weighted sums, on average near the direct values."""
    model = toy(OTHER)
    for seed in range(8):
        trace = first_step(model, seed, variant="indirect", num_rollouts=2)
        ahead = [e for e in trace.steps[0].of(Propose) if e.source == "lookahead"]
        for at, score in enumerate(told(trace)):
            drawn = [e.token for e in ahead if e.parent == score.node]
            weights = [math.exp(REWARDS[at][t] - OTHER[at][t]) for t in drawn]
            want = sum(w * REWARDS[at][t] for w, t in zip(weights, drawn, strict=True)) / sum(weights)
            assert len(drawn) == 2 and score.parts["value"] == pytest.approx(want)
    with pytest.raises(ValueError, match="num_rollouts of at least 2"):
        first_step(model, variant="indirect")


def test_greedily_the_transferred_value_takes_what_controlled_decoding_passes_over(toy):
    """Sixteen continuations of each candidate, and the exact totals part by .16 and .5 nats."""
    model, taken = toy(REWARDS), {"direct": [], "cd": []}
    for variant, tokens in taken.items():
        for seed in range(20):
            trace = first_step(model, seed, variant=variant, num_rollouts=16)
            best = max(told(trace), key=lambda e: e.total)
            assert best.rank == 1 and best.total == pytest.approx(best.parts["logprob"] + best.parts["value"])
            tokens.append(trace.output()[0])
    assert sum(taken["direct"]) >= 11 > 4 >= sum(taken["cd"])


def test_drawn_tokens_follow_the_softmax_of_the_totals(toy):
    model = toy(REWARDS)
    model.heads["aligned"].rewards = {0: [0.0, 99.0], 1: [0.0, 99.0]}  # always the token with the reward
    law = Exhaustive().distribution(
        lambda chooser: first_step(model, chooser=chooser, temperature=1.0).output()[0]
    )
    want = softmax(totals([1.0, 2.0]))
    assert [law[0], law[1]] == pytest.approx(want, abs=1e-9)
    trace = first_step(model, temperature=1.0)
    (far,) = [e.total for e in trace.steps[0].of(Measure) if e.name == "nats from target"]
    assert far == pytest.approx(distance(want, FIRST))


def test_code_writes_five_greedy_tokens_and_args_none(tiny_model):
    plain = tiny_model("llama")
    model = LoadedModel(plain.name, plain.model, plain.tokenizer)
    model.heads["aligned"] = Aligned(Target.of(plain.model), 8, {"scorer": "length", "words": 3}).eval()
    settings = {"scorer": "length", "words": 2, "candidates": 3}
    for variant, most in {"code": 5, "args": 0}.items():
        lane = Lane("transfer_q", [40, 41], {"target": model}, settings | {"variant": variant}, 0, Limits(8))
        step = lane.advance()
        lane.close()
        ahead = [e for e in step.of(Propose) if e.source == "lookahead"]
        forwards = [e for e in step.of(Forward) if e.kind == "lookahead"]
        assert len(forwards) == most and len(ahead) <= 3 * most
        dead = {e.node for e in step.of(Verdict) if e.status == "pruned"}
        assert {e.node for e in ahead} <= dead
    assert lane.trace.badge == "deterministic"


def test_guidance_0_is_greedy_and_a_fresh_aligned_model_is_the_target(tiny_model):
    plain, prompt, limits = tiny_model("llama"), [40, 41, 42], Limits(10)
    model = LoadedModel(plain.name, plain.model, plain.tokenizer)
    model.heads["aligned"] = Aligned(Target.of(plain.model), 8).eval()
    want = tiny_models.generate(plain, prompt, max_new_tokens=10)
    settings = {"candidates": 3, "rollout_tokens": 3}
    greedy = Lane("transfer_q", prompt, {"target": model}, settings | {"guidance": 0.0}, 1, limits).run()
    assert greedy.output() == want
    direct = Lane("transfer_q", prompt, {"target": model}, settings, 1, limits).run()
    own = Lane("transfer_q", prompt, {"target": plain}, settings | {"variant": "cd"}, 1, limits).run()
    assert direct.output() == own.output()
    tokens = [[(e.token, e.source) for e in step.of(Propose)] for step in direct.steps]
    assert tokens == [[(e.token, e.source) for e in step.of(Propose)] for step in own.steps]


def test_without_an_aligned_model_the_target_itself_goes_on(tiny_model):
    trace = Lane(
        "transfer_q",
        [40],
        {"target": tiny_model("llama")},
        {"candidates": 2, "rollout_tokens": 2},
        0,
        Limits(2),
    ).run()
    (note,) = [note.text for step in trace.steps for note in step.of(Note)]
    assert note.startswith("No aligned model comes with the project for the target 'tiny-llama'")
