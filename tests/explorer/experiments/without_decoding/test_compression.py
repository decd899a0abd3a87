"""The compression study: nothing is lost where nothing is taken; what its columns mean; the stored curves."""

import pytest
import torch

from explorer import experiments
from explorer.experiments.reading import rows_of
from explorer.experiments.statistics import spearman
from explorer.experiments.without_decoding import compression
from tests.helpers import tiny_models

COLUMNS = ("agreement", "knowledge", "in context", "acceptance")


def test_with_nothing_pruned_nothing_is_lost(models, short):
    found = compression.SWEEP.run(models)
    answer = {"columns": found.columns, "rows": found.rows}
    rows = {row["edit"]: row for row in rows_of(answer)}
    whole = rows["magnitude 0"]
    assert whole["agreement"] == 1.0 and whole["acceptance"] == pytest.approx(1.0, abs=1e-5)
    assert rows["wanda 0.7"]["acceptance"] < 0.95 < rows["bits 8"]["acceptance"]


def test_an_answer_is_right_if_greedy_decoding_writes_it(tiny_model):
    target = tiny_model()
    prompts = [target.encode(text) for text in ("the cat", "a mat; the", "on")]
    answers = [tiny_models.generate(target, prompt, max_new_tokens=5) for prompt in prompts]
    pairs = list(zip(prompts, answers, strict=True))
    assert compression.written(target.model, pairs) == 1.0
    wrong = [(prompts[0], [*answers[0][:-1], (answers[0][-1] + 1) % 200]), *pairs[1:]]
    assert compression.written(target.model, wrong) == pytest.approx(2 / 3)


def test_acceptance_is_the_overlap_of_both_distributions(tiny_model):
    p, q = tiny_model().model, tiny_model("llama", 1).model
    rows = torch.tensor([[40, 41, 42, 43]])
    with torch.no_grad():
        one, other = p(rows).logits.softmax(-1), q(rows).logits.softmax(-1)
    found = compression.compared(q, p(rows).logits, rows)[2]
    assert found == pytest.approx(float(torch.minimum(one, other).sum(-1).mean()), abs=1e-5)


def test_the_stored_curves_fall_on_average():
    answer = experiments.find_stored("compression")
    rows = {row["edit"]: row for row in rows_of(answer)}
    for kind in ("magnitude", "wanda"):
        own = [rows.get(f"{kind} {share}", rows["magnitude 0"]) for share in compression.SHARES]
        shares = [float(share) for share in compression.SHARES]
        for column in COLUMNS:
            assert spearman(shares, [row[column] for row in own]) < -0.8
        assert spearman(shares, [row["perplexity"] for row in own]) > 0.8
