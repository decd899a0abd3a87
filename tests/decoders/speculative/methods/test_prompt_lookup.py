"""Prompt lookup: the search is transformers', the greedy text is generate's, the sampled one plain
sampling's.
"""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers.generation.candidate_generator import PromptLookupCandidateGenerator

from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.speculative.methods.prompt_lookup import look_up
from decoders.testing import random_table
from tests.helpers.shipped_pair import PROMPTS, assert_same, decode, generated, greedy

REPETITIVE = [
    *PROMPTS[:2],
    PROMPTS[12],
    PROMPTS[19],
    "The cat sat. The dog sat. The cat sat. The dog sat. The cat",
    "red blue green red blue green red blue",
]


def events(step, kind: str) -> list:
    return [e for e in step.events if type(e).__name__ == kind]


def test_the_worked_example():
    text = [7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8]
    start, matched = look_up(text, 3)
    assert (start, matched) == (2, 2)
    assert text[start : start + 3] == [9, 1, 2]
    assert text[start : start + 10] == [9, 1, 2, 3, 4, 5, 6, 7, 8]
    assert look_up([1, 2, 3], 3) == (3, 0)
    assert look_up([5], 3) == (1, 0)


@given(
    st.lists(st.integers(0, 3), min_size=2, max_size=30), st.integers(1, 4), st.integers(1, 6), st.booleans()
)
def test_the_search_is_that_of_transformers(text, largest, count, with_end):
    eos = torch.tensor([3]) if with_end else None
    theirs = PromptLookupCandidateGenerator(eos, count, largest, max_length=len(text) + 100)
    found, _ = theirs.get_candidates(torch.tensor([text]))
    start, _ = look_up(text, largest)
    ours = text[start : start + count]
    if with_end and 3 in ours:
        ours = ours[: ours.index(3)]
    assert ours == found[0, len(text) :].tolist()


@pytest.mark.parametrize("prompt", REPETITIVE[-2:])
def test_the_trace_says_what_was_copied_from_where_and_why(prompt):
    trace = decode("prompt_lookup", prompt)
    nodes, copied = trace.nodes(), 0
    for step in trace.steps:
        links = events(step, "Depend")
        copies = [(e.source, e.target) for e in links if e.kind == "copy"]
        matches = [(e.source, e.target) for e in links if e.kind == "match"]
        drafted = [e.node for e in events(step, "Propose") if e.source == "prompt"]
        assert [target for _, target in copies] == drafted
        assert all(nodes[source][1] == nodes[target][1] for source, target in copies + matches)
        assert bool(matches) == bool(copies)
        if copies:  # the copy begins right after the match, the draft right after the end of the text
            assert nodes[copies[0][0]][0] == matches[-1][0] and nodes[drafted[0]][0] == matches[-1][1]
        copied += len(copies)
    assert copied > 5


@pytest.mark.parametrize("prompt", PROMPTS[::4])
def test_greedy_output_is_greedy_decoding(prompt):
    assert_same(decode("prompt_lookup", prompt).output(), greedy(prompt), prompt)


@pytest.mark.parametrize("prompt", REPETITIVE)
def test_greedy_output_is_generate_with_prompt_lookup(prompt):
    found = decode("prompt_lookup", prompt)
    wanted = generated(prompt, prompt_lookup_num_tokens=10, max_matching_ngram_size=3)
    assert_same(found.output(), wanted, prompt)


def test_a_repetitive_text_saves_forwards():
    trace = decode("prompt_lookup", REPETITIVE[-1], {}, 64)
    assert trace.costs.accepted > 0 and trace.costs.target_forwards < 64
    assert trace.costs.draft_forwards == 0


@pytest.mark.parametrize(
    "parameters", [{"temperature": 1.0}, {"temperature": 0.8, "top_k": 20, "top_p": 0.9}]
)
def test_sampled_output_is_that_of_plain_sampling_with_the_same_seed(parameters):
    """Node sampling draws what the target would have drawn, from the same stream."""
    for seed, prompt in enumerate(REPETITIVE[::2]):
        looked_up = decode("prompt_lookup", prompt, parameters, 32, seed=seed)
        assert looked_up.output() == decode("sample", prompt, parameters, 32, seed=seed).output()


def test_where_nothing_matches_it_is_a_plain_step():
    model = TableModel(random_table(1, 6), 6)
    trace = Lane("prompt_lookup", [0, 1, 2], {"target": model}, {}, limits=Limits(1)).run()
    step = trace.steps[0]
    assert [e.source for e in events(step, "Propose")] == ["target"]
    assert not events(step, "Verdict") and not events(step, "Note")
    assert trace.costs.proposed == 0 and trace.costs.metrics() == {}


def test_rounds_of_prompt_lookup():
    model = TableModel(lambda tokens: [0.1, 0.8, 0.1] if tokens[-1] == 0 else [0.7, 0.2, 0.1], 3)
    trace = Lane(
        "prompt_lookup", [0, 1, 0], {"target": model}, {"prompt_lookup_num_tokens": 2}, limits=Limits(7)
    ).run()
    assert trace.output() == [1, 0, 1, 0, 1, 0, 1]
    step = trace.steps[0]
    drafted = [e for e in events(step, "Propose") if e.source == "prompt"]
    assert [e.token for e in drafted] == [1, 0] and {e.fill for e in drafted} == {"fixed"}
    assert [v.status for v in events(step, "Verdict")] == ["accepted", "accepted", "bonus"]
    assert "occurred before" in events(step, "Note")[0].text
    assert trace.costs.per_step_accepted[:2] == [2, 2]


def test_the_badge():
    declared = Lane("prompt_lookup", [0], {"target": TableModel(random_table(1), 3)}).strategy
    assert declared.badge(declared.check({})) == "lossless: equal to greedy"
    assert declared.badge(declared.check({"temperature": 0.5})) == "exact because drafts are deterministic"
    assert declared.needs == ("target",)
