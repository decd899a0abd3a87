"""Processors are transformers' own stack in its order; summaries, residuals and acceptance are exact."""

import math
import types

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from decoders.logits import distributions
from decoders.logits.distributions import (
    ProcessorContext,
    log_softmax,
    one_hot,
    probabilities,
    residual,
    summarise,
)
from decoders.logits.processor_order import NEUTRAL, OTHER_ENGINES, WARPERS
from decoders.trace.events import acceptance

VOCABULARY = 37
ENDS, PROMPT = (8, 30), 3
VALUES = {
    "temperature": [1.0, 0.3, 0.7, 1.8],
    "top_k": [0, 1, 5, 30, 99],
    "top_p": [1.0, 0.1, 0.6, 0.95],
    "min_p": [0.0, 0.05, 0.4],
    "typical_p": [1.0, 0.2, 0.9],
    "epsilon_cutoff": [0.0, 0.01, 0.1],
    "eta_cutoff": [0.0, 0.01, 0.2],
    "repetition_penalty": [1.0, 0.8, 1.3],
    "no_repeat_ngram_size": [0, 1, 2, 3],
    "top_h": [0.0, 0.3, 0.8, 1.0],
    "min_new_tokens": [0, 1, 5],
    "exponential_decay_length_penalty": [[0.0, 1.0], [2.0, 1.5], [0.0, 0.5]],
    "bad_words_ids": ["", "#3", "#3, #30, cd"],
    "sequence_bias": ["", "#1: 2.5", "#4: -1, ab: 3"],
    "min_length": [0, 4, 9],
    "forced_bos_token_id": ["", "#7"],
    "forced_eos_token_id": ["", "#8"],
    "remove_invalid_values": [False, True],
    "renormalize_logits": [False, True],
    "suppress_tokens": ["", "#2, #9"],
    "begin_suppress_tokens": ["", "#5"],
}
TYPED = {  # what the typed texts stand for, as `generate` takes it
    "#3": [[3]],
    "#3, #30, cd": [[3], [30], [2, 3]],
    "#1: 2.5": [[[1], 2.5]],
    "#4: -1, ab: 3": [[[4], -1.0], [[0, 1], 3.0]],
    "#2, #9": [2, 9],
    "#5": [5],
    "#7": 7,
    "#8": 8,
}
LENGTH = 9  # of prompt and text, where the end is forced


def letters(text: str) -> list[int]:
    """A tokenizer: a letter is a token, a space is none."""
    return [ord(letter) - 97 for letter in text.strip()]


CONTEXT = ProcessorContext(VOCABULARY, ENDS, PROMPT, letters, length=LENGTH)


def transformers_stack(parameters: dict) -> transformers.LogitsProcessorList:
    """What `generate(do_sample=True, ...)` builds from the same names."""
    host = types.SimpleNamespace(
        config=types.SimpleNamespace(is_encoder_decoder=False, get_text_config=lambda: None),
        _merge_criteria_processor_list=lambda default, custom: default,
    )
    given = {k: TYPED[v] if isinstance(v, str) else v for k, v in parameters.items() if v not in ("", [0, 1])}
    if given.get("top_h") == 0.0:
        del given["top_h"]
    config = transformers.GenerationConfig(
        do_sample=True, eos_token_id=list(ENDS), max_length=LENGTH, **given
    )
    config._eos_token_tensor = torch.tensor(ENDS)
    return transformers.GenerationMixin._get_logits_processor(
        host, config, input_ids_seq_length=PROMPT, device="cpu", model_kwargs={}
    )


def shaped(row: list[float], **parameters) -> list[float]:
    """Probabilities [V] after the processors, of a row of probabilities."""
    stack = distributions.processors(parameters, len(row))
    return probabilities(stack(torch.tensor([row], dtype=torch.float64).log(), [[0]]))[0].tolist()


