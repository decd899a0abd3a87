"""Experiments that ask what is right or how it reads: what they count, by hand."""

import math
import random
from dataclasses import asdict
from types import SimpleNamespace

import pytest
import torch

from decoders.search.stepwise import scorers
from decoders.trace.scores import Measure
from explorer import experiments
from explorer.experiments import (
    Line,
    asked,
    guided_descriptions,
    hyperfitting,
    pictures,
    program_search,
    reading_once,
)
from explorer.experiments.reading import rows_of
from explorer.experiments.sweeps import (
    cost_and_accuracy,
    decoders_swept,
    evidence,
    faithful_answers,
    likelihood_and_utility,
    noisy_instructions,
)
from explorer.tasks import problems


def test_unusual_prompts_never_say_what_is_usual_and_hold_their_own_answer():
    for kind in evidence.FORMS:
        for item in evidence.unusual(kind, 60):
            assert item.right != item.usual and item.right in evidence.words(item.evidence)
            assert item.usual not in evidence.words(item.prompt) and item.prompt.startswith(item.evidence)
    assert all(item.right in item.evidence for item in evidence.sheets(60))


def test_what_an_alpha_wins_and_loses_by_hand(models, monkeypatch):
    item = evidence.Item("The sky is green.\nIt is", "The sky is green.", "green", "blue")

    def answers(*texts: str) -> list[evidence.Answered]:
        found = []
        for text in texts:
            made = asked.decoded(models, "context_aware", item.prompt, 2, alpha=0.5, context=item.evidence)
            monkeypatch.setattr(evidence, "decoded", lambda *_, **__: made)  # noqa: B023
            monkeypatch.setattr(evidence, "answer_text", lambda _: text)  # noqa: B023
            found.append(evidence.weighed(models, "context_aware", item, alpha=0.5))
        return found

    row = evidence.measures(answers(" blue.", " Green grass", " green"), answers(" green", " red", " blue"))
    assert row["right"] == pytest.approx(2 / 3) and row["usual"] == pytest.approx(1 / 3)
    assert row["words of the evidence"] == pytest.approx((0 + 1 / 2 + 1) / 3)
    assert row["forwards per token"] == 2.0 and (row["won"], row["lost"]) == (2, 1)


def test_no_question_is_one_that_the_model_answers_without_the_document(models, short):
    for kind, questions in faithful_answers.asked(models).items():
        assert len(questions) == faithful_answers.COUNT, kind
        for _, item, belief in questions:
            assert item.prompt.startswith(item.evidence) and evidence.words(item.right) != belief
            blind = item.prompt.removeprefix(item.evidence)
            assert item.right not in blind and belief == evidence.words(
                asked.decoded(models, "greedy", blind, faithful_answers.TOKENS).text().split("<|")[0]
            )


def test_how_far_drawn_answers_are_ahead_by_hand(models):
    """Two questions, two answers each: none, then all and half of them right."""
    item, belief = evidence.Item("?", "It is green.", "green"), ["blue"]
    made = asked.decoded(models, "context_aware", "It is green.\nIt is", 2, alpha=0.5)

    def drawn(*texts: str) -> faithful_answers.Drawn:
        given = dict(steps=made.steps, costs=made.costs, output=made.output)
        traces = [SimpleNamespace(text=lambda text=text: text, **given) for text in texts]
        return faithful_answers.judged(traces, item, belief)

    answers = [drawn(" green", "Green."), drawn(" blue<|end|>", " green")]
    row = faithful_answers.measures(answers, [drawn(" blue", " blue")] * 2)
    assert row["right"] == 0.75 and row["its own"] == 0.25 and row["overlap"] == 0.75
    assert row["from"] == pytest.approx(1 - 0.25 - 1.959964 * 0.25) and row["to"] == 1.0
    assert row["forwards per token"] == 2.0
    assert (row["ahead"], row["± error"]) == (0.75, pytest.approx(0.25))
    again = faithful_answers.measures(answers, answers)
    assert (again["ahead"], again["± error"]) == (0.0, 0.0)


def test_the_luck_of_a_question_is_its_own_and_the_same_for_all_alphas(models, short, monkeypatch):
    item = evidence.Item("It is green.\nIt is", "It is green.", "green")
    kept = []

    def decoded(*given, **parameters):
        kept.append(asked.decoded(*given, **parameters))
        return kept[-1]

    monkeypatch.setattr(faithful_answers, "decoded", decoded)

    def traces(number: int, alpha: float):
        kept.clear()
        faithful_answers.drawn(models, "context_aware", number, item, [], alpha=alpha)
        return list(kept)

    one, two, half = traces(0, 0.0), traces(1, 0.0), traces(1, 0.5)
    assert [t.seed for t in one] == [0, 1] and [t.seed for t in two] == [2, 3]
    draws = [[e.total for s in t.steps for e in s.of(Measure) if e.name == "draw"][0] for t in (*two, *half)]
    assert draws[:2] == draws[2:] and len(set(draws)) == 2


