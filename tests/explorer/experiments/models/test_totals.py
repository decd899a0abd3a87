"""Digits with a given total: the answers, the checker, the tokens, and what is masked in training."""

from math import comb, log

import pytest
import torch

from explorer.experiments.models import totals


def test_every_list_of_digits_has_one_total():
    counts = [len(totals.answers(one.facts["total"])) for one in totals.PROBLEMS]
    assert sum(counts) == (totals.HIGHEST + 1) ** totals.DIGITS and counts == counts[::-1]
    assert counts[:3] == [1, 8, comb(8, 2) + 8]  # none, a one, two ones or a two


@pytest.mark.parametrize(
    "text, right", [("21000000", True), ("00000021", True), ("2100000", False), ("1100001x", False)]
)  # fmt: skip
def test_a_right_answer_has_as_many_digits_and_the_total(text, right):
    assert totals.check(totals.problem(3), text).right is right


def test_texts_are_prompts_with_right_answers():
    rows = totals.texts(2)
    assert rows.shape == (2 * len(totals.PROBLEMS), 3 + totals.DIGITS)
    for row in rows.tolist():
        text = "".join(totals.SYMBOLS[token] for token in row)
        assert totals.check(totals.problem(int(text[:2])), text[3:]).right and text[2] == "="
    assert totals.symbols()("07=")["input_ids"] == [0, 7, totals.EQUALS]


def test_only_answers_are_masked():
    seen = []

    def model(input_ids, attention_mask):
        seen.append(input_ids)
        assert not attention_mask.any()
        return type("Out", (), {"logits": torch.zeros(*input_ids.shape, len(totals.SYMBOLS))})

    loss = totals.denoising(model, totals.texts(20), torch.Generator().manual_seed(0))
    (rows,) = seen
    assert float(loss) == pytest.approx(log(len(totals.SYMBOLS)), abs=1e-5)
    assert (rows[:, : -totals.DIGITS] != totals.MASK).all() and (
        rows[:, -totals.DIGITS :] == totals.MASK
    ).any()
