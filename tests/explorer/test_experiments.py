"""Experiments: each answers with a table that its own columns describe; counts are those of the traces."""

import json
import math
import random
from itertools import product
from types import SimpleNamespace

import pytest
import torch

from decoders.lane import Lane, Limits
from decoders.search import values
from decoders.tables import TableModel
from decoders.trace import Commit, Forward, Note, Score
from explorer import benchmarks, experiments, family_bench, search_bench
from explorer.cli import main
from explorer.experiments import (
    Line,
    asked,
    cost_and_accuracy,
    entropy_threshold,
    equal_to_greedy,
    evidence,
    faithful_answers,
    guided_descriptions,
    hyperfitting,
    information_surplus,
    likelihood_and_utility,
    many_texts,
    map_of_methods,
    modes_by_length,
    noisy_instructions,
    program_search,
    reading_once,
    spec_bench,
)
from explorer.experiments.acceptance_by_rank import WIDTH, shares
from explorer.papers import papers
from explorer.shipped import script
from explorer.tasks import problems

NAMES = list(experiments.experiments())


@pytest.fixture(scope="module")
def models(tiny_model):
    """Two models that know nothing, and a few short prompts."""
    return {"target": tiny_model("llama"), "draft": tiny_model("llama", 1)}


@pytest.fixture
def short(monkeypatch):
    """Experiments that take a second."""
    import importlib

    for name, constants in {
        "acceptance_by_rank": dict(TOKENS=4, SEEDS=1),
        "draft_length": dict(TOKENS=6, LENGTHS=(1, 2)),
        "information_surplus": dict(TEXTS=2, TOKENS=12, HORIZONS=(2, 3), SCALES=(0.1,)),
        "when_to_stop": dict(TOKENS=6, LENGTHS=(1, 2), LIMITS=(0.3, 0.6), SEEDS=1),
        "spec_bench": dict(TOKENS=4, COUNT=1),
        "map_of_methods": dict(TOKENS=4),
        "equal_to_greedy": dict(TOKENS=4, PROMPTS=3),
        "continuous": dict(DRAWS=500, LENGTH=40),
        "entropy_threshold": dict(COUNT=3),
        "cost_and_accuracy": dict(COUNT=1, TOKENS=3),
        "evidence": dict(COUNT=2, TOKENS=3),
        "faithful_answers": dict(COUNT=3, SEEDS=2, TOKENS=3),
        "guided_descriptions": dict(COUNT=6, EACH=1, AMONG=3, GAMMAS=(1.0, 2.0), TOKENS=4, BATCH=4),
        "hyperfitting": dict(
            SEQUENCES=4, CONTEXTS=2, LENGTH=24, READ=4, WRITTEN=8, EPOCHS=2, EVERY=1, BATCH=2
        ),
        "noisy_instructions": dict(COUNT=1, TOKENS=3),
        "many_texts": dict(PROMPTS=1, TOKENS=4, BEAMS=2, DRAWN=2),
        "topic_plans": dict(STORIES=2, BEGINNINGS=2, TOKENS=8, SENTENCE=6),
        "open_text": dict(PROMPTS=1, SEEDS=2, TOKENS=6),
        "planning_or_filtering": dict(COUNT=2, TOKENS=3, ROLLOUTS=(1, 2)),
        "decoders_swept": dict(CLOSED=("count",), COUNT=1, STORIES=1, TOKENS=6),
        "likelihood_and_utility": dict(
            COUNT=1, EACH=2, TOKENS=3, STORIES=1, LADDER_COUNT=1, NOISE=(0.0, 1.0)
        ),
        "flows_with_feedback": dict(COUNT=2, ROUNDS=(1, 2), LENGTHS={"list_program": 3, "chain": 3}),
        "moving_states": dict(TASKS=("json",), TEXTS=1, TOKENS=30, WINDOW=10, STEPS={"sgd": (0.1,)}),
        "modes_by_length": dict(ASKED=("count",), COUNT=1, LENGTHS=range(2), FORWARDS=3),
        "trees_over_states": dict(ROWS=8, LENGTH=16, STEPS=2, TEXTS=2, BEGUN=3, TOKENS=6, BACK=4),
        "reading_once": dict(COUNT=1, LONGEST=3, LEARNED=("opposite",)),
        "residual_speed": dict(COUNT=1, TOKENS=4),
        "other_machines": dict(TOKENS=4, PROMPTS=1),
        "program_search": dict(VALIDATION=2, TEST=1, TOKENS=2, RANDOM=2, RUNGS=(1,), ROLLOUTS=1),
        "experts_of_neighbours": dict(
            ROWS=8, HELD_OUT=4, LENGTH=16, STEPS=3, STABLE=1, EVERY=1, PROMPTS=1, TOKENS=4, IN_A_ROW=(1, 8)
        ),
        "symbols_per_step": dict(ROWS=8, HELD_OUT=4, FRAMES=6, DRAWN=6, STEPS=2),
        "hidden_bits": dict(TEXTS=1, SEEDS=2, TOKENS=8, DRAWS=200, BUDGETS=[0.5, 2.0]),
        "routes_per_token": dict(TEXTS=6, HELD_OUT=2, LENGTH=12, STEPS=2, ROUTER_STEPS=2),
        "losses_per_exit": dict(TEXTS=6, HELD_OUT=2, LENGTH=12, STEPS=2, HEAD_STEPS=2, WIDTH=16),
    }.items():
        module = importlib.import_module(f"explorer.experiments.{name}")
        for constant, value in constants.items():
            monkeypatch.setattr(module, constant, value)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A folder with a few made stories in every file that is read."""
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "stories").mkdir()
    made = script("corpus")
    for name in made.STORY_MIX:
        acts = "It was glad. It ran. It sat. It ate. It slept. Then it woke."
        told = [f"{name} {n} had a cat. {acts}" for n in range(3)]
        (folder / "stories" / f"{name}.txt").write_text(f"\n{made.END}\n".join(told), "utf-8")
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_answers_with_a_table_and_sentences(name, models, short, corpus):
    experiment = experiments.find(name)
    assert experiment.asks.endswith((".", "?")) and experiment.title
    found = json.loads(json.dumps(experiments.answered(experiment, models, corpus)))
    assert found["rows"] and all(len(row) == len(found["columns"]) for row in found["rows"])
    assert found["says"] and all(said.endswith(".") for said in found["says"])
    assert found["models"] == {role: model.name for role, model in models.items()}
    for line in (found["chart"] or {"lines": []})["lines"]:
        assert line["points"]
    assert all(column in experiments.table(found) for column in found["columns"])
    known = {paper["slug"]: paper for paper in papers()}
    for slug in experiment.papers:
        assert f"experiment {name}" in known[slug]["how"]


def test_a_text_that_greedy_wrote_is_its_likeliest_token_by_token(models):
    target, prompt = models["target"], [40, 41, 42]
    text = [*prompt, *Lane("greedy", prompt, {"target": target}, limits=Limits(6)).run().output()]
    found = entropy_threshold.positions(target, text, len(prompt))
    assert len(found) == len(text) - 3 and all(hit for _, hit in found)
    assert not all(hit for _, hit in entropy_threshold.positions(target, [*text, 0, 0], len(prompt)))


def test_the_limit_of_the_entropy_is_found_again():
    draw = random.Random(0).uniform
    known = [(entropy, entropy < 1.0) for entropy in (draw(0, 3) for _ in range(5000))]
    tau, w, _, accuracy = entropy_threshold.learned(known)
    assert tau == pytest.approx(1.0, abs=0.05) and w < 0 and accuracy > 0.98
    assert entropy_threshold.learned([(0.5, True)] * 20) is None
    assert entropy_threshold.learned([(h, not hit) for h, hit in known]) is None


def test_the_graph_of_a_lattice_is_read_from_its_trace(models):
    """Its note counts the same paths; a path without merges has its own log-probability."""
    prompt = [40, 41, 42]
    for merge in ("zip", "never"):
        given = {"max_forwards": 60, "ngram": 1, "k_best": 3, "merge": merge}
        trace = Lane("lattice", prompt, {"target": models["target"]}, given, limits=Limits(6)).run()
        paths, texts = many_texts.lattice_texts(trace)
        notes = [e.text for s in trace.steps for e in s.of(Note)]
        assert f": {paths:,} paths to " in [text for text in notes if " paths to " in text][-1]
        assert len(texts) == paths > 3
        if merge == "never":
            for text, score in texts:
                assert score == pytest.approx(many_texts.own_logprob(models, prompt, text), abs=1e-3)


def test_unusual_prompts_never_say_what_is_usual_and_hold_their_own_answer():
    for kind in evidence.FORMS:
        for item in evidence.unusual(kind, 60):
            assert item.right != item.usual and item.right in evidence.words(item.evidence)
            assert item.usual not in evidence.words(item.prompt) and item.prompt.startswith(item.evidence)
    assert all(item.right in item.evidence for item in evidence.sheets(60))


def test_what_an_alpha_wins_and_loses_by_hand(models):
    items = [evidence.Item("?", "The sky is green.", "green", "blue") for _ in range(3)]
    plain = [True, False, False]

    def trace(text: str):
        made = asked.decoded(models, "context_aware", "The sky is green.\nIt is", 2, alpha=0.5)
        return SimpleNamespace(text=lambda: text, steps=made.steps, costs=made.costs, output=made.output)

    row = evidence.row(
        "k", 0.5, items, [trace(t) for t in (" blue.", " Green grass", " green<|end|>")], plain
    )
    assert row[:3] == ["k", 0.5, pytest.approx(2 / 3)] and row[5] == pytest.approx(1 / 3)
    assert row[6] == pytest.approx((0 + 1 / 2 + 1) / 3) and row[8] == 2.0  # two forwards a token
    assert row[-3:-1] == [2, 1]


def test_no_question_is_one_that_the_model_answers_without_the_document(models, short):
    for kind, questions in faithful_answers.asked(models).items():
        assert len(questions) == faithful_answers.COUNT, kind
        for item, belief in questions:
            assert item.prompt.startswith(item.evidence) and evidence.words(item.right) != belief
            blind = item.prompt.removeprefix(item.evidence)
            assert item.right not in blind and belief == evidence.words(
                asked.decoded(models, "greedy", blind, faithful_answers.TOKENS).text().split("<|")[0]
            )


def test_how_far_drawn_answers_are_ahead_by_hand(models):
    """Two questions, two answers each: none, then all and half of them right."""
    questions = [(evidence.Item("?", "It is green.", "green"), ["blue"]) for _ in range(2)]
    made = asked.decoded(models, "context_aware", "It is green.\nIt is", 2, alpha=0.5)

    def trace(text: str):
        return SimpleNamespace(text=lambda: text, steps=made.steps, costs=made.costs, output=made.output)

    answers = [[trace(" green"), trace("Green.")], [trace(" blue<|end|>"), trace(" green")]]
    cells, right = faithful_answers.row(0.5, questions, answers, [0.0, 0.0])
    assert right == [1.0, 0.5] and cells[:2] == [0.5, 0.75] and cells[4] == 0.25
    assert cells[2] == pytest.approx(0.75 - 1.959964 * 0.25) and cells[3] == 1.0
    assert cells[5] == 0.75 and cells[7] == 2.0 and cells[-2:] == [0.75, pytest.approx(0.25)]
    again, _ = faithful_answers.row(0.0, questions, answers, [])
    assert again[-2:] == [0.0, 0.0]


def test_the_luck_of_a_question_is_its_own_and_the_same_for_all_alphas(models, short):
    item = evidence.Item("It is green.\nIt is", "It is green.", "green")
    one, two = (faithful_answers.drawn(models, item, number, 0.0) for number in (0, 1))
    assert [t.seed for t in one] == [0, 1] and [t.seed for t in two] == [2, 3]
    half = faithful_answers.drawn(models, item, 1, 0.5)
    draws = [[e.total for s in t.steps for e in s.of(Score) if e.name == "draw"][0] for t in (*two, *half)]
    assert draws[:2] == draws[2:] and len(set(draws)) == 2


def test_a_copy_learns_its_sequences_by_heart_and_the_target_stays(models, corpus, monkeypatch):
    """Four sequences that a random model cannot know."""
    for constant, value in dict(SEQUENCES=4, CONTEXTS=2, LENGTH=24, READ=4, WRITTEN=8, EPOCHS=60, BATCH=2,
                                EVERY=120, RATE=1e-2).items():  # fmt: skip
        monkeypatch.setattr(hyperfitting, constant, value)
    data, model = hyperfitting.texts(models["target"], corpus), models["target"].model
    assert data.learned.shape == (4, 24) and data.unseen.shape == (2, 24)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    copy, (first, last) = hyperfitting.trained(model, data, 0)
    assert (first.updates, last.updates) == (0, 120) and last.training < 0.1 < first.training
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
    assert hyperfitting.told(first, last)[0].startswith("After 120 updates the copy knows its sequences by ")
    assert hyperfitting.written(copy, data.learned[:, :16]) == data.learned[:, 16:].tolist()


def test_leads_and_varieties_by_hand():
    assert hyperfitting.variety([1, 2, 1, 3]) == 0.75
    lead, error, p = hyperfitting.ahead([0.5, 0.75, 1.0], [0.25, 0.5, 1.0])
    assert (lead, error, p) == (pytest.approx(1 / 6), pytest.approx(1 / 12), 0.5)
    tops = torch.tensor([[1, 2, 3, 4]])
    said = hyperfitting.reordered(tops, tops.where(tops < 4, 0), torch.tensor([[0, 2, 0, 0]]))
    assert "change 50% of" in said and said.endswith("has changed 25%.")


def test_an_experiment_that_reads_stories_asks_for_them(models, tmp_path):
    found = experiments.find("hyperfitting")
    with pytest.raises(ValueError, match="reads stories; name their folder with --corpus FOLDER"):
        experiments.answered(found, models)
    with pytest.raises(ValueError, match="has no folder 'stories'"):
        experiments.answered(found, models, tmp_path)


def test_sentences_filled_in_many_at_a_time_are_those_of_the_strategy(models):
    """Texts of different lengths, some of which end early."""
    story = "Mia had a hat. It was red. She sat down. Then Tom came. He had a dog. They ran."
    gaps = guided_descriptions.gaps([story, "A cat. " + story])
    assert [gap.story for gap in gaps] == [0] * 2 + [1] * 3 and len({gap.prompt for gap in gaps}) == 5
    assert gaps[0].begin == "Mia had a hat." and gaps[0].middle == "It was red."
    assert gaps[0].end == "She sat down. Then Tom came."
    for gamma in (1.0, 2.5):
        found = guided_descriptions.filled(models["target"], gaps, gamma)
        for gap, text in zip(gaps, found, strict=True):
            given = {"guidance_scale": gamma, "negative_prompt": gap.begin}
            trace = asked.decoded(models, "guidance", gap.prompt, guided_descriptions.TOKENS, **given)
            assert text == asked.said(models, trace.output()).strip()


def test_an_end_is_found_by_the_words_it_shares():
    """By hand: of six words of all ends two are `dog`; half of the weight is the text's own counts."""
    made = guided_descriptions.Counter(["the", "dog", "ran", "a", "dog", "sat"])
    found = guided_descriptions.likelihood(["dog", "ran"], ["the", "dog"], made)
    assert found == pytest.approx(math.log(1 + 6 / 2 * 1 / 2))
    ends = ["The dog ran.", "A cat sat."]
    made["cat"] += 1
    assert guided_descriptions.hit("The dog", ends, made) == 1.0
    assert guided_descriptions.hit("Nothing", ends, made) == 0.0  # a tie finds nothing
    assert guided_descriptions.shared("The dog ran", "the cat") == pytest.approx(2 / 5)