def test_a_copy_learns_its_sequences_by_heart_and_the_target_stays(models, corpus, monkeypatch):
    """Four sequences that a random model cannot know."""
    for constant, value in dict(
        SEQUENCES=4, CONTEXTS=2, LENGTH=24, READ=4, WRITTEN=8, EPOCHS=60, BATCH=2, EVERY=120, RATE=1e-2
    ).items():
        monkeypatch.setattr(hyperfitting, constant, value)
    data, model = hyperfitting.texts(models["target"], corpus), models["target"].model
    assert data.learned.shape == (4, 24) and data.unseen.shape == (2, 24)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    copy, (first, last) = hyperfitting.trained(model, data, 0)
    assert (first.updates, last.updates) == (0, 120) and last.training < 0.1 < first.training
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
    assert hyperfitting.comparison(first, last)[0].startswith(
        "After 120 updates the copy knows its sequences by "
    )
    assert hyperfitting.written(copy, data.learned[:, :16]) == data.learned[:, 16:].tolist()


def test_leads_and_varieties_by_hand():
    assert hyperfitting.variety([1, 2, 1, 3]) == 0.75
    lead, error, p = hyperfitting.ahead([0.5, 0.75, 1.0], [0.25, 0.5, 1.0])
    assert (lead, error, p) == (pytest.approx(1 / 6), pytest.approx(1 / 12), 0.5)
    tops = torch.tensor([[1, 2, 3, 4]])
    said = hyperfitting.reordered(tops, tops.where(tops < 4, 0), torch.tensor([[0, 2, 0, 0]]))
    assert "change 50% of" in said and said.endswith("in the first place changed 25%.")


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
            assert text == asked.text_of(models, trace.output()).strip()


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
    plain = [answer(tasks[0], right, 4, 9) for right in (True, False, False)]
    found = [answer(tasks[0], right, 8, 20 + right) for right in (False, True, True)]
    row = cost_and_accuracy.SWEEP.measures(found, plain)
    assert (row[tasks[0]], row[tasks[1]]) == (pytest.approx(2 / 3), None)
    assert row["right"] == pytest.approx(2 / 3) and row["from"] < row["right"] < row["to"]
    assert (row["forwards"], row["tokens read"]) == (8, pytest.approx(62 / 3))
    assert (row["won"], row["lost"], row["p"]) == (2, 1, 1.0)


def test_no_search_asks_the_checker(models):
    """What a search may ask is a rule on prompt and text, or the reward head if the target has one."""
    assert set(cost_and_accuracy.SCORERS.values()) <= {*scorers.RULES, "reward"}
    graded = {problem.task for (problem,) in cost_and_accuracy.asked(models, "cards", {})}
    assert graded == {task for task, scorer in cost_and_accuracy.SCORERS.items() if scorer != "reward"}


def test_a_spoiled_oracle_stops_helping_somewhere():
    line = Line("beams", [[0.0, 0.9], [1.0, 0.6], [2.0, 0.4]])
    assert "below a deviation of 2." in likelihood_and_utility.crossing(line, 0.5)
    assert "at every deviation tried." in likelihood_and_utility.crossing(line, 0.3)


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
    assert all(len(one.results) == 16 for one in found[0])
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
        parts = [
            [(layer.keys.numel() + layer.values.numel()) for layer in cache.layers]
            for cache in (past.cross_attention_cache, past.self_attention_cache)
        ]
        cross, own = (sum(part) for part in parts)
        assert cross == reading_once.kept(6, 3, 192, ids.shape[1], 0, apart=True)
        assert cross + own == reading_once.kept(6, 3, 192, ids.shape[1], m, apart=True)


def test_every_setting_of_a_decoder_is_a_cell_and_tuning_is_never_worse():
    found = next(one for one in experiments.stored() if one["name"] == "decoders-swept")
    heat, spread = decoders_swept.pictures(rows_of(found))
    assert [len(row.each) for row in heat.rows] == [
        len(given) for given, _ in decoders_swept.METHODS.values()
    ]
    cells = [value for row in heat.rows for value in row.values[0]]
    assert cells == [row[1] for row in found["rows"]], "the first task, setting by setting"
    for row in spread.rows:
        best, usual, mean = row.values
        assert best >= usual and best >= mean
    assert [asdict(heat), asdict(spread)] == found["pictures"]


def test_a_regression_line_needs_two_different_values():
    assert pictures.fitted([[0.0, 1.0], [2.0, 5.0], [1.0, 3.0]]) == [0.0, 1.0, 2.0, 5.0]
    assert pictures.fitted([[0.0, 1.0], [2.0, 1.0]]) is pictures.fitted([[1.0, 0.0], [1.0, 2.0]]) is None


def test_a_text_is_marked_where_it_says_something_again_and_where_it_cites():
    """`a b c d` comes twice; of the learned sequence `x y` stands at the end."""
    target = SimpleNamespace(bytes_of=lambda token: bytes([token]), eos=())
    text = list(b"abcd-abcd-xy")
    found = hyperfitting.pieces({"target": target}, text, [list(b"..xy.")])
    assert found == [["abcd-", ""], ["abcd-", "again"], ["xy", "cited"]]
    found = hyperfitting.pieces({"target": target}, text, [list(b"d-ab")])
    assert [piece for piece in found if "cited" in piece[1]] == [["d-", "cited"], ["ab", "again cited"]]
