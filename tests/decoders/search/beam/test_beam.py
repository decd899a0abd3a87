"""Beam search equals transformers' `generate(num_beams=...)`: text, all returned sequences, their scores;
and tells all.
"""

import random

import pytest
import torch
import transformers

from decoders.chooser import Exhaustive
from decoders.lane import Lane, Limits
from decoders.models import loading
from decoders.models.table_model import TableModel
from decoders.search.beam.hypotheses import returned
from decoders.trace.events import Commit, Forward, Propose, Verdict
from decoders.trace.scores import Rank
from tests.helpers import tiny_models

SORTS = tuple(map(int, transformers.__version__.split(".")[:2])) >= (5, 24)
STOPPING = {"false": False, "true": True, "never": "never"}


def run(model, prompt: list[int], new_tokens: int = 12, strategy: str = "beam", **parameters) -> Lane:
    """A finished lane."""
    lane = Lane(strategy, prompt, {"target": model}, parameters, limits=Limits(max_new_tokens=new_tokens))
    lane.run()
    return lane


def settings(seed: int) -> tuple[list[int], int, dict]:
    """A random prompt, length limit and set of parameters."""
    luck = random.Random(seed)
    prompt = [luck.randrange(256) for _ in range(luck.randrange(1, 12))]
    beams = luck.choice([2, 2, 3, 4, 5])
    parameters = {
        "num_beams": beams,
        "length_penalty": luck.choice([-1.0, 0.0, 0.7, 1.0, 1.0, 2.0]),
        "early_stopping": luck.choice(list(STOPPING)),
        "num_return_sequences": luck.randint(1, beams),
    }
    return prompt, luck.choice([1, 2, 5, 12, 20]), parameters


def theirs(
    model, prompt: list[int], new_tokens: int, parameters: dict
) -> tuple[list[list[int]], list[float]]:
    """All sequences and scores that transformers returns."""
    ids = torch.tensor([prompt])
    made = model.model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        do_sample=False,
        max_new_tokens=new_tokens,
        output_scores=True,
        return_dict_in_generate=True,
        **parameters | {"early_stopping": STOPPING[parameters["early_stopping"]]},
    )
    sequences = [tiny_models.cut(row[len(prompt) :].tolist(), model) for row in made.sequences]
    return sequences, made.sequences_scores.tolist()


@pytest.mark.parametrize("kind", ["llama", "qwen2", "gpt2"])
def test_every_returned_sequence_and_score_equals_generate(kind, tiny_model):
    model, ended = tiny_model(kind), 0
    for seed in range(30 if kind == "llama" else 10):
        prompt, new_tokens, parameters = settings(seed)
        sequences, scores = theirs(model, prompt, new_tokens, parameters)
        lane = run(model, prompt, new_tokens, **parameters)
        ours = returned(lane.trace)
        assert [tokens for tokens, _ in ours] == sequences, (seed, parameters)
        assert [score for _, score in ours] == pytest.approx(scores, rel=1e-5, abs=1e-5)
        assert lane.trace.output() == sequences[0]
        ended += any(tokens[-1] in model.eos for tokens in sequences)
    assert kind != "llama" or ended > 5  # else end of text was never tested


@pytest.mark.parametrize(
    ("early_stopping", "text"),
    [
        ("false", "Once upon a time, there was a little"),
        ("true", 'The fox said: "'),
        ("never", "Tom and his dog. The end"),
    ],
)
def test_the_shipped_model_equals_generate_too(early_stopping, text):
    model = loading.load("llama-tiny", "cpu")
    parameters = {"num_beams": 4, "length_penalty": 1.0, "early_stopping": early_stopping}
    parameters["num_return_sequences"] = 4
    prompt = model.encode(text)
    sequences, scores = theirs(model, prompt, 24, parameters)
    ours = returned(run(model, prompt, 24, **parameters).trace)
    assert [tokens for tokens, _ in ours] == sequences
    assert [score for _, score in ours] == pytest.approx(scores, rel=1e-5, abs=1e-5)


