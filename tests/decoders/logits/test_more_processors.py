"""DRY, top-n-sigma and XTC against their authors' algorithms, penalties by counts, and a caller's own
processors.
"""

import random

import pytest
import torch

from decoders.chooser import Exhaustive
from decoders.lane import Lane, Limits
from decoders.logits.distributions import ProcessorContext, probabilities, processors
from decoders.logits.more_processors import Dry, TopNSigma, Xtc
from decoders.models.table_model import TableModel
from tests.helpers import tiny_models

V = 6


def reference_dry(text, multiplier, base, allowed, breakers):
    """Token -> penalty, by all suffixes of the text that occurred before."""
    found = {}
    for i in range(1, len(text)):
        for length in range(1, i + 1):
            suffix = text[len(text) - length :]
            if length > 50 or set(suffix) & breakers or text[i] in breakers:
                break
            if text[i - length : i] == suffix:
                found[text[i]] = max(found.get(text[i], 0), length)
    return {t: multiplier * base ** (n - allowed) for t, n in found.items() if n >= allowed}


@pytest.mark.parametrize("seed", range(40))
def test_dry_takes_what_the_longest_repeated_suffix_costs(seed):
    luck = random.Random(seed)
    text = [luck.randrange(3) for _ in range(luck.randrange(1, 14))]
    breakers = frozenset({2}) if seed % 2 else frozenset()
    left = Dry(0.8, 1.75, 2, breakers)(torch.tensor([text]), torch.zeros(1, V, dtype=torch.float64))[0]
    want = reference_dry(text, 0.8, 1.75, 2, breakers)
    assert left.tolist() == pytest.approx([-want.get(t, 0.0) for t in range(V)])


def test_dry_in_a_lane_breaks_a_loop_and_stops_at_the_models_own_breakers():
    loop = TableModel(lambda past: [0.9 if t == (past[-1] + 1) % 3 else 0.02 for t in range(V)], V)
    lane = Lane("greedy", [0], {"target": loop}, {"dry_multiplier": 5.0}, limits=Limits(12))
    plain = Lane("greedy", [0], {"target": loop}, limits=Limits(12))
    assert plain.run().output() == [1, 2, 0] * 4
    assert lane.run().output()[:5] == [1, 2, 0, 1, 0]  # "0 1" stood before: 2 would prolong it
    model = tiny_models.make("llama", seed=3)
    cut = model.cut(":")[0]
    stack = processors({"dry_multiplier": 1.0}, 259, ProcessorContext(259, cut=model.cut))
    row = torch.zeros(1, 259)
    assert torch.equal(stack(row, [[50, cut, 50, cut]]), row)
    assert stack(row, [[50, 51, 52, 50, 51]])[0, 52] == -1.0


def test_top_n_sigma_keeps_what_is_near_the_best_at_any_temperature():
    scores = torch.tensor([[3.0, 2.0, 1.0, -4.0]], dtype=torch.float64)
    assert scores.std() == pytest.approx(3.1091, abs=1e-4)
    assert TopNSigma(0.5)(None, scores)[0].isfinite().tolist() == [True, True, False, False]
    assert TopNSigma(1.0)(None, scores)[0].isfinite().tolist() == [True, True, True, False]
    for temperature in (0.3, 4.0):
        stack = processors({"temperature": temperature, "top_n_sigma": 1.0}, 4)
        assert stack(scores, [[0]])[0].isfinite().tolist() == [True, True, True, False]
    removed = torch.tensor([[3.0, 2.0, 1.0, -torch.inf]], dtype=torch.float64)  # does not count: sigma is 1
    assert TopNSigma(1.5)(None, removed)[0].isfinite().tolist() == [True, True, False, False]
    assert TopNSigma(9.0)(None, torch.tensor([[1.0, -torch.inf]]))[0].isfinite().tolist() == [True, False]