def test_the_ends_to_choose_from_are_of_other_stories(monkeypatch):
    monkeypatch.setattr(guided_descriptions, "AMONG", 4)
    gaps = [guided_descriptions.Gap("B", f"end {n}", "m", n // 2) for n in range(10)]
    for gap, ends in zip(gaps, guided_descriptions.candidates(gaps), strict=True):
        assert ends[0] == gap.end and len(set(ends)) == 4
        assert not {e for e in ends[1:] if int(e.split()[1]) // 2 == gap.story}


def test_an_instruction_gets_a_line_of_its_own():
    for task in noisy_instructions.ASKED:
        (problem,) = problems(task, 1)
        prompt = noisy_instructions.phrased(problem).prompt
        assert "\n" in prompt and prompt.replace("\n", "") == problem.prompt.replace(": ", ":").replace(
            "\n", ""
        )


def test_what_a_setting_wins_and_loses_against_greedy():
    """Two tasks; the second is not asked of this setting."""
    answer, tasks = cost_and_accuracy.Answer, list(cost_and_accuracy.SCORERS)
    plain = {task: [answer(right, 4, 9) for right in (True, False, False)] for task in tasks}
    found = {tasks[0]: [answer(right, 8, 20 + right) for right in (False, True, True)]}
    row = cost_and_accuracy.row("beam 2", found, plain)
    assert row[:3] == ["beam 2", pytest.approx(2 / 3), None]
    right, low, high, forwards, tokens, won, lost, p = row[-8:]
    assert right == pytest.approx(2 / 3) and low < right < high
    assert (forwards, tokens) == (8, pytest.approx(62 / 3))
    assert (won, lost, p) == (2, 1, 1.0)


def test_no_search_asks_the_checker(models):
    """What a search may ask is a rule on prompt and text, or the reward head if the target has one."""
    assert set(cost_and_accuracy.SCORERS.values()) <= {*values.RULES, "reward"}
    assert cost_and_accuracy.answers(models, "cards", {}, "sort") is None


def test_spec_bench_gives_greedy_one_and_finds_greedy_s_text(models, short):
    rows = {row[0]: row[1:] for row in spec_bench.run(models).rows}
    assert all(value == 1.0 for value in rows["greedy"][:6])
    assert {"speculative", "speculative_tree", "prompt_lookup"} <= rows.keys()
    assert all(row[-1] == "yes" for row in rows.values())


def test_no_text_is_another_than_greedy_s(models, short):
    rows = equal_to_greedy.run(models).rows
    assert {"speculative", "sequoia", "jacobi", "lookahead"} <= {row[0] for row in rows}
    assert all(row[1] + row[2] == 3 and row[3] == 0 for row in rows)


def test_a_draft_that_is_the_target_has_its_first_guess_accepted_always(models, short):
    pair = {"target": models["target"], "draft": models["target"]}
    assert shares(pair, 0.0) == [1.0] + [0.0] * (WIDTH - 1)
    assert shares(pair, 1.0) == [1.0] + [0.0] * (WIDTH - 1)


def test_every_strategy_that_speculates_has_its_place_on_the_map(models, short):
    rows = {row[0]: row[1:] for row in map_of_methods.run(models).rows}
    assert rows["speculative"][:3] == ["a second model", "chain", "draft"]
    assert rows["speculative_tree"][:3] == ["a second model", "tree", "draft"]
    assert rows["jacobi"][:3] == ["the last iteration", "iteration", "model"]
    assert rows["layerskip"][:3] == ["the target itself, in part", "chain", "model"]
    assert not {row[0] for row in rows.values()} & {"trigrams", "store", "pool"}  # words, not sources


def test_states_that_know_nothing_have_no_surplus():
    """Tokens drawn for themselves, states at random: what the probes find is within noise of nothing."""
    draw = torch.Generator().manual_seed(0)
    tokens = torch.randint(6, (60, 40), generator=draw)
    gained = information_surplus.surpluses(torch.randn(60, 40, 8, generator=draw), tokens, 2)
    assert abs(float(gained.mean())) < 0.02


@pytest.mark.parametrize("k", [2, 3, 4, 5, 6])
def test_states_that_know_where_a_period_stands_have_a_surplus_at_every_horizon(k):
    """The word abbabaa over and over: a token alone leaves open what comes, its place does not."""
    word = torch.tensor([0, 1, 1, 0, 1, 0, 0])
    start = torch.randint(7, (16, 1), generator=torch.Generator().manual_seed(1))
    place = (start + torch.arange(20)) % 7
    gained = information_surplus.surpluses(torch.eye(7)[place], word[place], k)
    assert float(gained.mean()) > 0.2


def test_ranks_of_equal_numbers_are_shared():
    a, b = torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([10.0, 30.0, 30.0, 90.0])
    assert information_surplus.rank_correlation(a, a.exp()) == pytest.approx(1.0)
    assert information_surplus.rank_correlation(a, -a) == pytest.approx(-1.0)
    assert information_surplus.rank_correlation(a, b) == pytest.approx(4.5 / (5 * 4.5) ** 0.5)
    assert information_surplus.rank_correlation(a, torch.ones(4)) == 0.0


def test_tokens_a_round_and_acceptance_are_those_of_a_round_by_hand():
    """The draft always says 1; the target says 1 after an even number of tokens: every other guess passes."""
    target = TableModel(lambda tokens: [0, 1, 0] if len(tokens) % 2 else [0, 0, 1], 3)
    draft = TableModel(lambda tokens: [0, 1, 0], 3)
    settings = {"num_assistant_tokens": 2, "temperature": 0.0}
    trace = Lane("speculative", [0], {"target": target, "draft": draft}, settings, limits=Limits(8)).run()
    assert trace.output() == [1, 2] * 4
    # each round: the first guess passes, the second does not, and the target's own token follows
    assert [sum(len(c.nodes) for c in step.of(Commit)) for step in trace.steps] == [2, 2, 2, 2]
    assert asked.tokens_a_round([trace]) == 2.0
    assert asked.acceptance([trace]) == pytest.approx(4 / 7)  # the last round drafts one token only
    assert asked.acceptance([]) is None


def test_the_likeliest_text_of_each_length_is_brute_force_s():
    """Four tokens of which the last is the end, every length up to five."""

    def row(text):
        luck = random.Random(repr(text))
        weights = torch.tensor([luck.random() ** 2 + 0.01 for _ in range(4)])
        return (weights / weights.sum()).log()

    for length in range(6):
        text, logprob, proven = modes_by_length.mode(row, 3, length, 10_000)

        def whole(tokens):
            return sum(float(row(tokens[:at])[token]) for at, token in enumerate((*tokens, 3)))

        best = max(product(range(3), repeat=length), key=whole)
        assert proven and text == best and logprob == pytest.approx(whole(best))
    few = modes_by_length.mode(row, 3, 4, 5)
    assert not few[2] and few[1] <= modes_by_length.mode(row, 3, 4, 10_000)[1]


def test_a_spoiled_oracle_stops_helping_somewhere():
    line = Line("beams", [[0.0, 0.9], [1.0, 0.6], [2.0, 0.4]])
    assert "no longer from a deviation of 2." in likelihood_and_utility.crossing(line, 0.5)
    assert "at every deviation tried." in likelihood_and_utility.crossing(line, 0.3)


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
    traces = family_bench.traced(models, "sequoia", {"budget": 4, "temperature": 0.0}, prompts)
    tokens = asked.tokens_a_round(traces)
    assert tokens >= 1.0
    assert 0 < family_bench.building(traces) < 1e4
    assert f"{tokens:.2f} tokens a target forward" in family_bench.counted(traces)
    with pytest.raises(ValueError, match="no benchmark of 'alchemy'; choose "):
        benchmarks.run(SimpleNamespace(family="alchemy", only=None, json=False))


def test_what_a_search_costs_beside_the_model(models):
    """Both parts make the whole."""
    traces = family_bench.traced(models, "best_first", {"max_expansions": 4}, [[40, 41], [42]])
    assert [trace.prompt for trace in traces] == [[40, 41], [42]]
    for trace in traces:
        inside = sum(forward.seconds for step in trace.steps for forward in step.of(Forward))
        whole = trace.costs.totals()["seconds"]
        assert 0 < inside < whole and inside * (1 + search_bench.outside(trace)) == pytest.approx(whole)


def test_the_search_for_a_configuration_is_the_same_again_and_no_default_beats_it(monkeypatch):
    """Luck by configuration and problem in place of models: defaults and survivors answer all problems."""

    def luck(models, setting, problem):
        draw = random.Random(repr((sorted(setting.items()), problem)))
        return draw.random() < 0.3 + 0.1 * (setting["population"] == 8), draw.random()

    monkeypatch.setattr(program_search, "answer", luck)
    found = [program_search.optimised({}, list(range(16))) for _ in range(2)]
    assert found[0] == found[1] and len({id(one) for one in found[0]}) == len(found[0])
    best = found[0][0]
    assert all(best.right >= one.right for one in found[0] if one.origin != "random")
    assert all(len(one.found) == 16 for one in found[0])
    assert sum(one.origin == "random" for one in found[0]) == 2
    points = [[3.0, 0.1], [1.0, 0.2], [2.0, 0.5]]
    assert program_search.staircase(points) == [[1.0, 0.2], [2.0, 0.5], [3.0, 0.5]]


@pytest.mark.parametrize("tokens", [1, 5])
def test_reading_once_and_again(models, tokens):
    """Counted layer-tokens are the formula's, and the text is the same without a cache."""
    prompt = "opposite: big =>"
    for writer in reading_once.writers(models).values():
        wrote = writer.write(prompt, tokens)
        assert writer.write(prompt, tokens, use_cache=False) == wrote
        n, config = len(writer.tokenizer(prompt)["input_ids"]), writer.model.config
        apart = bool(config.is_encoder_decoder)
        reads = config.num_layers if apart else len(writer.layers)
        writes = config.num_decoder_layers if apart else len(writer.layers)
        assert writer.work(prompt, tokens) == reading_once.expected(reads, writes, n, len(wrote), apart)
    apart, decoder = (
        reading_once.expected(*(9, 9, 500, 1, False)),
        reading_once.expected(6, 3, 500, 1, True),
    )
    assert 0.6 < decoder / apart < 0.75


def test_what_is_kept_of_the_source_does_not_grow():
    """As transformers' own caches hold it."""
    model, tokenizer = reading_once.reader()
    ids = torch.tensor([tokenizer("opposite: big =>")["input_ids"]])
    for m in (1, 4):
        with torch.inference_mode():
            past = model(input_ids=ids, decoder_input_ids=torch.full((1, m), 1)).past_key_values
        parts = [[(layer.keys.numel() + layer.values.numel()) for layer in cache.layers]
                 for cache in (past.cross_attention_cache, past.self_attention_cache)]  # fmt: skip
        cross, own = (sum(part) for part in parts)
        assert cross == reading_once.kept(6, 3, 192, ids.shape[1], 0, apart=True)
        assert cross + own == reading_once.kept(6, 3, 192, ids.shape[1], m, apart=True)
