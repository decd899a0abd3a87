"""EDU plans: units, ROUGE and plans by hand; on a table whose realiser and reranker are known each choice."""

import itertools
import math
import random

import pytest
import torch

from decoders.heads import Planner, Target
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.search.planned.content_plans import plan_beams, uniform
from decoders.search.planned.discourse_units import (
    agreement,
    gained,
    implied,
    labels,
    oracle,
    rouge,
    unit_texts,
)
from decoders.search.planned.plan_tags import Tags, source_of, tags_of
from decoders.trace.events import Note, Verdict
from decoders.trace.scores import Score
from explorer.tasks.summaries import make_sheet
from tests.helpers import tiny_models

SHEET = "Tom has a red hat and Mia likes soup. Tom is in the park.\nSummary:"
UNITS = ["Tom has a red hat", "Mia likes soup", "Tom is in the park"]
WORDS = ["<e>", "</e>", "$", "Tom", " sings", " and", " Mia", " sleeps", ".", " song", " night"]
OPEN, CLOSE, EOS, TOM, SINGS, AND, MIA, SLEEPS, DOT, SONG, NIGHT = range(11)
PROMPT = [TOM, SINGS, AND, MIA, SLEEPS, DOT]


# ---- units


def test_units_are_clauses_without_marks_and_the_line_that_asks_is_none():
    assert unit_texts(SHEET) == UNITS
    assert unit_texts("One day, there was a dog; it ran far. Ann and Bob sat. Hm") == [
        "One day",
        "there was a dog",
        "it ran far. Ann",
        "Bob sat. Hm",
    ]
    assert unit_texts("") == unit_texts("  \n") == []


def test_tags_stand_around_the_tokens_of_a_plan(tiny_model):
    target = tiny_model("forms")
    source = source_of(target.encode(SHEET), target.bytes_of)
    assert source.texts == UNITS
    ids, places = source.tagged([1, 2], tags_of(target))
    text = b"".join(map(target.bytes_of, ids)).decode()
    assert (
        text
        == "Tom has a red hat and<e> Mia likes soup</e>.<e> Tom is in the park</e>.\nSummary:".replace(
            "<e> ", " <e>"
        )
    )
    assert [ids[place] for place in places] == source.tokens
    assert source_of([7], target.bytes_of).spans == [(0, 1)]  # a prompt without a clause is one unit


def test_the_oracle_plan_of_a_generated_sheet_is_what_its_summary_tells():
    rng = random.Random(1)
    made = [make_sheet(rng) for _ in range(60)]
    assert all(unit_texts(sheet.prompt) == sheet.units for sheet in made)
    right = [oracle(sheet.units, sheet.summary) == sheet.tells for sheet in made]
    assert sum(right) > 50 and all(implied(s.units, s.summary) == set(s.tells) for s in made)
    assert all(labels(s.units, s.summary)[i] > 0.2 for s in made for i in s.tells)


def test_rouge_counts_words_and_pairs_that_say_something():
    assert rouge("Tom has a red hat", "the red hat") == pytest.approx((2 * 2 / 5 + 2 * 1 / 3) / 2)
    assert rouge("Tom", "Mia") == rouge("", "") == 0
    assert gained(UNITS, "Soup is what Mia likes, Tom has a hat.") == [0, 1]
    assert agreement(UNITS, ["Mia eats soup.", "The park has Tom."], [1, 2]) == 1.0
    assert agreement(UNITS, ["Mia eats soup."], [0]) == 0.0


# ---- plans


def test_plans_are_the_likeliest_sets_and_no_two_are_the_same():
    """Against all sets, each with the product of its choices; a beam as wide as there are sets finds all."""
    table = torch.randn(64, 5, generator=torch.Generator().manual_seed(0))

    def law(beginnings):
        rows = uniform(4)(beginnings)
        seeds = [sum(1 << unit for unit in units) for units in beginnings]
        return (table[seeds] + rows.clamp(min=-1e9)).log_softmax(-1).where(rows.isfinite(), -torch.inf)

    def chance(units):
        choices = [(*units[:n], unit) for n, unit in enumerate((*units, 4))]
        return sum(float(law([one[:-1]])[0, one[-1]]) for one in choices)

    sets = [units for n in range(1, 5) for units in itertools.combinations(range(4), n)]
    *_, (_, whole) = plan_beams(law, 15)
    assert [plan.units for plan in whole] == sorted(sets, key=lambda units: -chance(units))
    assert [plan.logprob for plan in whole] == pytest.approx(
        sorted(map(chance, sets), reverse=True), abs=1e-4
    )
    assert sum(math.exp(plan.logprob) for plan in whole) == pytest.approx(1.0, abs=1e-4)
    for width in (1, 3):
        *_, (_, few) = plan_beams(law, width)
        assert len({plan.units for plan in few}) == len(few) == width


