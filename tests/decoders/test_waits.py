"""What speculative Jacobi and lookahead say that positions waited for, against an account by hand from the
model's own table, and what the critical path makes of it.
"""

from collections.abc import Iterator

import pytest
import torch

from decoders.chooser import invert, uniform
from decoders.engine.tree import Tree
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.testing import random_table
from decoders.trace.events import Cell, Depend, Forward
from decoders.trace.trace import Trace
from decoders.waits import parted
from tests.decoders.parallel.test_jacobi import chained, deterministic, every_third_copies
from visualizers.graphs import critical_path

METHODS = ("sjd", "lookahead")


def decoded(name: str, model: TableModel, tokens: int = 20, seed: int = 0, prompt=(0, 1), **given) -> Trace:
    given = {"dependencies": True, **given}
    return Lane(name, list(prompt), {"target": model}, given, seed, Limits(tokens)).run()


def waits(trace: Trace) -> set[tuple[int, int]]:
    return {(d.source, d.target) for s in trace.steps for d in s.of(Depend) if d.kind == "causal"}


def stood(trace: Trace) -> Iterator[tuple[dict[int, int], dict[int, int]]]:
    """Of each pass what it read and what it gave, position -> token."""
    now: dict[int, int] = {}
    for step in trace.steps:
        cells = step.of(Cell)
        now = now | {c.position: c.token for c in cells if c.state == "guess"}
        given = {c.position: c.token for c in cells if c.state != "guess"}
        yield dict(now), given
        now = now | given


def changed_last(trace: Trace) -> dict[int, int]:
    """Position -> the last pass (from 0) that gave it another token than the one that it had read there."""
    return {
        at: number
        for number, (read, given) in enumerate(stood(trace))
        for at, token in given.items()
        if read.get(at) != token
    }


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("verifier", ["token rejection", "node sampling"])
def test_a_drawn_token_waited_for_what_its_number_gives_another_token_without(seed, verifier):
    """Each place by hand: the same numbers, the table's row of a prefix with one older token in it."""
    model = TableModel(random_table(seed, 4, 1.5), 4)
    trace = decoded("sjd", model, seed=seed, block_size=5, verifier=verifier)
    passes, last, first = list(stood(trace)), changed_last(trace), len(trace.prompt)
    own = {max(c.position for c in step.of(Cell) if c.state == "settled") for step in trace.steps}

    def row(text: dict[int, int], at: int) -> torch.Tensor:
        prefix = (*trace.prompt, *(text[i] for i in range(first, at)))
        return torch.tensor(model.table(prefix), dtype=torch.float64)

    def redone(text: dict[int, int], before: dict[int, int], at: int, number: int) -> int:
        """What pass `number` gives at a place that was no accepted draft."""
        p, read = row(text, at), passes[number][0].get(at)
        if at not in own or at > max(settled[number]):
            return invert(p, uniform(seed, ("draft", at, number + 1)))
        if verifier == "node sampling":
            return invert(p, uniform(seed, ("sample", at)))
        if at not in passes[number][0] or at - min(settled[number]) >= 5 or at == last_place:
            return invert(p, uniform(seed, ("sample", at)))
        q = row(before, at)
        if uniform(seed, ("accept", at, 0)) < min(1.0, float(p[read] / q[read])):
            return read
        return invert((p - q).clamp(min=0.0), uniform(seed, ("sample", at)))

    settled = [[c.position for c in step.of(Cell) if c.state == "settled"] for step in trace.steps]
    last_place = first + len(trace.output()) - 1  # where nothing is drafted: the target writes it
    expected = set()
    for at, number in last.items():
        if number == 0 or at not in passes[number - 1][1]:
            continue  # no forward had given anything there before
        read, before = passes[number][0], passes[number - 1][0]
        token = passes[number][1][at]
        assert redone(read, before, at, number) == token
        for source in range(first, at):
            then = before.get(source)
            if then is None or read[source] == then or last[source] >= number:
                continue
            if redone(read | {source: then}, before, at, number) != token:
                expected.add((source, at))
    assert waits(trace) == expected


