"""What streams learn from: records in sections, and what a block would cost if notes had told all."""

import random

import pytest
import torch

from decoders.heads import ParallelStreams, Target
from explorer.corpus import IGNORED
from explorer.training.data.sections import ITEMS, answer, record
from explorer.training.recipes.llama_tiny_streams import LOSSES, Lesson, at_ends, by_block, read_records
from tests.helpers import tiny_models

COUNT = 3


@pytest.fixture(scope="module")
def records():
    rng = random.Random("test")
    return [record(rng) for _ in range(40)]


def test_fields_stand_in_the_order_of_the_sentence_and_all_end_with_the_colour(records):
    for one in records:
        lines = answer("".join(one.sections))
        assert [key for key, _, _ in lines] == ["color", *one.keys]
        places = [one.prompt.find(value) for _, value, _ in lines[1:]]
        assert -1 not in places and places == sorted(places)
        assert {colour for _, _, colour in lines} == {one.colour}
        assert one.colour not in one.prompt
    assert len({one.keys for one in records}) == 3


def test_each_slot_has_a_plan_item_for_each_field(records):
    for one in records:
        assert [ITEMS[item % 5] for item in one.plan] == ["color", *one.keys]
        assert [item // 5 for item in one.plan] == list(range(5))


@pytest.fixture(scope="module")
def lesson():
    """A tiny model and modules of random weights."""
    model = tiny_models.make(endings=1.0)
    return model, Lesson(model.model, tiny_models.shaken(ParallelStreams(Target.of(model.model))))


@pytest.fixture(scope="module")
def seen(lesson, records):
    model, own = lesson
    return read_records(model, records[:COUNT], own.streams.first)


def test_sections_are_read_behind_the_prompt_as_the_model_reads_them(lesson, seen, records):
    """With closed gates the costs are those of the frozen model on the whole text."""
    model, _ = lesson
    shut = Lesson(model.model, tiny_models.shaken(ParallelStreams(Target.of(model.model))))
    for side in shut.streams.sides:
        side.note_gate.fill_(-torch.inf)
        side.adapter_gate.fill_(-torch.inf)
    notes = shut.streams.snapshot(seen.plans)[:, None]
    states = shut.states(seen, notes, torch.ones(*seen.x.shape[:3], 1, dtype=torch.bool))
    costs = shut.costs(seen, states)
    for at, section in ((0, 0), (1, 2), (2, 4)):
        prompt = model.tokenizer(records[at].prompt)["input_ids"]
        answer_ = seen.labels[at, section][seen.labels[at, section] != IGNORED]
        logits = model.model(torch.tensor([[*prompt, *answer_]])).logits[0, len(prompt) - 1 : -1]
        wanted = torch.nn.functional.cross_entropy(logits, answer_, reduction="none")
        assert torch.allclose(costs[at, section, : len(answer_)], wanted, atol=1e-4)
        assert not costs[at, section, len(answer_) :].any()


def test_all_losses_reach_all_modules_but_the_frozen_model(lesson, seen):
    model, _ = lesson
    streams = ParallelStreams(Target.of(model.model))
    losses = Lesson(model.model, streams).losses(seen, 4, torch.zeros(COUNT, 5, dtype=torch.long), 1)
    assert set(losses) == {*LOSSES, "right"} and 0 <= losses["right"] <= 1
    sum(losses[name] for name in LOSSES).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in streams.parameters())
    assert all(p.grad is None for p in model.model.parameters())


def test_costs_are_summed_by_block_and_ends_are_the_last_states_of_blocks():
    costs = torch.arange(1.0, 8)[None, None]
    assert by_block(costs, 3).tolist() == [[[6.0, 15.0, 7.0]]]
    states = torch.arange(7.0)[None, None, :, None]
    assert at_ends(states, torch.tensor([[[3, 6, 7]]])).flatten().tolist() == [2.0, 5.0, 6.0]