def test_the_plan_model_points_step_by_step_as_it_was_trained(tiny_model):
    torch.manual_seed(0)
    head = Planner(Target.of(tiny_model("forms").model), width=8, heads=2).eval()
    vectors, counts = torch.randn(2, 5, head.read.in_features), torch.tensor([4, 3])
    plans = torch.tensor([[0, 2], [1, -1]])
    soft = torch.tensor([[0.9, 0.0, 0.5, 0.1], [0.0, 0.8, 0.1, 0.0]])
    total, kl = [], []
    for row, (units, count) in enumerate((((0, 2), 4), ((1,), 3))):
        law, salience = head.opened(vectors[row, : count + 1])
        steps = [law([units[:n]])[0] for n in range(len(units) + 1)]
        assert all(step.exp().sum() == pytest.approx(1.0) for step in steps)
        assert steps[0][-1] == -torch.inf and (steps[-1][: units[-1] + 1] == -torch.inf).all()
        total += [-step[unit] for step, unit in zip(steps, (*units, count), strict=True)]
        wanted = (10 * soft[row, :count]).softmax(-1)
        kl.append((wanted * (wanted.log() - torch.tensor(salience).log())).sum())
    expected = torch.stack(total).mean() + torch.stack(kl).mean()
    torch.testing.assert_close(head.loss(vectors, counts, plans, soft), expected, rtol=1e-3, atol=1e-4)


# ---- the strategy


def realiser(text: tuple[int, ...]) -> list[float]:
    """Tells of the tagged units, a song of Tom's and a night of Mia's; without tags of the night alone."""
    row, at = [0.001] * len(WORDS), text.index(DOT)
    source, written = text[: at + 1], text[at + 1 :]
    tagged = set(itertools.pairwise(source))
    told = [word for first, word in ((TOM, SONG), (MIA, NIGHT)) if (OPEN, first) in tagged] or [NIGHT]
    told.append(EOS)
    row[told[min(len(written), len(told) - 1)]] = 0.9
    return [p / sum(row) for p in row]


def table() -> TableModel:
    return TableModel(realiser, len(WORDS), frozenset([EOS]), words=WORDS)


def run(target, prompt=PROMPT, tokens=8, **parameters):
    return Lane("edu_plans", list(prompt), {"target": target}, parameters, limits=Limits(tokens)).run()


def scores(trace, name) -> list[Score]:
    return [e for step in trace.steps for e in step.of(Score) if e.name == name]


def test_each_plan_becomes_its_text_and_the_likeliest_without_tags_is_output():
    trace = run(table(), num_plans=3, num_beams=1)
    assert trace.output() == [NIGHT, EOS]
    ranked = {e.level: e.rank for e in scores(trace, "reranker")}
    assert ranked.keys() == {"1", "2", "1 2"} and ranked["2"] == 1
    means = {e.level: e.total for e in scores(trace, "reranker")}
    assert means["2"] == pytest.approx(math.log(0.9 / 0.91), abs=1e-4)
    finished = [v for step in trace.steps for v in step.of(Verdict) if v.status == "finished"]
    assert len(finished) == 3
    (note,) = [e.text for step in trace.steps for e in step.of(Note)]
    assert note.startswith("No plan model comes with the project for ")


def test_without_the_reranker_the_likeliest_plan_is_output():
    trace = run(table(), num_plans=3, num_beams=1, rerank=False)
    assert scores(trace, "reranker")[0].level == "2"  # all of it: one half, and then nothing but stop is left


@pytest.mark.parametrize("beams", [1, 3])
def test_one_plan_without_reranking_is_beam_search_behind_its_tags(beams, tiny_model):
    """The plan model says which plan; then it is `beam` on the tagged prompt."""
    target = tiny_model("forms")
    ids = target.encode(SHEET)
    trace = run(target, ids, 10, num_plans=1, num_beams=beams, rerank=False)
    (plan,) = {e.level for e in scores(trace, "reranker")}
    units = [int(unit) - 1 for unit in plan.split()]
    tagged, _ = source_of(ids, target.bytes_of).tagged(units, tags_of(target))
    models = {"target": target}
    beam = Lane("beam", tagged, models, {"num_beams": beams}, limits=Limits(10)).run()
    assert trace.output() == beam.output()


def test_the_plan_model_reads_every_unit_with_tags(monkeypatch):
    """What it is given are the states of the text with all tags, at the units' own tokens."""
    target, seen = tiny_models.make("forms"), []
    torch.manual_seed(0)
    head = Planner(Target.of(target.model), width=8, heads=2).eval()
    opened = head.opened
    monkeypatch.setattr(head, "opened", lambda vectors: seen.append(vectors) or opened(vectors))
    target.heads["planner"] = head
    ids = target.encode(SHEET)
    trace = run(target, ids, 4, num_plans=3)
    source = source_of(ids, target.bytes_of)
    tagged, places = source.tagged(range(3), tags_of(target))
    states = target.model.model(torch.tensor([tagged])).last_hidden_state[0, places]
    means = torch.stack([states.mean(0), *(states[a:b].mean(0) for a, b in source.spans)])
    torch.testing.assert_close(seen[0], means, rtol=1e-3, atol=1e-3)
    plans = {e.level for e in scores(trace, "reranker")}
    assert len(plans) == 3 and sum(e.total for e in scores(trace, "unit")) == pytest.approx(1.0)


def test_a_model_without_tags_is_refused(tiny_model):
    with pytest.raises(ValueError, match=r"has no tags for the units .* llama-tiny-summaries\.$"):
        run(tiny_model("llama"), [40, 41])
    assert tags_of(table()) == Tags(OPEN, CLOSE)