def test_several_end_tokens_are_treated_as_generate_does():
    model = tiny_models.make("llama", seed=3)
    model.model.generation_config.eos_token_id = [5, 17, 44, 90, 91, 120, 200, 258]
    assert len(model.eos) == 8
    ended = 0
    for seed in range(20):
        prompt, new_tokens, parameters = settings(100 + seed)
        sequences, scores = theirs(model, prompt, new_tokens, parameters)
        ours = returned(run(model, prompt, new_tokens, **parameters).trace)
        assert [tokens for tokens, _ in ours] == sequences, (seed, parameters)
        assert [score for _, score in ours] == pytest.approx(scores, rel=1e-5, abs=1e-5)
        ended += sum(tokens[-1] in model.eos for tokens in sequences)
    assert ended > 10


def test_one_beam_is_greedy_as_in_generate(tiny_model):
    model = tiny_model("llama")
    for seed in range(6):
        prompt = settings(seed)[0]
        assert (
            run(model, prompt, num_beams=1).trace.output()
            == run(model, prompt, strategy="greedy").trace.output()
        )


def test_a_hand_worked_example_where_greedy_misses_the_likeliest_text():
    """From "a": b .6 then c or d .5 each (.3); c .4 then d .9 (.36). Greedy takes b, two beams find c d."""
    rows = {0: (0, 0.6, 0.4, 0), 1: (0, 0, 0.5, 0.5), 2: (0, 0.05, 0.05, 0.9), 3: (1, 0, 0, 0)}
    model = TableModel(lambda past: rows[past[-1]], 4)
    assert run(model, [0], 2, strategy="greedy").trace.output() == [1, 2]
    lane = run(model, [0], 2, num_beams=2, length_penalty=0.0, num_return_sequences=2)
    probabilities = [
        (tokens, pytest.approx(torch.tensor(score).exp().item())) for tokens, score in returned(lane.trace)
    ]
    assert probabilities == [([2, 3], 0.36), ([1, 2], 0.3)]


def test_the_length_penalty_counts_generated_tokens_only():
    """One certain text of three tokens: its score is sum log p / 3, whatever the length of the prompt."""
    model = TableModel(
        lambda past: (0.5, 0.5, 0.0) if len(past) < 9 else (0.0, 0.0, 1.0), 3, eos=frozenset({2})
    )
    lane = run(model, [0] * 7, 3, num_beams=2, length_penalty=1.0)
    assert returned(lane.trace)[0][1] == pytest.approx(2 * torch.tensor(0.5).log().item() / 3)


def test_every_candidate_is_told_and_every_leaf_is_judged(tiny_model):
    for seed in range(12):
        prompt, new_tokens, parameters = settings(seed)
        lane = run(tiny_model("llama"), prompt, new_tokens, **parameters)
        beams, known, judged, live = parameters["num_beams"], {}, {}, {len(prompt) - 1}
        for step in lane.trace.steps:
            proposed = step.of(Propose)
            assert len(proposed) == 2 * beams
            assert [p.slot for p in proposed] == list(range(2 * beams))
            assert {p.parent for p in proposed} <= live
            kept = [s for s in step.of(Rank) if s.name == "sum_logprob"]
            assert [s.rank for s in kept] == list(range(1, len(kept) + 1))
            assert [s.total for s in kept] == sorted((s.total for s in kept), reverse=True)
            judged.update((v.node, v) for v in step.of(Verdict))
            before, live = live, {s.node for s in kept}
            assert len(live) in (0, beams)
            ended = before - {p.parent for p in proposed} - {len(prompt) - 1}
            assert all(judged[node].status == "pruned" for node in ended)
            assert {p.node for p in proposed} == live | {p.node for p in proposed if p.node in judged}
            known.update((p.node, p.parent) for p in proposed)
            for score in kept:  # the sum is the sum over the path
                total, node = 0.0, score.node
                while node in known:
                    total += next(
                        p.logprob for s in lane.trace.steps for p in s.of(Propose) if p.node == node
                    )
                    node = known[node]
                assert score.total == pytest.approx(total, rel=1e-5)
        leaves = set(known) - set(known.values())
        assert leaves <= set(judged)
        assert all(v.reason for v in judged.values())
        statuses = [v.status for v in judged.values()]
        assert statuses.count("finished") == beams
        assert set(statuses) == {"finished", "pruned"}


def below_the_prompt(found, node: int) -> list[int]:
    """The nodes from the prompt's end (left out) down to `node`."""
    nodes, path = found.nodes(), []
    while node >= len(found.prompt):
        path.insert(0, node)
        node = nodes[node][0]
    return path


