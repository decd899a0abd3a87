"""Language model guidance: the law of three rows, whose row is whose, costs, and examples of a style."""

import math

import pytest
import torch

from decoders.chooser import Exhaustive
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.sampling.contrastive import lm_guidance
from decoders.trace.events import Distribution

Q, P_C, P_U = (0.5, 0.4, 0.1), (0.2, 0.5, 0.3), (0.4, 0.2, 0.4)


@pytest.fixture(scope="module")
def models(tiny_model):
    return {"target": tiny_model("llama"), "draft": tiny_model("llama", 1)}


def trace(models, text="the cat sat on a mat; the cat", tokens=10, **parameters):
    return Lane("lm_guidance", models["target"].encode(text), models, parameters, 0, Limits(tokens)).run()


def test_drawn_text_has_the_law_of_three_rows():
    """Exactly, on tables that look at the first token only: 0 with the prompt, 1 without it."""
    models = {
        "target": TableModel(lambda past: P_C if past[0] == 0 else P_U, 3),
        "draft": TableModel(lambda past: Q, 3),
    }

    def text(chooser):
        given = {"condition_weight": 1.0, "unconditional_weight": 0.6, "temperature": 1.0}
        return tuple(Lane("lm_guidance", [0, 1], models, given, 0, Limits(2), chooser).run().output())

    raw = torch.tensor([-1.7528, -0.6438, -2.9568]).exp()
    one = (raw / raw.sum()).tolist()
    for (a, b), probability in Exhaustive().distribution(text).items():
        assert probability == pytest.approx(one[a] * one[b], rel=1e-3)


def test_with_no_weight_on_the_target_it_is_the_draft(models):
    found = trace(models, condition_weight=0.0, unconditional_weight=0.0)
    alone = Lane("greedy", found.prompt, {"target": models["draft"]}, limits=Limits(10)).run()
    assert found.output() == alone.output() != []


def test_three_forwards_a_token_and_four_rows(models):
    found = trace(models)
    count, totals = len(found.output()), found.costs.totals()
    assert (totals["target_forwards"], totals["draft_forwards"]) == (2 * count, count)
    offers = [e for s in found.steps for e in s.of(Distribution)]
    views = [(e.view, e.level) for e in offers[:4]]
    assert views == [
        ("target", None),
        ("unwanted", "negative prompt"),
        ("draft", "style"),
        ("combined", None),
    ]
    assert len(offers) == 4 * count


def test_the_draft_reads_the_style_and_what_is_written(models):
    """Every row of it is that of a fresh forward."""
    style = "a dog. a hat."
    found = trace(models, style=style)
    offers = [e for s in found.steps for e in s.of(Distribution) if e.view == "draft"]
    for place, offer in enumerate(offers):
        text = [*models["draft"].encode(style), *found.output()[:place]]
        fresh = models["draft"].model(torch.tensor([text])).logits[0, -1].log_softmax(-1)
        assert [fresh[int(t)].item() for t, _ in offer.top] == pytest.approx(
            [x for _, x in offer.top], abs=1e-4
        )


def test_after_examples_a_new_line_is_the_end():
    row = torch.tensor([[0.1, 0.2, 0.3, 0.4]]).log()
    found = lm_guidance.ended(row, [1, 2], [3]).exp()[0].tolist()
    assert found == pytest.approx([0.1, 0.0, 0.0, 0.9])
    words = ["a", "b", "\n", "."]
    rows = {"target": (0.3, 0.3, 0.2, 0.2), "draft": (0.1, 0.2, 0.6, 0.1)}
    models = {
        role: TableModel(lambda past, row=row: row, 4, frozenset({3}), words=words)
        for role, row in rows.items()
    }

    def text(style):
        return Lane("lm_guidance", [0, 1], models, {"style": style}, 0, Limits(3)).run().output()

    assert text("a\n\nb\n\n") == [3] and text("a") == text("") == [2, 2, 2]


def test_a_style_that_does_not_fit_is_refused_with_a_sentence(models):
    assert trace(models, style="x" * 250).ended.startswith("The second prompt has 250 tokens, and with 10 ")
    assert math.isinf(lm_guidance.ended(torch.zeros(1, 3), [0], [2])[0, 0].item())
