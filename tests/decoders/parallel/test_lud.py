"""Lexical unit decoding: which units a text has, which guesses are written, and that placeholders leave
nothing.
"""

import pytest
import torch

from decoders.diffusion.canvas import Guess
from decoders.diffusion.causal_past import INPUT
from decoders.heads.path_independent.lexical_units import mark_units
from decoders.lane import Lane, Limits
from decoders.parallel.lud import accepted
from decoders.trace.events import Cell, Forward
from tests.helpers.tiny_models import make

PROMPT = [5, 9, 17, 33, 60]
TOKENS = 24


@pytest.fixture(scope="module")
def model():
    """A model of random weights with a placeholder token, unsure enough that some guesses are written."""
    return make("lud", endings=0.0)


def run(model, **parameters):
    return Lane("lud", PROMPT, {"target": model}, parameters, limits=Limits(TOKENS)).run()


def greedy(model) -> list[int]:
    """Its text, one whole forward per token: no cache, no lane, no placeholder."""
    text = list(PROMPT)
    for _ in range(TOKENS):
        with torch.inference_mode():
            logits = model.model(torch.tensor([text])).logits[0, -1, : model.engine.mask]
        text.append(int(logits.argmax()))
    return text[len(PROMPT) :]


def whole(model, count: int, beta: float, repeated: float) -> list[list[int]]:
    """The tokens written in each round by whole forwards over the text and `count` placeholders."""
    mask, text, rounds = model.engine.mask, list(PROMPT), []
    while (left := len(PROMPT) + TOKENS - len(text)) > 0:
        rows = text + [mask] * min(count, left - 1)
        with torch.inference_mode():
            probs = model.model(torch.tensor([rows])).logits[0, len(text) - 1 :, :mask].softmax(-1)
        written = [int(probs[0].argmax())]
        for row in probs[1:]:
            token = int(row.argmax())
            if row[token] <= (max(beta, repeated) if token == written[-1] else beta):
                break
            written.append(token)
        text += written
        rounds.append(written)
    return rounds


def forwards(trace) -> list[Forward]:
    return [f for step in trace.steps for f in step.of(Forward)]


def guess_of(tokens: list[int], confidence: list[float]) -> Guess:
    rows = torch.zeros(len(tokens), 9)
    return Guess(list(range(len(tokens))), tokens, torch.tensor(confidence), rows, rows[:, 0])


def test_the_units_of_the_dossier():
    """.4 .95 .97 .5 .99 with alpha .9: tokens (1, 2, 3) and (4, 5)."""
    probs = [0.4, 0.95, 0.97, 0.5, 0.99]
    assert mark_units(probs, 0.9, 8) == [(0, 3), (3, 5)]
    assert mark_units(probs, 0.9, 2) == [(0, 2), (2, 3), (3, 5)]  # none is longer than 2
    assert mark_units(probs, 0.95, 8) == [(0, 3), (3, 5)]  # alpha itself is enough
    assert mark_units(probs, 1.0, 8) == [(n, n + 1) for n in range(5)] and mark_units([], 0.9, 8) == []


def test_a_unit_ends_at_the_first_guess_that_is_not_sure():
    guessed = guess_of([1, 2, 3, 4], [0.2, 0.95, 0.8, 0.99])
    assert list(accepted(guessed, 0, 0.9, 0.99)) == [0, 1]
    assert list(accepted(guessed, 0, 0.7, 0.99)) == [0, 1, 2, 3]
    assert list(accepted(guessed, 0, 0.95, 0.99)) == [0]  # above beta, not at it


def test_a_repetition_needs_more():
    guessed = guess_of([1, 1, 1], [0.5, 0.95, 0.995])
    assert list(accepted(guessed, 1, 0.9, 0.99)) == [0]
    assert list(accepted(guessed, 1, 0.9, 0.9)) == [0, 1, 2]
    assert list(accepted(guessed, 1, 0.99, 0.5)) == [0]  # the stricter bound counts


@pytest.mark.parametrize("count", [0, 1, 3, 7])
def test_at_beta_1_it_is_the_tuned_models_greedy_text(model, count):
    """A token per forward; the placeholders after it change nothing (a causal mask)."""
    trace = run(model, beta=1.0, placeholders=count)
    assert trace.output() == greedy(model) and len(forwards(trace)) == TOKENS


@pytest.mark.parametrize(("count", "beta", "repeated"), [(3, 0.0, 0.0), (3, 0.3, 0.5), (6, 0.15, 1.0)])
def test_its_text_is_that_of_whole_forwards_without_a_cache(model, count, beta, repeated):
    trace = run(model, placeholders=count, beta=beta, repetition_bound=repeated)
    rounds = whole(model, count, beta, repeated)
    assert trace.output() == sum(rounds, []) and len(forwards(trace)) == len(rounds) < TOKENS


def test_the_lower_the_bound_the_more_is_written_from_one_forward(model):
    """From the same text; whole runs leave each other's text as soon as one writes more."""
    first = [len(whole(model, 6, beta, 0.0)[0]) for beta in (1.0, 0.6, 0.3, 0.1, 0.0)]
    assert first == sorted(first) and first[0] == 1 and first[-1] == 7
    random = torch.Generator().manual_seed(0)
    for _ in range(50):
        guessed = guess_of(torch.randint(4, (6,), generator=random).tolist(), torch.rand(6).tolist())
        written = [len(accepted(guessed, 0, beta, 0.99)) for beta in (1.0, 0.9, 0.5, 0.1, 0.0)]
        assert written == sorted(written)


def test_what_was_written_is_read_as_tokens_and_placeholders_leave_nothing(model):
    trace = run(model, placeholders=3, beta=0.0, repetition_bound=0.0)  # four tokens each time
    assert [f.tokens for f in forwards(trace)] == [len(PROMPT) + 3, 7, 7, 7, 7, 7]
    second = [(c.position, c.state) for c in trace.steps[1].of(Cell) if c.level == INPUT]
    assert second == [(p, "cached") for p in range(5, 9)] + [(p, "mask") for p in range(9, 12)]
