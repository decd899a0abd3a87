"""Adaptive parallel decoding: agreement under common noise by hand and by sampling, and its limits."""

import math

import pytest
import torch

from decoders.diffusion.methods.apd import both_win, mixture, sampled_from
from decoders.lane import Lane, Limits
from decoders.models.loading import load
from decoders.trace.events import Cell, Commit, Forward, Propose, Verdict

PROMPT = [40, 41, 42]
CASES = [  # pD, pA, R, the mixture, P(same winner), 1 - total variation
    ((0.8, 0.2), (0.3, 0.7), 0.5, (0.56697, 0.43303), 0.76697, 0.76697),
    ((0.6, 0.3, 0.1), (0.2, 0.2, 0.6), 0.5, (0.41421, 0.29289, 0.29289), 0.76421, 0.80711),
]


def logs(values) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64).log()


@pytest.mark.parametrize("p,q,weight,mixed,agreement,overlap", CASES)
def test_agreement_by_hand_and_by_sampling(p, q, weight, mixed, agreement, overlap):
    found = mixture(logs(p), logs(q), weight)
    assert found.exp().tolist() == pytest.approx(mixed, abs=1e-5)
    equal = [both_win(logs(p), found, i) for i in range(len(p))]
    assert sum(equal) == pytest.approx(agreement, abs=1e-5)
    assert float(torch.minimum(logs(p).exp(), found.exp()).sum()) == pytest.approx(overlap, abs=1e-5)
    generator = torch.Generator().manual_seed(0)
    noise = -(-torch.rand(200_000, len(p), generator=generator, dtype=torch.float64).log()).log()
    one, two = (logs(p) + noise).argmax(-1), (found + noise).argmax(-1)
    assert float((one == two).double().mean()) == pytest.approx(agreement, abs=0.003)
    counted = one[one == two].bincount(minlength=len(p)).double() / len(one)
    assert counted.tolist() == pytest.approx(equal, abs=0.003)


def test_an_accepted_token_follows_neither_distribution():
    p, _, _, mixed, _, _ = CASES[0]
    equal = torch.tensor([both_win(logs(p), logs(mixed), i) for i in range(2)])
    assert (equal / equal.sum()).tolist() == pytest.approx([0.7392, 0.2608], abs=1e-4)


def test_the_temperature_is_applied_once():
    """Two symbols with logits 1 and 0 at T = .5: the second has .119, not the .018 of T squared."""
    logprobs = torch.tensor([[1.0, 0.0]], dtype=torch.float64).log_softmax(-1)
    assert float(sampled_from(logprobs, 0.5, 1.0)[0, 1].exp()) == pytest.approx(0.1192, abs=1e-4)
    assert float(sampled_from(logprobs, 1.0, 0.7)[0, 1]) == -math.inf


def test_impossible_tokens_win_nowhere():
    p, q = logs((1.0, 0.0)), logs((0.5, 0.5))
    assert both_win(p, q, 1) == 0.0 and both_win(p, q, 0) == pytest.approx(0.5)
    for weight in (0.0, 0.5, 1.0):
        assert not mixture(p, q, weight).isnan().any()


def run(models, parameters=None, tokens=16, seed=0, prompt=PROMPT):
    return Lane("apd", list(prompt), models, parameters, seed, Limits(tokens)).run()


@pytest.fixture(scope="module")
def models(tiny_model):
    return {"target": tiny_model("masked"), "draft": tiny_model("llama", 1)}


@pytest.mark.parametrize("temperature", [0.0, 0.5, 1.0])
def test_at_a_weight_of_1_all_is_accepted(models, temperature):
    for seed in range(3):
        given = {"mixture_weight": 1.0, "temperature": temperature, "look_ahead": 8}
        found = run(models, given, seed=seed)
        assert found.costs.accepted == found.costs.proposed == len(found.output())


def test_with_one_mask_the_small_model_decides_nothing(models):
    texts = {w: run(models, {"mixture_weight": w, "look_ahead": 1}).output() for w in (0.0, 0.5, 1.0)}
    assert texts[0.0] == texts[0.5] == texts[1.0]
    target, text = models["target"], list(PROMPT)
    for token in run(models, {"look_ahead": 1, "temperature": 0.0}).output():  # left to right, by hand
        row = torch.tensor([[*text, target.engine.mask]])
        logits = target.model(row, attention_mask=torch.zeros(1, 1, len(text) + 1, len(text) + 1)).logits
        assert token == int(logits[0, -1, : target.engine.vocabulary].argmax())
        text.append(token)


def test_at_a_weight_and_temperature_of_0_what_follows_is_the_small_model_s_argmax():
    shipped = {"target": load("llama-tiny"), "draft": load("llama-tiny-draft-distilled")}
    prompt = shipped["target"].encode("Sam from London has a bird and is 38. As json:\n")
    found = run(shipped, {"mixture_weight": 0.0, "temperature": 0.0}, 50, prompt=prompt)
    text = [*prompt, *found.output()]
    best = shipped["draft"].model(torch.tensor([text])).logits[0].argmax(-1).tolist()
    at = followed = 0
    for step in found.steps:
        (commit,) = step.of(Commit)
        for i in range(1, len(commit.nodes)):
            assert text[len(prompt) + at + i] == best[len(prompt) + at + i - 1]
            followed += 1
        at += len(commit.nodes)
    assert followed > 20


def test_a_round_is_a_forward_of_each_and_keeps_at_least_one(models):
    found = run(models, {"look_ahead": 4, "temperature": 1.0, "mixture_weight": 0.3})
    nodes, statuses = found.nodes(), []
    for step in found.steps:
        (commit,) = step.of(Commit)
        verdicts = {v.node: v for v in step.of(Verdict)}
        statuses += [v.status for v in verdicts.values()]
        drafted = [p for p in step.of(Propose) if p.source == "draft"]
        known = len(drafted) == 1  # an end of text, and the small model has read what stands before it
        assert [f.model for f in step.of(Forward)] in (["target", "draft"], ["target"] if known else [])
        assert [p.node for p in drafted][: len(commit.nodes)] == commit.nodes
        for event in (p for p in step.of(Propose) if p.source == "mixture"):
            loser = next(p for p in drafted if p.parent == event.parent)
            assert loser.token != event.token and verdicts[loser.node].status in ("rejected", "forced")
        cells = {c.position: c for c in step.of(Cell) if c.state in ("committed", "forced")}
        assert [cells[p].token for p in sorted(cells)] == [nodes[n][1] for n in commit.nodes]
    assert {"accepted", "rejected", "forced"} <= set(statuses)


def test_the_recorded_probability_of_acceptance_is_right(models):
    """Over many seeds the first drafted token passes as often as its recorded probability says."""
    passed, expected = 0, 0.0
    for seed in range(200):
        lane = Lane("apd", PROMPT, models, {"temperature": 1.0, "look_ahead": 1}, seed, Limits(1))
        verdict = lane.advance().of(Verdict)[0]
        lane.close()
        passed, expected = passed + (verdict.status == "accepted"), expected + verdict.acceptance
    assert passed == pytest.approx(expected, abs=20)
