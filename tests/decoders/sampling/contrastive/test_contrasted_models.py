"""Contrastive decoding and DoLa: against naive loops over transformers' forwards, masks, layers, costs."""

import pytest
import torch
from torch.nn.functional import kl_div

from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.registry import get
from decoders.sampling.contrastive.dola import candidates, divergence
from decoders.trace.events import Distribution, Note
from decoders.trace.scores import Measure
from tests.helpers.deep_models import PROMPT, deep

PLAIN = {"repetition_penalty": 1.0}


@pytest.fixture(scope="module")
def models():
    return {"target": deep(layers=6), "draft": deep(layers=2, seed=4)}


def trace(name, models, parameters=None, tokens=8, prompt=PROMPT):
    return Lane(name, list(prompt), models, parameters, limits=Limits(tokens)).run()


def logits(model, text):
    """The model's own row [V] after `text`."""
    return model.model(torch.tensor([text])).logits[0, -1]


def masked(scores, wanted, alpha):
    return scores.masked_fill(wanted.softmax(-1) < alpha * wanted.softmax(-1).max(), float("-inf"))


# ---- contrastive decoding ----------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("form", ["weighed (2023)", "ratio (2022)"])
def test_contrastive_decoding_is_a_naive_loops(models, form, alpha):
    text = list(PROMPT)
    for _ in range(8):
        expert, amateur = logits(models["target"], text), logits(models["draft"], text)
        if form.startswith("ratio"):
            scores = expert.log_softmax(-1) - amateur.log_softmax(-1)
        else:
            scores = 1.7 * expert - 0.7 * amateur
        text.append(int(masked(scores, expert, alpha).argmax()))
    found = trace("contrastive_decoding", models, {"form": form, "alpha": alpha, "beta": 0.7})
    assert found.output() == text[len(PROMPT) :]


def test_its_extremes_are_greedy(models):
    greedy = trace("greedy", models).output()
    assert trace("contrastive_decoding", models, {"beta": 0.0}).output() == greedy
    for form in ("weighed (2023)", "ratio (2022)"):
        assert trace("contrastive_decoding", models, {"alpha": 1.0, "form": form}).output() == greedy
    same = {"target": models["target"], "draft": models["target"]}
    assert trace("contrastive_decoding", same, {"beta": 3.0}).output() == greedy


def test_expert_and_amateur_each_run_once_a_token(models):
    totals = trace("contrastive_decoding", models).costs.totals()
    assert (totals["target_forwards"], totals["draft_forwards"]) == (8, 8)
    totals = trace("contrastive_decoding", models, {"beta": 0.0}).costs.totals()
    assert (totals["target_forwards"], totals["draft_forwards"]) == (8, 0)


def test_an_amateur_that_agrees_leaves_the_ratio_undecided_and_the_lane_says_so():
    table = TableModel(lambda past: (0.1, 0.4, 0.4, 0.1), 4)
    found = trace(
        "contrastive_decoding",
        {"target": table, "draft": table},
        {"form": "ratio (2022)", "alpha": 0.5},
        3,
        [0],
    )
    assert found.output() == [1, 1, 1]  # of the two that are left, the smaller id
    assert all("decides nothing" in s.of(Note)[0].text for s in found.steps)


def naive_beams(models, width, tokens, alpha, amateur_temperature):
    """The best text of so many tokens, by the sum of log p - log q among plausible tokens of each text."""
    live = [((), 0.0)]
    for _ in range(tokens):
        grown = []
        for text, total in live:
            expert, amateur = (logits(models[role], [*PROMPT, *text]) for role in ("target", "draft"))
            scores = expert.log_softmax(-1) - (amateur / amateur_temperature).log_softmax(-1)
            scores = masked(scores, expert, alpha)
            top = scores.topk(min(width, int(scores.isfinite().sum())))
            grown += [
                ((*text, int(t)), total + float(s)) for s, t in zip(top.values, top.indices, strict=True)
            ]
        live = sorted(grown, key=lambda entry: -entry[1])[:width]
    return list(live[0][0])


@pytest.mark.parametrize("amateur_temperature", [1.0, 0.5])
def test_beams_of_2022_are_naive_ones(models, amateur_temperature):
    given = {"form": "ratio (2022)", "num_beams": 5, "amateur_temperature": amateur_temperature}
    want = naive_beams(models, 5, 6, 0.1, amateur_temperature)
    found = trace("contrastive_decoding", models, given, 6)
    assert found.output() == want
    totals = found.costs.totals()
    assert (totals["target_forwards"], totals["draft_forwards"]) == (6, 6)
    with pytest.raises(ValueError, match="Beams draw nothing"):
        trace("contrastive_decoding", models, given | {"temperature": 1.0})


def test_a_cooler_amateur_is_subtracted_as_it_is(models):
    text = list(PROMPT)
    for _ in range(6):
        expert, amateur = logits(models["target"], text), logits(models["draft"], text)
        scores = expert.log_softmax(-1) - (2 * amateur).log_softmax(-1)
        text.append(int(masked(scores, expert, 0.1).argmax()))
    given = {"form": "ratio (2022)", "amateur_temperature": 0.5}
    assert trace("contrastive_decoding", models, given, 6).output() == text[len(PROMPT) :]


def test_beams_that_have_no_token_left_end_with_a_sentence():
    table = TableModel(lambda past: (0.5, 0.5), 2)
    given = {"num_beams": 3, "no_repeat_ngram_size": 1}
    found = trace("contrastive_decoding", {"target": table, "draft": table}, given, 6, [0])
    assert found.ended.startswith("The processors left no token")


# ---- DoLa --------------------------------------------------------------------------------------------------


