"""Experiments: each answers with a table that its own columns describe; the command; the benches."""

import json
from itertools import pairwise
from types import SimpleNamespace

import pytest

from decoders.trace.events import Forward
from explorer import experiments, timing
from explorer.benchmarks import diffusion_family, generate_speed, search_family, speculative_family
from explorer.catalog.papers import papers
from explorer.cli import main
from explorer.experiments import measures, parallel_bench, progress

NAMES = list(experiments.experiments())
_answers: dict[str, tuple[str, list[float]]] = {}
every_experiment = pytest.mark.parametrize("name", NAMES)


@pytest.fixture
def answer(name, models, short, corpus, schemas) -> tuple[str, list[float]]:
    """The answer of an experiment as JSON text, and the shares that were told while it ran."""
    if name not in _answers:
        shares: list[float] = []
        with progress.watched(shares.append):
            found = experiments.answered(experiments.find(name), models, corpus, schemas=schemas)
        _answers[name] = json.dumps(found), shares
    return _answers[name]


@every_experiment
def test_an_experiment_answers_with_a_table_and_sentences(name, models, answer):
    experiment = experiments.find(name)
    assert experiment.asks.endswith((".", "?")) and experiment.title
    found = json.loads(answer[0])
    assert found["rows"] and all(len(row) == len(found["columns"]) for row in found["rows"])
    assert found["says"] and all(said.endswith(".") for said in found["says"])
    assert found["finding"].endswith(".") and found["finding"] in experiments.table(found)
    assert found["models"] == {role: model.name for role, model in models.items()}
    for line in (found["chart"] or {"lines": []})["lines"]:
        assert line["points"]
    for drawn in [one for one in found["pictures"] if one["kind"] == "tokens"]:
        assert len(drawn["values"]) == len(drawn["rows"]) > 0
        assert all(len(row) == len(drawn["tokens"]) for row in drawn["values"])
        assert all(0 <= value <= drawn["high"] for row in drawn["values"] for value in row)
    assert all(column in experiments.table(found) for column in found["columns"])
    known = {paper["slug"]: paper for paper in papers()}
    for slug in experiment.papers:
        assert f"experiment {name}" in known[slug]["how"]


@every_experiment
def test_every_experiment_tells_how_far_it_is(name, answer):
    """Never backwards, more than once, and close to its end: what is left has no loop."""
    _, shares = answer
    assert len({round(share, 3) for share in shares}) > 1 and shares[0] > 0
    assert all(one <= two + 1e-9 for one, two in pairwise(shares)) and shares[-1] == pytest.approx(1)


@pytest.mark.parametrize("name", ["spec-bench"])
def test_spec_bench_gives_greedy_one_and_finds_greedy_s_text(answer):
    rows = {row[0]: row[1:] for row in json.loads(answer[0])["rows"]}
    assert all(value == 1.0 for value in rows["greedy"][:6])
    assert {"speculative", "speculative_tree", "prompt_lookup"} <= rows.keys()
    assert all(row[-1] == "yes" for row in rows.values())


@pytest.mark.parametrize("name", ["equal-to-greedy"])
def test_no_text_is_another_than_greedy_s(answer):
    rows = json.loads(answer[0])["rows"]
    assert {"speculative", "sequoia", "jacobi", "lookahead"} <= {row[0] for row in rows}
    assert all(row[1] + row[2] == 3 and row[3] == 0 for row in rows)


@pytest.mark.parametrize("name", ["map-of-methods"])
def test_every_strategy_that_speculates_has_its_place_on_the_map(answer):
    rows = {row[0]: row[1:] for row in json.loads(answer[0])["rows"]}
    assert rows["speculative"][:3] == ["a second model", "chain", "draft"]
    assert rows["speculative_tree"][:3] == ["a second model", "tree", "draft"]
    assert rows["jacobi"][:3] == ["the last iteration", "iteration", "model"]
    assert rows["layerskip"][:3] == ["the target itself, in part", "chain", "model"]
    assert not {row[0] for row in rows.values()} & {"trigrams", "store", "pool"}  # words, not sources


@pytest.mark.parametrize("name", ["parallel-bench"])
def test_known_rows_are_not_measured_again(models, answer, monkeypatch):
    rows = json.loads(answer[0])["rows"]
    measured, counted = parallel_bench.measured, []

    def count(models, rule, asked):
        counted.append(rule.label)
        return measured(models, rule, asked)

    monkeypatch.setattr(parallel_bench, "measured", count)
    left = [row for row in rows if row[2] != "LoPA 1" or row[1] != "upper"]
    assert parallel_bench.run(models, left).rows == rows
    assert sorted(counted) == ["LoPA 1", "quota 1", "quota 4"]  # and the two whose texts are compared