@pytest.mark.parametrize("seed", range(4))
def test_in_one_window_of_likeliest_tokens_they_are_jacobis(seed):
    """But for waits for a token that changed again afterwards: those say nothing of what is final."""
    model = TableModel(random_table(seed, 5, 3.0), 5)
    trace = decoded("sjd", model, 14, temperature=0.0, first_guess="repeat", block_size=64)
    jacobi, last = decoded("jacobi", model, 14, block_size=64), changed_last(trace)
    assert trace.output() == jacobi.output()
    theirs = {(a, b) for a, b in waits(jacobi) if last[a] < last[b]}
    free = len(trace.prompt) + 13  # the block's last output, which Jacobi does not keep to compare it
    assert {(a, b) for a, b in waits(trace) if b < free} == {(a, b) for a, b in theirs if b < free}
    assert seed != 0 or waits(trace)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_where_nothing_depends_on_the_text_nobody_waits(name, temperature):
    model = TableModel(lambda past: [0.4, 0.35, 0.25], 3)
    assert waits(decoded(name, model, 40, temperature=temperature)) == set()


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_where_the_last_token_decides_it_alone_is_waited_for(name, temperature):
    def row(past: tuple[int, ...]) -> list[float]:
        return [0.7 if token == (2 * past[-1] + 1) % 5 else 0.075 for token in range(5)]

    found = set()
    for seed in range(4):
        given = {} if temperature else {"first_guess": "prompt"} if name == "sjd" else {}
        found |= waits(decoded(name, TableModel(row, 5), 30, seed, temperature=temperature, **given))
    assert found and all(target - source == 1 for source, target in found)


def test_lookahead_puts_back_what_its_guesses_were_made_after():
    """In the chained table each token needs both before it; of the copying one every third needs its left."""
    sizes = {"ngram_size": 3, "window_size": 3}
    found = waits(decoded("lookahead", deterministic(chained, 7), 24, prompt=(1, 2), **sizes))
    assert found and all(target - source in (1, 2) for source, target in found)
    found = waits(decoded("lookahead", deterministic(every_third_copies, 7), 24, prompt=(1, 0), **sizes))
    assert found and all(target % 3 == 0 and target - source == 1 for source, target in found)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(6))
def test_no_parallel_decoder_is_faster_than_its_critical_path(name, temperature, seed):
    model = TableModel(random_table(seed, 4, 2.5), 4)
    trace = decoded(name, model, 24, seed, temperature=temperature)
    path = critical_path(trace.graph("dependencies"))
    assert 1 <= path.unavoidable <= path.used == len(trace.steps)
    assert len(trace.graph("dependencies")) == 24


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_looking_changes_nothing_and_is_counted_apart(tiny_model, prompt, name, temperature):
    model = tiny_model("llama")
    runs = [
        Lane(name, prompt, {"target": model}, given, 1, Limits(24)).run()
        for given in ({"temperature": temperature, "dependencies": told} for told in (True, False))
    ]
    told, plain = ([c for s in run.steps for c in s.of(Cell)] for run in runs)
    assert told == plain and runs[0].output() == runs[1].output()
    assert runs[0].costs.lens_forwards > 0 == runs[1].costs.lens_forwards
    assert runs[0].costs.target_forwards == runs[1].costs.target_forwards
    assert [f.tokens for s in runs[0].steps for f in s.of(Forward) if f.kind != "lens"] == [
        f.tokens for s in runs[1].steps for f in s.of(Forward)
    ]
    assert model.engine.cache.used == 0


def test_two_ways_part_at_their_last_common_node():
    tree = Tree([7, 8])
    a = tree.add(1, 1)
    b, c = tree.add(a, 2), tree.add(1, 3)
    d = tree.add(c, 2)
    assert parted(tree, b, d) == (1, [1, 2], [3, 2])
    assert parted(tree, b, b) == (b, [], [])