def test_text_is_committed_as_soon_as_all_that_can_win_agree(tiny_model):
    early = 0
    for seed in range(12):
        prompt, _, parameters = settings(seed)
        lane = run(
            tiny_model("llama", seed), prompt, 20, **parameters | {"num_beams": 3, "num_return_sequences": 1}
        )
        committed, finished = [], {}

        for step in lane.trace.steps:
            committed += [n for c in step.of(Commit) for n in c.nodes]
            scores = step.of(Rank)
            finished.update((s.node, s.total) for s in scores if s.name == "length_penalised")
            can_win = [below_the_prompt(lane.trace, s.node) for s in scores if s.name == "sum_logprob"]
            can_win += [below_the_prompt(lane.trace, max(finished, key=finished.get))] if finished else []
            same = [level[0] for level in zip(*can_win, strict=False) if len(set(level)) == 1]
            assert committed == same
            early += bool(committed) and step is not lane.trace.steps[-1]
        assert below_the_prompt(lane.trace, committed[-1]) == committed
    assert early > 10


def test_one_forward_scores_the_new_leaves_and_dead_limbs_give_slots_back(tiny_model):
    model = tiny_model("gpt2")
    lane = Lane("beam", [3, 4, 5], {"target": model}, {}, limits=Limits(max_new_tokens=60))
    while step := lane.advance():
        forwards = step.of(Forward)
        assert len(forwards) == 1
        assert forwards[0].tokens == (3 if step.index == 0 else 4)
        if (
            lane.trace.ended is None
        ):  # the slots in use are those of the limbs to live and finished hypotheses
            held = set(lane.scorers["target"].slots)
            nodes, needed = lane.trace.nodes(), set()
            ends = [s.node for s in step.of(Rank) if s.name == "sum_logprob"] + [
                v.node for s in lane.trace.steps for v in s.of(Verdict) if v.status == "finished"
            ]
            for node in ends:
                while (node := nodes[node][0]) >= 3:
                    needed.add(node)
            assert held == needed
    assert model.engine.cache.used == 0


def test_more_sequences_than_beams_is_one_sentence(tiny_model):
    with pytest.raises(ValueError, match="num_return_sequences is 3, but only 2 beams are kept; ask for"):
        run(tiny_model(), [1], num_beams=2, num_return_sequences=3)


def test_a_stopped_search_returns_nothing(tiny_model):
    lane = Lane("beam", [3, 4, 5], {"target": tiny_model()}, {}, limits=Limits(max_new_tokens=60))
    lane.advance()
    lane.close()
    assert returned(lane.trace) == []


@pytest.mark.skipif(SORTS, reason="this generate continues with the most likely of what it drew")
def test_beam_sampling_has_the_law_of_generate(tiny_model):
    """The exact law of ours, by walking all draws, against how often `generate` writes each text."""
    model, prompt = tiny_model("llama"), [40, 41, 42]
    parameters = {"num_beams": 2, "top_k": 4, "temperature": 2.0, "do_sample": True}

    def text(chooser):
        lane = Lane("beam", prompt, {"target": model}, parameters, limits=Limits(1), chooser=chooser)
        return lane.run().output()[0]

    law = Exhaustive().distribution(text)
    ids = torch.tensor([prompt])
    torch.manual_seed(0)
    drawn = [
        int(
            model.model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=1, **parameters)[
                0, 3
            ]
        )
        for _ in range(200)
    ]
    assert set(drawn) <= law.keys() and len(law) >= 3
    assert sum(abs(drawn.count(token) / 200 - p) for token, p in law.items()) / 2 < 0.1


def test_beam_sampling_follows_its_seed_and_needs_a_temperature(tiny_model):
    def texts(seed, **more):
        asked = {"num_beams": 3, "num_return_sequences": 3, "do_sample": True, "temperature": 2.0} | more
        lane = Lane("beam", [7, 8], {"target": tiny_model()}, asked, seed, Limits(8))
        lane.run()
        return lane.trace.badge, returned(lane.trace)

    assert texts(1) == texts(1) and texts(1)[0] == "sampled"
    assert len({str(texts(seed)) for seed in range(6)}) > 3
    with pytest.raises(ValueError, match="At temperature 0 nothing is drawn"):
        texts(1, temperature=0.0)