def kept(row: list[float], **parameters) -> set[int]:
    """The tokens that the processors leave."""
    return {i for i, p in enumerate(shaped(row, **parameters)) if p > 0}


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in VALUES.items()}),
    st.integers(0, 10_000),
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=12), min_size=1, max_size=3),
)
def test_processed_logits_equal_transformers_stack_row_by_row(parameters, seed, paths):
    logits = torch.randn(len(paths), VOCABULARY, generator=torch.Generator().manual_seed(seed)) * 3
    before = logits.clone()
    ours = distributions.processors(parameters, VOCABULARY, CONTEXT)
    stack = transformers_stack({"top_k": 0} | parameters)
    for row, path in enumerate(paths):  # each row with its own prefix
        want = stack(torch.tensor([path]), logits[row : row + 1].clone())
        got = logits[row : row + 1] if ours is None else ours(logits, paths)[row : row + 1]
        torch.testing.assert_close(got, want, rtol=0, atol=0, equal_nan=True)
    assert torch.equal(logits, before)


def test_identity_settings_change_nothing():
    ours = {
        *OTHER_ENGINES,
        "logits_processor",
        "prefix_allowed_tokens_fn",
        "watermark_bias",
    }  # not in a GenerationConfig
    assert {n: values[0] for n, values in VALUES.items()} == {n: NEUTRAL[n] for n in NEUTRAL if n not in ours}
    assert distributions.processors({name: values[0] for name, values in VALUES.items()}, 9) is None
    assert distributions.processors({}, 9) is None
    row = torch.randn(1, 9)
    assert torch.equal(distributions.processors({"top_k": 9}, 9)(row, [[0]]), row)


def test_temperature_0_stands_for_greedy_and_divides_nothing():
    assert distributions.processors({"temperature": 0.0, "top_k": 3, "top_p": 0.5}, 9) is None


def test_top_p_keeps_the_crossing_token_and_comes_after_temperature():
    row = torch.tensor([2.0, 1.0, 0.0, -1.0]).softmax(-1).tolist()
    assert row[0] == pytest.approx(0.6439, abs=5e-5)
    assert row[0] + row[1] == pytest.approx(0.8808, abs=5e-5)
    assert kept(row, top_p=0.7) == {0, 1}
    assert kept(row, top_p=0.7, temperature=2.0) == {0, 1}
    assert kept(row, top_p=0.75) == {0, 1}
    assert kept(row, top_p=0.75, temperature=2.0) == {0, 1, 2}


def test_typical_may_drop_the_likeliest_token():
    row = [0.5, 0.2, 0.15, 0.1, 0.05]
    assert summarise(torch.tensor([row]).log())[0][2] == pytest.approx(1.3331, abs=5e-5)
    assert kept(row, typical_p=0.3) == {1, 2}
    assert kept(row, typical_p=0.5) == {1, 2, 0}


def test_eta_and_epsilon_thresholds():
    row = [0.5, 0.2, 0.15, 0.1, 0.05]
    assert min(0.1, math.sqrt(0.1) * math.exp(-1.3331)) == pytest.approx(0.08338, abs=5e-6)
    assert kept(row, eta_cutoff=0.1) == {0, 1, 2, 3}
    # just below the worked 0.05: at 0.05 itself the threshold equals the last probability up to rounding
    assert kept(row, eta_cutoff=0.0499) == {0, 1, 2, 3, 4}
    assert kept(row, epsilon_cutoff=0.12) == {0, 1, 2}
    assert kept([0.3, 0.3, 0.4], epsilon_cutoff=0.5) == {2}  # never nothing
    assert kept([0.3, 0.3, 0.4], eta_cutoff=0.9) >= {2}


@pytest.mark.parametrize("name", [name for name in WARPERS if name not in OTHER_ENGINES])
def test_truncated_rows_sum_to_1_and_keep_a_token(name):
    generator = torch.Generator().manual_seed(1)
    for value in VALUES[name][1:]:
        row = torch.rand(VOCABULARY, generator=generator)
        left = shaped((row / row.sum()).tolist(), **{name: value})
        assert sum(left) == pytest.approx(1.0, abs=1e-6)
        assert max(left) > 0


