"""The ban of a label: its last token alone, the mass it leaves, and a text that is unchanged without it."""

import random

import pytest

from decoders.chooser import Exhaustive
from decoders.lane import Lane, Limits
from decoders.models.loading import load
from decoders.models.table_model import TableModel, exact_distribution
from decoders.sampling.label_ban import completing
from decoders.trace.events import Distribution, Note
from decoders.trace.scores import Measure, ScoreName
from decoders.trace.trace import Trace
from explorer.tasks.file_programs import LABEL, flaws


def with_letters(table, vocabulary: int) -> TableModel:
    model = TableModel(table, vocabulary)
    model.cut = lambda text: [ord(c) - 97 for c in text]
    return model


def run(
    model, new_tokens: int = 6, strategy: str = "label_ban", prompt=(0,), seed: int = 0, **parameters
) -> Trace:
    asked = {"label": '"a"'} if strategy == "label_ban" else {}
    given = asked | parameters
    return Lane(strategy, list(prompt), {"target": model}, given, seed, Limits(new_tokens)).run()


def test_the_labels_mass_goes_to_the_others_in_proportion():
    """P = (label .6, b .3, c .1) gives b .75, c .25."""
    model = with_letters(lambda past: [0.6, 0.3, 0.1], 3)
    trace = run(model, 1)
    (left,) = [e for e in trace.steps[0].of(Distribution) if e.view == "processed"]
    shown = {token: pytest.approx(2.718281828**logprob) for token, logprob in left.top if logprob > -50}
    assert shown == {1: 0.75, 2: 0.25} and left.among == 2
    assert [e.total for e in trace.steps[0].of(Measure) if e.name == ScoreName.P_LABEL] == [
        pytest.approx(0.6)
    ]


@pytest.mark.parametrize("length", [1, 2])
def test_sampling_is_exactly_the_banned_distribution(length):
    model = with_letters(lambda past: [0.6, 0.3, 0.1] if past[-1] else [0.2, 0.5, 0.3], 3)

    def outcome(chooser):
        asked = {"label": '"a"', "temperature": 1.0}
        lane = Lane("label_ban", [0], {"target": model}, asked, limits=Limits(length), chooser=chooser)
        return tuple(lane.run().output())

    def shape(row):
        probs = row.exp()
        probs[:, 0] = 0.0
        return probs / probs.sum(-1, keepdim=True)

    want = exact_distribution(model, [0], length, shape)
    found = Exhaustive().distribution(outcome)
    assert found == {text: pytest.approx(p, abs=1e-12) for text, p in want.items()}


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_without_probability_of_the_label_the_text_is_unchanged(temperature, tiny_model):
    model = with_letters(lambda past: [0.0, 0.5, 0.2, 0.3] if len(past) % 2 else [0.0, 0.1, 0.6, 0.3], 4)
    plain = "sample" if temperature else "greedy"
    for seed in range(5):
        shaped = {"temperature": temperature} if temperature else {}
        texts = [
            run(model, 12, name, seed=seed, **(shaped if name == "label_ban" or temperature else {})).output()
            for name in ("label_ban", plain)
        ]
        assert texts[0] == texts[1]
    watched = run(tiny_model("llama"), 12, prompt=(40, 41), label="#5", ban=False).output()
    assert watched == run(tiny_model("llama"), 12, "greedy", prompt=(40, 41)).output()


def test_of_several_tokens_the_last_alone_is_forbidden_behind_the_others():
    assert completing([[1, 2, 3]], [1, 2]) == [3] and completing([[1, 2, 3]], [0, 1, 2]) == [3]
    assert completing([[1, 2, 3]], [2]) == [] and completing([[1, 2, 3]], [1]) == []
    assert completing([[4], [1, 4], [1, 5]], [1]) == [4, 5] and completing([[4]], []) == [4]
    # b a is the label: a b, b b and a a stay possible
    model = with_letters(lambda past: [0.6, 0.4], 2)
    luck, seen = random.Random(0), set()
    for _ in range(60):
        text = run(model, 8, label='"ba"', temperature=1.0, seed=luck.randrange(10**6)).output()
        pairs = set(zip(text, text[1:], strict=False))
        assert (1, 0) not in pairs
        seen |= pairs
    assert seen == {(0, 0), (0, 1), (1, 1)}


def test_a_note_warns_above_the_threshold():
    model = with_letters(lambda past: [0.6, 0.3, 0.1], 3)
    loud, quiet = (run(model, 2, threshold=at) for at in (0.5, 0.7))
    assert [n.text for s in loud.steps for n in s.of(Note)] == [
        "The model is about to announce a flaw: the label has probability .6; it is forbidden."
    ] * 2
    assert not [n for s in quiet.steps for n in s.of(Note)]


def test_a_label_that_cannot_be_read_is_refused():
    model = TableModel(lambda past: [0.5, 0.5], 2)
    with pytest.raises(ValueError, match="label: this model has no tokenizer"):
        run(model, label="flaw")
    with pytest.raises(ValueError, match="label has no words in it"):
        run(model, label=" ")


def test_the_shipped_model_announces_flaws_and_the_ban_avoids_some():
    model = load("llama-tiny-flaws", "cpu")
    prompt = model.encode("Task: write c, read d, write c\nProgram:\n")
    watched, banned = (run(model, 60, prompt=prompt, label=LABEL, ban=ban) for ban in (False, True))
    assert LABEL in watched.text() and LABEL not in banned.text()
    assert len(flaws(banned.text().partition("<|")[0])) < len(flaws(watched.text().partition("<|")[0]))
