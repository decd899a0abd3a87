"""RAPID: the dossier's worked numbers, exact at eta 0, the same as plain drafting if all chunks are read, and
what is retrieved.
"""

import pytest
import torch

from decoders.chooser import Exhaustive, Random
from decoders.engine.tree import Tree
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel, exact_distribution
from decoders.speculative.drafters.retrieved_context import best, bm25, chunked
from decoders.speculative.interfaces import Draft, VerifierInput
from decoders.speculative.verifiers.adjusted_target import adjusted, adjusted_target, still_wanted
from decoders.testing import distance, random_table, shape_of
from decoders.trace.events import Forward, Note
from tests.helpers.losslessness import first_token

P, Q = (torch.tensor(x, dtype=torch.float64) for x in ((0.5, 0.3, 0.2), (0.2, 0.7, 0.1)))
PROMPT = [2, 0, 1, 1, 2, 0]
SHORT = {"chunk_size": 2, "chunks": 1, "query_tokens": 1, "num_assistant_tokens": 2}
SHORT["assistant_confidence_threshold"] = 0.0


def inputs(chooser) -> tuple[VerifierInput, Tree]:
    """One token drawn from Q below a one-token prompt, where the target gives P."""
    tree, draft = Tree([0]), Draft(0)
    node = tree.add(0, chooser.categorical(Q, ("draft",)).value)
    draft.nodes, draft.children = [node], {0: [node]}
    draft.q[0], draft.scores[0] = Q, Q.log()
    return VerifierInput(draft, tree.tokens, {0: P}, chooser, 0), tree


@pytest.mark.parametrize(
    "eta, near, acceptance, emission",
    [
        (0.0, (0.5, 0.3, 0.2), 0.6, (0.5, 0.3, 0.2)),
        (1.0, (0.3708, 0.4480, 0.1812), 0.7480, (0.3890, 0.4480, 0.1630)),
        (2.0, None, 0.9038, (0.2722, 0.6038, 0.1241)),
        (10.0, (0.0015, 0.9940, 0.0045), 0.7060, (0.2127, 0.7000, 0.0873)),
    ],
)
def test_the_worked_example(eta, near, acceptance, emission):
    moved = adjusted(P, Q, eta, 0.0)
    if near:
        assert moved.tolist() == pytest.approx(near, abs=1e-4)
    assert float(torch.minimum(moved, Q).sum()) == pytest.approx(acceptance, abs=1e-4)
    verifier = adjusted_target(eta, 0.0, 1.0)

    def run(chooser):
        asked, tree = inputs(chooser)
        return first_token((verifier.verify(asked), tree))

    found = Exhaustive().distribution(run)
    assert [found[t] for t in range(3)] == pytest.approx(emission, abs=1e-4)
    told = verifier.distribution(inputs(Random(0))[0], 0)
    assert told.tolist() == pytest.approx([found[t] for t in range(3)], abs=1e-12)


def test_the_residual_of_the_worked_example_and_the_mask():
    assert still_wanted(P, Q, adjusted(P, Q, 1.0, 0.0)).tolist() == pytest.approx([0.75, 0.0, 0.25])
    masked = adjusted(P, Q, 2.0, 0.2)  # the third token has less than a fifth of the draft's best
    assert float(masked[2] / masked[0]) == pytest.approx(0.2 / (0.5 * 2.718281828 ** (-2 * 0.3)), rel=1e-6)
    assert still_wanted(P, P, P).tolist() == P.tolist()


def law_of(models, parameters, length):
    def run(chooser):
        lane = Lane("rapid", PROMPT, models, parameters, limits=Limits(length), chooser=chooser)
        return tuple(lane.run().output())

    return Exhaustive().distribution(run)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("shape", [{"temperature": 1.0}, {"temperature": 0.7, "top_k": 2}])