@pytest.mark.parametrize("given", [{"eta_cutoff": 0.02}, {"top_h": 0.7}], ids=str)
def test_a_row_of_which_nothing_is_left_passes_and_the_others_are_cut(given):
    rows = torch.stack([torch.full((5,), -torch.inf), torch.arange(5.0)])
    found = distributions.processors(given, 5)(rows, [[0], [0]])
    assert torch.equal(found[0], rows[0])
    assert torch.equal(found[1:], distributions.processors(given, 5)(rows[1:], [[0]]))


def test_repetition_penalty_and_ngrams_look_at_each_rows_own_prefix():
    logits = torch.tensor([[2.0, -2.0, 1.0]]).repeat(2, 1)
    stack = distributions.processors({"repetition_penalty": 2.0}, 3)
    assert stack(logits, [[0], [1, 1]]).tolist() == [[1.0, -2.0, 1.0], [2.0, -4.0, 1.0]]
    stack = distributions.processors({"no_repeat_ngram_size": 2}, 3)
    assert stack(logits, [[0, 1, 0], [2, 2, 1]]).isinf().tolist() == [
        [False, True, False],
        [False, False, False],
    ]


def test_summaries_name_the_top_the_mass_left_out_and_the_entropy():
    row = torch.tensor([[0.5, 0.25, 0.125, 0.125, 0.0]], dtype=torch.float64)
    ((top, rest, entropy),) = summarise(row.log(), top_k=2)
    assert [token for token, _ in top] == [0, 1]
    assert [logprob for _, logprob in top] == pytest.approx([math.log(0.5), math.log(0.25)])
    assert rest == pytest.approx(0.25)
    assert entropy == pytest.approx(1.75 * math.log(2))
    ((top, rest, _),) = summarise(row.log(), top_k=5)
    assert [token for token, _ in top] == [0, 1, 2, 3]  # what cannot come is not named
    assert rest == pytest.approx(0.0)


def test_precision_and_ties():
    assert log_softmax(torch.zeros(1, 4, dtype=torch.bfloat16)).dtype == torch.float32
    assert log_softmax(torch.zeros(1, 4, dtype=torch.float64)).dtype == torch.float64
    assert probabilities(torch.zeros(1, 4)).dtype == torch.float64
    assert one_hot(torch.tensor([[1.0, 3.0, 3.0]])).tolist() == [[0.0, 1.0, 0.0]]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.floats(0, 1), min_size=4, max_size=4), st.lists(st.floats(0, 1), min_size=4, max_size=4))
def test_accepting_and_correcting_by_the_residual_gives_back_p(a, b):
    """sum_x q(x) min(1, p(x)/q(x)) [x = v] + P(rejected) residual(v) = p(v): the heart of speculative
    sampling.
    """
    p = torch.tensor(a, dtype=torch.float64) + 1e-3
    q = torch.tensor(b, dtype=torch.float64) + 1e-3
    p, q = p / p.sum(), q / q.sum()
    accepted = torch.tensor([qi * acceptance(pi, qi) for pi, qi in zip(p.tolist(), q.tolist(), strict=True)])
    correction = residual(p, q)
    law = accepted if correction is None else accepted + (1 - accepted.sum()) * correction
    assert torch.allclose(law.double(), p, atol=1e-6)


def test_acceptance_never_divides_by_zero():
    assert acceptance(0.0, 0.0) == 0.0
    assert acceptance(0.2, 0.0) == 1.0
    assert acceptance(0.1, 0.4) == pytest.approx(0.25)
    assert residual(torch.tensor([0.5, 0.5]), torch.tensor([0.5, 0.5])) is None


READS_NUMBERS = {  # on the way, which a device without data has none of
    "eta_cutoff",
    "top_h",
    "exponential_decay_length_penalty",
    "bad_words_ids",
    "forced_eos_token_id",
}


@pytest.mark.parametrize("name", [name for name in VALUES if name not in READS_NUMBERS])
def test_processors_work_on_the_device_of_the_logits(name):
    """A device without data stands in for a GPU: tensors of two devices in one operation raise there too."""
    stack = distributions.processors({name: VALUES[name][-1]}, VOCABULARY, CONTEXT)
    assert stack(torch.empty(1, VOCABULARY, device="meta"), [[1, 2, 3, 4]]).device.type == "meta"
