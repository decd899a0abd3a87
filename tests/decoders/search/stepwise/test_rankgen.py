"""RankGen: nucleus sampling with one sample, nested samples, blocks and beams, loss and reading."""

import math

import pytest
import torch

from decoders.heads import Ranker, Reward, Target, take_taps
from decoders.heads.scorers.ranker import summary
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.search.stepwise.rankgen import NO_RANKER, Search
from decoders.trace.events import Commit, Forward, Note, Propose, Verdict
from decoders.trace.scores import Rank, Score
from tests.helpers import tiny_models

END = 0


def run(model, prompt, new_tokens=24, seed=0, strategy="rankgen", **parameters):
    limits = Limits(max_new_tokens=new_tokens)
    return Lane(strategy, list(prompt), {"target": model}, parameters, seed, limits).run()


def of(trace, kind) -> list:
    return [event for step in trace.steps for event in step.of(kind)]


def rewards(trace) -> list[Score]:
    return [e for e in of(trace, Rank) if e.name == "reward"]


@pytest.fixture
def model():
    return tiny_models.make(endings=0.05)


@pytest.fixture
def ranked(model):
    """A target with a ranker of random weights."""
    torch.manual_seed(0)
    model.heads["ranker"] = Ranker(Target.of(model.model), inner=8, width=4).eval()
    return model


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("block", [0, 5])
def test_one_sample_of_one_beam_is_nucleus_sampling(ranked, prompt, seed, block):
    alone = run(ranked, prompt, seed=seed, num_samples=1, num_beams=1, block_length=block)
    plain = run(ranked, prompt, seed=seed, strategy="sample", top_p=0.9)
    assert alone.output() == plain.output()


@pytest.mark.parametrize("seed", range(4))
def test_more_samples_never_lower_the_best_score_of_whole_texts(ranked, prompt, seed):
    best = []
    for samples in (1, 2, 4, 8):
        trace = run(ranked, prompt, 12, seed, num_samples=samples, num_beams=1, block_length=0)
        assert len(rewards(trace)) == samples
        (first,) = (e for e in rewards(trace) if e.rank == 1)
        assert of(trace, Commit)[-1].nodes[-1] == first.node
        best.append(first.total)
    assert all(fewer <= more + 1e-5 for fewer, more in zip(best, best[1:], strict=False))


def test_the_loss_of_vectors_that_say_nothing_is_the_log_of_all_candidates(model):
    ranker = Ranker(Target.of(model.model))
    for network in (ranker.pre, ranker.suf):
        torch.nn.init.zeros_(network[-1].weight)
        torch.nn.init.zeros_(network[-1].bias)
    batch = torch.randn(3, 6, 2 * model.model.config.hidden_size)
    assert float(ranker.loss(*batch)) == pytest.approx(math.log(2 * 6))


def test_in_the_first_round_all_samples_compete_and_then_those_of_each_beam(ranked, prompt):
    """Three beams, two samples each: six blocks in every round; of the losers no node is output."""
    trace = run(ranked, prompt, 12, num_samples=2, num_beams=3, block_length=4, min_new_tokens=12)
    rounds = [[e for e in step.of(Rank) if e.name == "reward"] for step in trace.steps]
    assert [len(some) for some in rounds if some] == [6, 6, 6]
    assert [e.rank for e in rounds[0]] == [1, 2, 3, 4, 5, 6]
    assert [e.total for e in rounds[0]] == sorted((e.total for e in rounds[0]), reverse=True)
    pruned = {v.node for v in of(trace, Verdict) if v.status == "pruned"}
    committed = [node for c in of(trace, Commit) for node in c.nodes]
    assert len(committed) == 12 and not pruned & set(committed)
    assert committed[-1] == next(e.node for e in rounds[2] if e.rank == 1)


def test_a_text_is_scored_from_the_prompt_on_as_if_it_stood_alone(ranked, prompt):
    """The dot product of the prompt's vector and that of all that was written, without its end of text."""
    trace = run(ranked, prompt, 12, num_samples=2, num_beams=2, block_length=4)
    nodes, taps = trace.nodes(), lambda tokens: take_taps(ranked.model, torch.tensor([tokens])).hidden[0]
    fits = ranked.heads["ranker"].vector(taps(prompt), prefix=True)
    for said in rewards(trace):
        tokens, node = [], said.node
        while node >= len(prompt):
            node, token = nodes[node]
            tokens.insert(0, token)
        own = [t for t in tokens if t not in ranked.eos] or tokens
        assert said.total == pytest.approx(
            float(fits @ ranked.heads["ranker"].vector(taps(own), False)), abs=1e-4
        )