def test_an_experiment_that_reads_stories_asks_for_them(models, tmp_path):
    found = experiments.find("hyperfitting")
    with pytest.raises(ValueError, match="reads stories; name their folder with --corpus FOLDER"):
        experiments.answered(found, models)
    with pytest.raises(ValueError, match="has no folder 'stories'"):
        experiments.answered(found, models, tmp_path)


def test_the_command_lists_and_refuses(capsys):
    main(["experiment"])
    listed = capsys.readouterr().out
    assert all(name in listed for name in NAMES)
    with pytest.raises(SystemExit) as stopped:
        main(["experiment", "alchemy"])
    assert stopped.value.code == 2
    assert "there is no experiment 'alchemy'; choose one of: acceptance-by-rank" in capsys.readouterr().err


def test_the_stored_answers_are_those_of_experiments_that_exist():
    found = experiments.stored()
    assert found and {one["name"] for one in found} <= set(NAMES)
    assert all({"columns", "rows", "says", "models"} <= one.keys() for one in found)


def test_the_bench_of_the_family_counts_from_traces(models):
    """What a round spends on its draft is a share of a forward; counts are told in words."""
    prompts = [[40, 41, 42, 40, 41], [7, 8]]
    traces = speculative_family.traced(models, "sequoia", {"budget": 4, "temperature": 0.0}, prompts)
    tokens = measures.tokens_per_forward(traces)
    assert tokens >= 1.0
    assert 0 < speculative_family.building(traces) < 1e4
    assert f"{tokens:.2f} tokens per target forward" in speculative_family.counted(traces)
    with pytest.raises(ValueError, match="no benchmark of 'alchemy'; choose "):
        generate_speed.run(SimpleNamespace(family="alchemy", only=None, json=False, store=False))


def test_relative_speed_weighs_seconds_by_the_tokens_written(monkeypatch):
    """Twelve tokens in 3 s against twelve in 6 s; the slow round of each prompt is no median."""
    clock, calls = [0.0], []

    def takes(name, seconds):
        def decode(prompt):
            calls.append((name, prompt[0]))
            late = 100.0 if calls.count((name, prompt[0])) == 2 else 0.0
            clock[0] += seconds * prompt[0] + late
            return 6

        return decode

    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock[0])
    speed = speculative_family.relative_speed(takes("mine", 1.0), takes("other", 2.0), [[1], [2]])
    assert speed == pytest.approx(2.0)
    assert calls[:4] == [("mine", 1), ("other", 1), ("mine", 1), ("other", 1)]  # in turn


def test_what_a_search_costs_beside_the_model(models):
    """Both parts make the whole."""
    traces = speculative_family.traced(models, "best_first", {"max_expansions": 4}, [[40, 41], [42]])
    assert [trace.prompt for trace in traces] == [[40, 41], [42]]
    for trace in traces:
        inside = sum(forward.seconds for step in trace.steps for forward in step.of(Forward))
        whole = trace.costs.totals()["seconds"]
        assert 0 < inside < whole and inside * (1 + search_family.outside(trace)) == pytest.approx(whole)


def test_only_rules_that_are_as_often_right_count_for_the_reach(monkeypatch, models):
    """Of four problems one mask per forward solves three: a rule must solve 3 - 4 * .2165, at least three."""

    def outcomes(right, tokens, forwards):
        totals = {"target_forwards": forwards, "new_tokens": tokens}
        trace = SimpleNamespace(costs=SimpleNamespace(totals=lambda: totals))
        return [(trace, solved < right) for solved in range(4)]

    answers = {"quota 1": (3, 8, 8), "quota 4": (3, 8, 2), "quota 16": (2, 8, 1), "WeDLM 0.0": (4, 8, 8)}
    monkeypatch.setattr(
        parallel_bench, "measured", lambda _, rule, asked: outcomes(*answers.get(rule.label, (0, 8, 1)))
    )
    *rows, reach = diffusion_family.at_equal_accuracy(models, "upper", "capitals")
    assert (reach["value"], reach["met"]) == (4.0, True) and "(quota 4)" in reach["name"]
    notes = {row["name"]: row["note"] for row in rows}
    assert notes["capitals: quota 4"] == "75% right; 4.00 tokens per forward"
    for rule in ("quota 16", "WeDLM 0.4"):
        assert "right, fewer than with one mask per forward" in notes[f"capitals: {rule}"]


def test_rules_that_fill_more_masks_take_fewer_forwards(models, short):
    """Sixty-four masks: one per forward, or sixteen."""
    quotas = parallel_bench.QUOTAS
    one, *_, sixteen = diffusion_family.compared(models, quotas, [[40, 41]])
    assert 0 < sixteen[0] < one[0] <= 64 and one[1] <= 1 < sixteen[1] <= 16
    assert one[2] > 0 and sixteen[2] > 0
