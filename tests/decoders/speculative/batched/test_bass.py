"""BASS: one forward serves all texts, each is what it would be alone, and the draft length follows all."""

import math

import pytest

from decoders import registry
from decoders.chooser import Exhaustive
from decoders.engine.sequence_engine import SequenceEngine
from decoders.lane import Lane, Limits
from decoders.models.loaded_model import LoadedModel
from decoders.models.table_model import TableModel, exact_distribution
from decoders.speculative.batched.shared_batch import MAX_TEXTS
from decoders.testing import distance, random_table, shape_of
from decoders.trace.events import Forward, Propose
from decoders.trace.scores import Measure
from tests.helpers.batch_results import accepted, alone, cousins, drafted, rounds, run, written

PROMPTS = ["Lily had a big wish.", "Once", "The old man looked at the sky", "aa aa aa"]


@pytest.fixture(scope="module")
def models():
    return cousins()


def tables(vocabulary: int = 2) -> dict[str, TableModel]:
    return {
        "target": TableModel(random_table(1, vocabulary, 1.5), vocabulary),
        "draft": TableModel(random_table(2, vocabulary, 1.5), vocabulary),
    }


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_every_text_is_what_it_is_alone(kind):
    models = cousins(kind)
    want = [alone(models, prompt, 14) for prompt in PROMPTS]
    for count in (1, 2, 4):
        trace = run("bass", models, PROMPTS[:count], 14)
        assert list(written(trace).values()) == want[:count]
    verdicts = {cell.state for texts in rounds(trace) for cells in texts.values() for cell in cells}
    assert verdicts >= {"accepted", "rejected", "never reached", "resampled", "bonus"}


def test_a_draft_that_is_always_right_and_one_that_is_never_right(models):
    right = {"target": models["target"], "draft": models["target"]}
    trace = run("bass", right, PROMPTS, 20)
    assert all(accepted(c) == len(drafted(c)) for texts in rounds(trace) for c in texts.values())
    likes = {"target": TableModel(lambda t: (0.9, 0.1), 2), "draft": TableModel(lambda t: (0.1, 0.9), 2)}
    trace = run("bass", likes, ["a", "ba"], 6)
    assert all(accepted(cells) == 0 for texts in rounds(trace) for cells in texts.values())
    assert written(trace) == {"text 1": [0] * 6, "text 2": [0] * 6}


def test_one_forward_serves_all_texts_and_costs_count_once(models):
    trace = run("bass", models, PROMPTS, 20)
    totals, read = trace.costs.totals(), 0
    assert totals["target_forwards"] == len(trace.steps)
    for step, texts in zip(trace.steps, rounds(trace), strict=True):
        guesses = [len(drafted(cells)) for cells in texts.values()]
        forwards = step.of(Forward)
        assert sum(f.model == "draft" for f in forwards) == max(guesses)
        (target,) = [f for f in forwards if f.model == "target"]
        ends = [sum(c.token in trace_eos(models) for c in drafted(cells)) for cells in texts.values()]
        assert target.rows == len(guesses) + sum(guesses) - sum(ends)
        read += target.tokens
    prompts = sum(len(models["target"].encode(prompt)) for prompt in PROMPTS)
    assert read >= prompts and totals["target_tokens"] == read


def trace_eos(models: dict) -> frozenset[int]:
    return models["target"].eos


def test_the_draft_length_follows_the_best_text(models):
    trace, want, shrunk, seen = run("bass", models, PROMPTS, 40), 7, 0, []
    for step, texts in zip(trace.steps, rounds(trace), strict=True):
        (length,) = [score.total for score in step.of(Measure) if score.name == "draft length"]
        assert length == want
        most = max(accepted(cells) for cells in texts.values())
        if most == want:
            want, shrunk = min(want + 2, 32), 0
        else:
            want, shrunk = max(1, most, want - math.ceil(want / 10) - shrunk), 1
        seen.append(most)
    assert len(set(seen)) > 1  # the rule had something to do


def test_texts_end_each_at_its_own_place(models):
    trace = run("bass", models, PROMPTS, 20)
    lengths = [len({*texts}) for texts in rounds(trace)]
    assert (
        lengths[0] == len(PROMPTS) and lengths == sorted(lengths, reverse=True) and lengths[-1] < len(PROMPTS)
    )
    assert trace.ended.startswith(("Reached", "The model wrote"))


@pytest.mark.parametrize("text", [1, 2])
def test_each_text_has_exactly_the_targets_law(text):
    models, length = tables(), 2
    parameters = {"prompts": "ba", "num_assistant_tokens": 1, "temperature": 1.0}

    def once(chooser) -> tuple[int, ...]:
        trace = Lane("bass", [0], models, parameters, limits=Limits(length), chooser=chooser).run()
        return tuple(written(trace)[f"text {text}"])

    want = exact_distribution(models["target"], [[0], [1, 0]][text - 1], length, shape_of(parameters))
    assert distance(Exhaustive().distribution(once), want) < 1e-12


def test_a_text_draws_its_own_luck():
    trace = run("bass", tables(26), ["a", "a", "a"], 12, {"temperature": 1.0})
    assert len({tuple(text) for text in written(trace).values()}) == 3


def test_models_without_a_tree_mask_give_every_text_too(models):
    slow = {role: LoadedModel(m.name, m.model, m.tokenizer) for role, m in models.items()}
    for model in slow.values():
        model.engine = SequenceEngine(model.model)
    assert written(run("bass", slow, PROMPTS, 8)) == written(run("bass", models, PROMPTS, 8))


def test_the_first_text_is_told_as_any_lane_is(models):
    trace = run("bass", models, PROMPTS, 20)
    plain = [e.token for step in trace.steps for e in step.of(Propose)]
    cells = [c.token for texts in rounds(trace) for c in texts.get("text 1", [])]
    assert plain == cells and trace.output() == written(trace)["text 1"]


def test_a_batch_that_does_not_fit_is_refused(models):
    with pytest.raises(ValueError, match="prompts has 16 lines, but a batch has room for 15"):
        run("bass", models, ["a"] * (MAX_TEXTS + 2), 4)
    with pytest.raises(
        ValueError, match=r"Text 3 of the batch has 300 tokens, but the model reads at most 256"
    ):
        run("bass", models, ["a", "b", "c" * 300], 4)
    with pytest.raises(ValueError, match="prompts must be a text of at most 4,000 characters, not 'xx"):
        run("bass", models, ["a", "x" * 4001], 4)
    assert len(written(run("bass", models, ["a", "", "  ", "b"], 4))) == 2
    assert registry.get("bass").check({"prompts": ""})["prompts"] == ""