def test_what_was_read_is_not_read_again(ranked, prompt):
    """Besides prompt and blocks each token is read once more, for itself."""
    trace = run(ranked, prompt, 12, num_samples=2, num_beams=2, block_length=4, min_new_tokens=12)
    value = [f for f in of(trace, Forward) if f.kind == "value"]
    written = len(of(trace, Propose))
    assert sum(f.tokens for f in value[1:]) == written and len(value) == 1 + 3


def ends_early(past) -> list[float]:
    """The second token ends the text, or two others come."""
    return [0.5, 0.25, 0.25]


def test_a_text_that_has_ended_takes_part_as_it_is():
    """By likelihood: of two beams one may have ended; it stays until better ones come, and never grows."""
    table = TableModel(ends_early, 3, eos=frozenset({END}))
    for seed in range(8):
        trace = run(table, [1], 6, seed, scorer="likelihood", num_samples=2, num_beams=2, block_length=2)
        scores = {e.node: e.total for e in rewards(trace)}
        last = of(trace, Commit)[-1].nodes[-1]
        assert scores[last] == pytest.approx(sum(trace_logprobs(trace)) / len(trace.output()))
        ended = [v.node for v in of(trace, Verdict) if v.status == "finished"]
        assert not {parent for parent, _ in trace.nodes().values()} & set(ended)


def trace_logprobs(trace) -> list[float]:
    return [p for c in of(trace, Commit) for p in c.logprobs]


def test_each_prompt_has_rounds_of_its_own(ranked, prompt):
    """A lane's text does not hang on what was decoded before it."""
    alone = run(ranked, prompt, 12, block_length=5).output()
    run(ranked, prompt[:3], 7, block_length=5)
    assert run(ranked, prompt, 12, block_length=5).output() == alone


def test_a_rule_ranks_texts_of_any_model():
    """Best of eight by a keyword: found wherever one of them has it."""
    words = TableModel(lambda past: [0.6, 0.1, 0.3], 3, words=[" ant", " bee", " cat"])
    settings = {"scorer": "keyword", "keywords": "bee", "num_samples": 8, "num_beams": 1, "block_length": 0}
    for seed in range(6):
        trace = run(words, [0], 4, seed, **settings, top_p=1.0)
        assert (1 in trace.output()) == any(e.token == 1 for e in of(trace, Propose))


def test_best_of_n_by_the_reward_head(model, prompt):
    """The same search asks the reward head where it is the scorer."""
    model.heads["reward"] = Reward(Target.of(model.model)).eval()
    trace = run(model, prompt, 8, scorer="reward", num_samples=4, num_beams=1, block_length=0)
    assert len(rewards(trace)) == 4 and all(0 < e.total < 1 for e in rewards(trace))


def test_without_a_ranker_texts_are_ranked_by_likelihood_and_the_lane_says_so(model, prompt):
    trace = run(model, prompt)
    assert of(trace, Note)[0].text == NO_RANKER.format("tiny-llama")
    assert trace.output() == run(model, prompt, scorer="likelihood").output()


def test_a_text_that_no_token_may_follow_ends_with_a_sentence():
    table = TableModel(lambda past: [1.0, 0.0], 2, words=[" a", " b"])
    trace = run(table, [1], 4, bad_words_ids="#0, #1", scorer="likelihood", block_length=2)
    assert trace.output() == [] and trace.ended.startswith("The processors left no token")


def test_a_summary_is_the_mean_and_the_last_state():
    states = torch.arange(12.0).view(1, 6, 2)
    assert summary(states, torch.tensor([4])).tolist() == [[3.0, 4.0, 6.0, 7.0]]
    assert torch.equal(summary(states[0, :4], torch.tensor([4])), summary(states, torch.tensor([4])))


def test_temperature_0_writes_one_block_a_round(ranked, prompt):
    trace = run(ranked, prompt, 12, temperature=0.0, block_length=4)
    assert trace.output() == run(ranked, prompt, 12, strategy="greedy").output()
    lane = Lane("rankgen", list(prompt), {"target": ranked}, {"temperature": 0.0})
    search = Search(lane)
    search.advance()
    assert len(search.beams) == 1
    lane.close()
