"""Speculative Jacobi: exactly the model's law, Jacobi's text at temperature 0, what a test by p/q gains."""

import pytest

from decoders.chooser import Exhaustive
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel, exact_distribution
from decoders.testing import distance, random_table, shape_of
from decoders.trace.events import Cell, Commit, Verdict
from tests.helpers.losslessness import law_of_rounds

GUESSES = ("lookup", "repeat", "prompt")


def committed(trace) -> list[list[int]]:
    nodes = trace.nodes()
    return [[nodes[n][1] for c in step.of(Commit) for n in c.nodes] for step in trace.steps]


@pytest.mark.parametrize("verifier", ["token rejection", "node sampling"])
@pytest.mark.parametrize("eos", [frozenset(), frozenset({1})])
@pytest.mark.parametrize("shape", [{"temperature": 1.0}, {"temperature": 0.6, "top_p": 0.8}])
def test_drawn_text_has_the_model_s_law(verifier, eos, shape):
    """Two places, three tokens: after the first round every draft is one that the round before drew."""
    models = {"target": TableModel(random_table(21, sharpness=1.5), 3, eos)}
    parameters = {"block_size": 2, "verifier": verifier, **shape}
    law = law_of_rounds(Exhaustive(), "sjd", models, parameters, 3)
    assert distance(law, exact_distribution(models["target"], (0,), 3, shape_of(parameters))) < 1e-12


@pytest.mark.parametrize("first_guess", GUESSES)
def test_a_longer_window_has_the_model_s_law_too(first_guess):
    models = {"target": TableModel(random_table(22, vocabulary=2, sharpness=1.5), 2)}
    parameters = {"block_size": 3, "first_guess": first_guess}
    law = law_of_rounds(Exhaustive(), "sjd", models, parameters, 4)
    assert distance(law, exact_distribution(models["target"], (0,), 4)) < 1e-12


def test_drawn_tokens_that_are_kept_with_an_old_law_would_bend_it(monkeypatch):
    """The proof has teeth: a window that does not draw again, but keeps what it drew, is noticed."""
    from decoders.parallel import sjd

    real = sjd.Window.observe

    def stale(self, lane, draft, verification, seen):
        kept = self.drawn[len(verification.path) + 1 :]
        real(self, lane, draft, verification, seen)
        self.drawn[: len(kept)] = [(token, q) for (token, _), (_, q) in zip(kept, self.drawn, strict=False)]

    monkeypatch.setattr(sjd.Window, "observe", stale)
    models = {"target": TableModel(random_table(21, sharpness=1.5), 3)}
    law = law_of_rounds(Exhaustive(), "sjd", models, {"block_size": 2}, 4)
    assert distance(law, exact_distribution(models["target"], (0,), 4)) > 1e-3


@pytest.mark.parametrize("tokens", [1, 9, 20])
def test_temperature_0_in_one_window_is_jacobi(tiny_model, prompt, tokens):
    models = {"target": tiny_model("llama")}
    parameters = {"block_size": 64, "first_guess": "repeat", "temperature": 0.0}
    drawn = Lane("sjd", prompt, models, parameters, limits=Limits(tokens)).run()
    jacobi = Lane("jacobi", prompt, models, {"block_size": 64}, limits=Limits(tokens)).run()
    assert committed(drawn) == committed(jacobi)


def test_temperature_0_with_short_windows_is_jacobis_text_in_other_rounds():
    """Three windows: jacobi solves a block before it begins the next, sjd fills its window up each round."""
    models = {"target": TableModel(random_table(3, vocabulary=4), 4)}
    given = {"block_size": 4, "first_guess": "repeat"}
    jacobi = Lane("jacobi", [0], models, given, limits=Limits(16)).run()
    drawn = Lane("sjd", [0], models, given | {"temperature": 0.0}, limits=Limits(16)).run()
    assert drawn.output() == jacobi.output() and committed(drawn) != committed(jacobi)


@pytest.mark.parametrize("first_guess", GUESSES)
@pytest.mark.parametrize("block_size", [1, 5])
def test_temperature_0_is_greedy(tiny_model, prompt, block_size, first_guess):
    models = {"target": tiny_model("llama")}
    parameters = {"block_size": block_size, "first_guess": first_guess, "temperature": 0.0}
    greedy = Lane("greedy", prompt, models, limits=Limits(24)).run()
    assert Lane("sjd", prompt, models, parameters, limits=Limits(24)).run().output() == greedy.output()


def test_where_nothing_depends_on_the_text_all_draws_stay():
    """p = q = (.5, .5): the test by p/q passes everything; drawing once more would agree half the time."""
    model, forwards = TableModel(lambda tokens: [0.5, 0.5], 2), {}
    for verifier in ("token rejection", "node sampling"):
        runs = [
            Lane(
                "sjd", [0], {"target": model}, {"verifier": verifier, "block_size": 4}, seed, Limits(60)
            ).run()
            for seed in range(4)
        ]
        forwards[verifier] = sum(len(run.steps) for run in runs)
        if verifier == "token rejection":
            drawn = [v for run in runs for s in run.steps[1:] for v in s.of(Verdict) if v.q and v.q < 1]
            assert drawn and all(v.status == "accepted" for v in drawn)
    assert forwards["token rejection"] < 0.75 * forwards["node sampling"]


def test_every_pass_commits_and_the_cells_tell_it():
    models = {"target": TableModel(random_table(23, sharpness=2), 3)}
    trace = Lane("sjd", [0, 1], models, {"block_size": 4}, 3, Limits(20)).run()
    assert all(tokens for tokens in committed(trace))
    settled = [c for step in trace.steps for c in step.of(Cell) if c.state == "settled"]
    assert [c.token for c in settled] == trace.output()
    assert [c.position for c in settled] == list(range(2, 22))
    for step in trace.steps:
        frontier = max(c.position for c in step.of(Cell) if c.state == "settled")
        late = [c for c in step.of(Cell) if c.state in ("changed", "kept")]
        assert all(c.position > frontier for c in late)