def naive_dola(model, layers, tokens, alpha=0.1, paper=False):
    """(new tokens, the layer that was taken for each), as transformers' custom_generate has it: the head on
    the states as they are, and kl_div with the mean as its target; or as the paper writes it.
    """
    text, chosen = list(PROMPT), []
    base, head = model.model.model, model.model.lm_head
    for _ in range(tokens):
        out = model.model(torch.tensor([text]), output_hidden_states=True)
        final = out.logits[0, -1]
        states = [out.hidden_states[layer][0, -1] for layer in layers]
        rows = [head(base.norm(state) if paper else state) for state in states]
        apart = []
        for row in rows:
            p, q = final.softmax(-1), row.softmax(-1)
            m = (p + q) / 2
            if paper:
                apart.append(0.5 * (p * (p / m).log()).sum() + 0.5 * (q * (q / m).log()).sum())
            else:
                apart.append(
                    0.5 * (kl_div(p.log(), m, reduction="none") + kl_div(q.log(), m, reduction="none")).mean()
                )
        best = int(torch.stack(apart).argmax())
        chosen.append(layers[best])
        text.append(int(masked(final.log_softmax(-1) - rows[best].log_softmax(-1), final, alpha).argmax()))
    return text[len(PROMPT) :], chosen


@pytest.mark.parametrize("bucket, layers", [("low", [0, 2]), ("high", [3, 5]), ("all", [0, 2, 4])])
@pytest.mark.parametrize("paper", [False, True])
def test_dola_is_a_naive_loops(models, bucket, layers, paper):
    want, chosen = naive_dola(models["target"], layers, 8, paper=paper)
    written = {"early_norm": True, "divergence": "Jensen-Shannon"} if paper else {}
    found = trace("dola", models, {"dola_layers": bucket, **PLAIN, **written})
    assert found.output() == want
    unwanted = [e for s in found.steps for e in s.of(Distribution) if e.view == "unwanted"]
    assert [e.level for e in unwanted] == [f"after {layer} of 6 layers" for layer in chosen]
    scores = [e for s in found.steps for e in s.of(Measure) if e.name == "divergence"]
    assert all(e.total == max(e.parts.values()) and len(e.parts) == len(layers) for e in scores)


def test_dola_subtracts_the_layers_that_are_listed(models):
    want, chosen = naive_dola(models["target"], [1, 4, 5], 8)
    found = trace("dola", models, {"dola_layers": "listed", "layers": "1, 4,5", **PLAIN})
    assert found.output() == want
    only = trace("dola", models, {"dola_layers": "listed", "layers": "3", **PLAIN})
    assert {e.level for s in only.steps for e in s.of(Distribution) if e.level} == {"after 3 of 6 layers"}
    for layers, said in (
        ("6", "after 0 to 5 layers"),
        ("-1", "0 to 5"),
        ("", "List the layers"),
        ("a", "whole numbers"),
    ):
        with pytest.raises(ValueError, match=said):
            trace("dola", models, {"dola_layers": "listed", "layers": layers})


def test_dola_takes_no_more_forwards_than_greedy(models):
    totals = trace("dola", models, PLAIN).costs.totals()
    assert (totals["target_forwards"], totals["target_tokens"]) == (8, len(PROMPT) + 7)
    assert trace("dola", models, {"alpha": 1.0, **PLAIN}).output() == trace("greedy", models).output()


def test_dola_beside_another_lane_on_the_same_prompt(models):
    """The other lane has read the prompt, and kept no states."""
    other = Lane("greedy", list(PROMPT), models, limits=Limits(8))
    other.advance()
    beside = trace("dola", models)
    other.close()
    assert beside.output() == trace("dola", models).output()


def test_candidate_layers():
    assert candidates("low", 12, tied=False) == [0, 2, 4]
    assert candidates("low", 12, tied=True) == [2, 4]
    assert candidates("high", 12, tied=True) == [6, 8, 10]
    assert candidates("all", 3, tied=False) == [0, 2]
    assert candidates("low", 40, tied=False)[-1] == 18 and candidates("high", 40, tied=False)[0] == 20
    assert candidates("low", 60, tied=True) == list(range(2, 20, 2))  # of deep models the outermost 20
    assert candidates("high", 61, tied=True) == list(range(41, 61, 2))
    for layers in (1, 2, 3, 4):
        for bucket in ("low", "high", "all"):
            found = candidates(bucket, layers, tied=True)
            assert found and all(0 <= layer < layers for layer in found)


def test_divergence_is_symmetric_bounded_and_knows_removed_tokens():
    rows = torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]]).double().log()
    found = divergence(rows[0], rows)
    assert found.tolist() == pytest.approx([0.0, 0.5 * torch.log(torch.tensor(2.0)).item(), 0.6931472])
    assert divergence(rows[1], rows)[0] == pytest.approx(found[1].item())


def test_the_authors_divergence_is_kl_div_with_the_mean_as_target():
    rows = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]]).double()
    mean = rows.mean(0)
    want = sum(kl_div(row.log(), mean, reduction="sum") for row in rows) / 2
    found = divergence(rows[0].log(), rows.log(), "reversed")
    assert found.tolist() == pytest.approx([0.0, want.item()])
    excluded = torch.tensor([[0.5, 0.5, 0.0], [0.5, 0.25, 0.25]]).double().log()
    assert divergence(excluded[0], excluded, "reversed").tolist() == [0.0, float("inf")]


def test_a_table_has_no_layers():
    table = TableModel(lambda past: (0.5, 0.5), 2)
    with pytest.raises(ValueError, match="reads the output of a part of the layers of the target"):
        Lane("dola", [0], {"target": table})
    assert get("dola").check({})["repetition_penalty"] == 1.2