def test_xtc_removes_all_top_choices_but_the_least_likely():
    row = torch.tensor([[0.4, 0.1, 0.3, 0.2]], dtype=torch.float64).log()

    def kept(threshold, came=True, eos=()):
        left = Xtc(0.5, threshold, eos, lambda probability, tag: came)(torch.tensor([[0]]), row)
        return left[0].isfinite().nonzero()[:, 0].tolist()

    assert kept(0.15) == [1, 3] and kept(0.25) == [1, 2, 3] and kept(0.35) == [0, 1, 2, 3]
    assert kept(0.15, came=False) == [0, 1, 2, 3]
    assert kept(0.15, eos=(0,)) == [0, 1, 2, 3]  # the end of the text is never kept from coming
    assert kept(0.15, eos=(3,)) == [1, 3]


def test_the_law_with_xtc_is_the_mixture_that_its_coin_makes():
    row = (0.5, 0.3, 0.2)
    model = TableModel(lambda past: row, 3)
    asked = {"xtc_probability": 0.25, "xtc_threshold": 0.25}

    def text(chooser):
        return tuple(
            Lane("sample", [0], {"target": model}, asked, limits=Limits(1), chooser=chooser).run().output()
        )

    law = Exhaustive().distribution(text)
    want = {(0,): 0.75 * 0.5, (1,): 0.75 * 0.3 + 0.25 * 0.6, (2,): 0.75 * 0.2 + 0.25 * 0.4}
    assert law == pytest.approx(want)
    with pytest.raises(ValueError, match="XTC decides at random"):
        processors(asked, 3)


def test_a_callers_own_processors_run_as_in_generate():
    model, prompt = tiny_models.make("llama", seed=3), [40, 41, 42]
    allowed = list(range(60, 110))

    def odd(ids, scores):  # no even token after an even one
        return scores.masked_fill(
            (torch.arange(scores.shape[-1]) % 2 == 0) & (ids[:, -1:] % 2 == 0), -torch.inf
        )

    own = {"logits_processor": [odd], "prefix_allowed_tokens_fn": lambda batch, ids: allowed}
    ids = torch.tensor([prompt])
    for strategy, asked in (("greedy", {}), ("beam", {"num_beams": 3})):
        lane = Lane(strategy, prompt, {"target": model}, asked, limits=Limits(10), **own)
        made = model.model.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=10, **asked, **own
        )
        assert lane.run().output() == tiny_models.cut(made[0, 3:].tolist(), model)
        assert set(lane.trace.output()) <= set(allowed)
    with pytest.raises(ValueError, match="Contrastive search takes no processors"):
        Lane("contrastive_search", prompt, {"target": model}, **own)


def test_processors_keep_a_distribution():
    stack = processors({"top_n_sigma": 1.0, "dry_multiplier": 1.0, "renormalize_logits": True}, 9)
    scores = stack(torch.randn(1, 9, generator=torch.Generator().manual_seed(1)), [[1, 2, 1, 2]])
    assert scores.exp().sum().item() == pytest.approx(1.0)
    assert probabilities(scores).sum().item() == pytest.approx(1.0)


def test_penalties_by_counts_are_of_the_new_text_only():
    """vLLM: logits -= frequency_penalty * output_bin_counts; logits -= presence_penalty * output_mask."""
    settings = {"frequency_penalty": 0.5, "presence_penalty": 1.25}
    stack = processors(settings, V, ProcessorContext(V, prompt=2))
    left = stack(torch.zeros(1, V), [[3, 3, 1, 1, 4]])[0]
    assert left.tolist() == [0, -(2 * 0.5 + 1.25), 0, 0, -(0.5 + 1.25), 0]


def test_penalties_by_counts_are_stages_of_their_own():
    seen = []
    stack = processors({"presence_penalty": 1.0, "frequency_penalty": 1.0}, V, ProcessorContext(V))
    stack(torch.zeros(1, V), [[0]], lambda name, scores: seen.append(name))
    assert seen == ["frequency_penalty"]  # all but the last