@pytest.mark.parametrize("eos", [frozenset(), frozenset({1})])
def test_at_eta_0_the_law_is_the_target_s(seed, shape, eos):
    model = TableModel(random_table(seed, 3, 1.5), 3, eos)
    found = law_of({"target": model}, {**SHORT, **shape}, 3)
    assert distance(found, exact_distribution(model, tuple(PROMPT), 3, shape_of(shape))) < 1e-12
    bent = law_of({"target": model}, {**SHORT, **shape, "eta": 5.0}, 3)
    assert distance(bent, exact_distribution(model, tuple(PROMPT), 3, shape_of(shape))) > 1e-3


@pytest.mark.parametrize("seed", range(5))
def test_at_temperature_0_and_eta_0_the_text_is_greedys(seed):
    models = {"target": TableModel(random_table(seed, 3, 1.5), 3)}
    greedy = Lane("greedy", PROMPT, models, limits=Limits(20)).run().output()
    found = Lane("rapid", PROMPT, models, SHORT, limits=Limits(20)).run()
    assert found.output() == greedy and found.badge == "lossless: equal to greedy"
    bent = Lane("rapid", PROMPT, models, {**SHORT, "eta": 20.0}, limits=Limits(20)).run()
    assert bent.badge == "relaxed" and 0.0 <= bent.costs.mean_total_variation <= 1.0


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("eta", [0.0, 5.0, 50.0])
def test_with_the_whole_prompt_everything_is_accepted_whatever_eta_is(tiny_model, temperature, eta):
    whole = {"query_tokens": 256, "assistant_confidence_threshold": 0.0}
    parameters = {**whole, "temperature": temperature, "eta": eta}
    prompt = [40, 41, 42, 40, 41, 50, 51]
    found = Lane("rapid", prompt, {"target": tiny_model("llama")}, parameters, limits=Limits(19)).run()
    totals = found.costs.totals()
    assert totals["accepted"] > 0
    assert totals["accepted"] == totals["proposed"] or found.output()[-1] in tiny_model("llama").eos
    assert found.costs.mean_total_variation in (None, pytest.approx(0.0, abs=1e-4))


def test_the_draft_reads_the_chunks_that_share_words_with_the_end(tiny_model):
    model = tiny_model("llama")
    facts = ["Tom has a dog. ", "The sky is blue. ", "Zoe has a fox. ", "Rain is wet. "]
    prompt = model.encode("".join(facts) + "What has Zoe")
    parameters = {"chunk_size": 16, "chunks": 1, "query_tokens": len(model.encode("What has Zoe"))}
    lane = Lane("rapid", prompt, {"target": model}, parameters, limits=Limits(6))
    step = lane.advance()
    view = lane.scorers["draft"].tree
    read = b"".join(model.bytes_of(t) for t in view.tokens[: view.trunk])
    assert b"Zoe has a fox" in read and b"dog" not in read
    assert "chunks before it those that share most with that end: 3." in step.of(Note)[0].text
    drafts = [f for f in step.of(Forward) if f.model == "draft"]
    assert drafts[0].scope == f"{view.trunk} tokens in place of the prompt's {len(prompt)}"
    assert drafts[0].tokens == view.trunk
    lane.close()
    assert model.engine.cache.used == 0


def test_chunks_end_at_sentences_and_ranks_prefer_rare_tokens():
    assert chunked([1, 9, 2, 3, 4, 9, 5], 4, frozenset({9})) == [(0, 2), (2, 6), (6, 7)]
    assert chunked([1, 2, 3, 4, 5], 2, frozenset()) == [(0, 2), (2, 4), (4, 5)]
    assert chunked([], 2, frozenset()) == []
    found = bm25([7, 1], [[1, 2, 3], [1, 7, 4], [1, 5, 6]])
    assert found[1] > found[0] == found[2] > 0.0
    assert best([0.5, 0.0, 2.0, 0.7], 2) == [2, 3] and best([0.5, 0.0], 2) == [0] and best([], 3) == []
