"""SmartSpec over a real batch: one draft length for all texts, by what all of them accepted."""

from decoders.models.table_model import TableModel
from decoders.speculative.methods.smartspec import EVERY, KEPT, START
from decoders.testing import random_table
from decoders.trace.events import Note
from decoders.trace.number_format import number
from decoders.trace.scores import Measure
from tests.helpers.batch_results import accepted, alone, drafted, rounds, run, written

PROMPTS = ["a", "ba", "cab"]


def models() -> dict[str, TableModel]:
    """A draft that is right now and then."""
    return {
        "target": TableModel(random_table(1, 4, 1.5), 4),
        "draft": TableModel(random_table(2, 4, 1.5), 4),
    }


def test_each_text_is_what_it_is_alone():
    trace = run("smartspec", models(), PROMPTS, 60)
    assert list(written(trace).values()) == [alone(models(), prompt, 60) for prompt in PROMPTS]


def test_one_length_for_all_by_what_all_accepted():
    trace, alpha, k, told = run("smartspec", models(), PROMPTS, 60), START, None, []
    for index, (step, texts) in enumerate(zip(trace.steps, rounds(trace), strict=True)):
        (length,) = [score.total for score in step.of(Measure) if score.name == "draft length"]
        if index % EVERY == 0:
            k = length
            said = f"For {len(texts)} texts at once and an acceptance of {number(alpha)}, {k} guesses"
            told.append(step.of(Note)[0].text.startswith(said))
        assert length == k and max(len(drafted(cells)) for cells in texts.values()) <= k
        guesses = sum(len(drafted(cells)) for cells in texts.values())
        if guesses:
            kept = sum(accepted(cells) for cells in texts.values())
            alpha = KEPT * alpha + (1 - KEPT) * kept / guesses
    assert len(told) > 1 and all(told)
