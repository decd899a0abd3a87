"""Sets of models: loaded beside each other, never in each other's way, within the memory and the operator's
rules.
"""

import asyncio
import time

import pytest

from decoders.engine import kv_cache
from decoders.models import memory_estimate
from decoders.models.loaded_model import LoadedModel
from explorer.runs import model_pool
from explorer.runs.lane_factory import lane_maker
from explorer.runs.model_pool import Loader
from explorer.runs.validation import Choice, LaneRequest, RunRequest
from tests.helpers import tiny_models


@pytest.fixture
def folders(tmp_path):
    """Three tiny models as folders: two that fit together, and one with another vocabulary."""
    return [tiny_models.save(tmp_path / str(seed), seed=seed, endings=0.0) for seed in range(3)]


@pytest.fixture
def loader(folders):
    """A loader whose own set is there."""
    made = Loader(folders[0], folders[1], "cpu")
    made.load()
    assert made.state == "ready", made.sentence
    return made


def settle(loader: Loader, choice: Choice):
    found = loader.open(choice)
    assert found.done.wait(60)
    return found


def request(choice: Choice | None = None, strategy: str = "greedy", **more) -> RunRequest:
    return RunRequest("Once", 6, (LaneRequest(strategy, {}, 0),), choice, **more)


def test_a_run_belongs_to_the_models_it_was_started_with(loader, folders):
    make = lane_maker(loader)
    (old,) = make(request())
    old.advance()
    other = settle(loader, Choice(folders[2], device="cpu"))
    assert other.state == "ready" and "target" in other.models and "draft" not in other.models
    (new,) = make(request(other.choice))
    new.run(), old.run()
    assert old.trace.models["target"] == folders[0] and new.trace.models["target"] == folders[2]
    alone = lane_maker(loader)(request())[0].run()
    assert alone.output() == old.trace.output() != new.trace.output()


def test_a_model_is_loaded_once_however_many_sets_hold_it(loader, folders):
    other = settle(loader, Choice(folders[0], folders[2], device="cpu"))
    assert other.models["target"] is loader.models["target"]
    assert loader.need(other.choice)["sentence"] == "Loaded already."
    halved = settle(loader, Choice(folders[0], None, "bfloat16", "cpu"))
    assert halved.models["target"].facts()["dtype"] == "bfloat16"


def test_what_cannot_be_loaded_is_a_sentence_and_the_old_models_stay(loader, folders, tmp_path):
    (tmp_path / "2" / "model.safetensors").write_bytes(b"nonsense")
    failed = settle(loader, Choice(folders[2], device="cpu"))
    assert failed.state == "failed" and "damaged" in failed.sentence and "\n" not in failed.sentence
    with pytest.raises(ValueError, match="damaged"):
        lane_maker(loader)(request(failed.choice))
    assert lane_maker(loader)(request())[0].run().output()
    with pytest.raises(ValueError, match="There is no model 'nosuch'"):
        loader.open(Choice("nosuch"))


def test_a_draft_with_another_vocabulary_is_for_universal_drafting_alone(loader, folders):
    mixed = settle(loader, Choice(folders[0], "llama-tiny-draft", device="cpu"))
    assert mixed.state == "ready" and mixed.sentence.endswith(
        "another tokenizer than the target: choose Universal drafting."
    )
    (lane,) = lane_maker(loader)(request(mixed.choice, "universal"))
    assert lane.run().output()
    (refused,) = lane_maker(loader)(request(mixed.choice, "speculative"))
    with pytest.raises(
        ValueError, match="has another tokenizer than the target .* choose Universal drafting"
    ):
        refused.run()


def test_what_does_not_fit_is_refused_before_its_weights_are_read(loader, folders, monkeypatch):
    monkeypatch.setattr(kv_cache, "free_bytes", lambda device: 100_000)
    monkeypatch.setattr("decoders.models.loading.load", lambda *a: pytest.fail("weights were read"))
    choice = Choice(folders[2], device="cpu")
    needed = loader.need(choice)
    assert not needed["fits"] and needed["bytes"] > 100_000
    assert "of 100 KB of free memory. That does not fit: choose a smaller dtype" in needed["sentence"]
    refused = settle(loader, choice)
    assert refused.state == "failed" and "does not fit" in refused.sentence


def test_idle_sets_make_room_and_busy_ones_do_not(loader, folders, monkeypatch):
    monkeypatch.setattr(model_pool, "MAX_SETS", 2)
    second = settle(loader, Choice(folders[2], device="cpu"))
    (lane,) = lane_maker(loader)(request(second.choice))
    refused = settle(loader, Choice(folders[1], device="cpu"))
    assert refused.state == "failed" and "2 sets of models are in use already" in refused.sentence
    lane.run()
    third = settle(loader, refused.choice)
    assert third.state == "ready" and second.choice not in loader.sets and loader.choice in loader.sets
    with pytest.raises(
        ValueError, match="were unloaded to make room for other models; press Run to load them again"
    ):
        loader.find(second.choice)


def test_room_is_made_when_memory_is_short(loader, folders, monkeypatch):
    second = settle(loader, Choice(folders[2], device="cpu"))
    held = second.models["target"].bytes
    monkeypatch.setattr(
        kv_cache, "free_bytes", lambda device: 10 if second.choice in loader.sets else 100_000_000
    )
    choice = Choice(folders[1], device="cpu")
    assert f"of {memory_estimate.bytes_of(10 + held)} of free memory" in loader.need(choice)["sentence"]
    assert settle(loader, choice).state == "ready" and second.choice not in loader.sets


def test_the_operator_says_what_may_be_chosen(folders):
    strict = Loader("llama-tiny", None, "cpu", frozenset({"llama-tiny-draft"}))
    for name in (folders[0], "owner/model"):
        with pytest.raises(ValueError, match="offers llama-tiny, llama-tiny-draft; its operator can allow"):
            strict.open(Choice("llama-tiny", name))
        with pytest.raises(ValueError, match="its operator can allow"):
            strict.need(Choice(name))
    strict.check(Choice("llama-tiny", "llama-tiny-draft"))


def test_loading_can_be_cancelled_and_asked_for_again(loader, folders, monkeypatch):
    choice = Choice(folders[2], device="cpu")
    report = model_pool.ModelSet.report

    def slow(self, words, done, total):
        if done == 2:
            loader.cancel(choice)
        report(self, words, done, total)

    monkeypatch.setattr(model_pool.ModelSet, "report", slow)
    stopped = settle(loader, choice)
    assert stopped.state == "failed" and "cancelled" in stopped.sentence
    monkeypatch.setattr(model_pool.ModelSet, "report", report)
    assert settle(loader, choice).state == "ready"


def test_waiting_for_models_leaves_the_event_loop_free(loader, folders):
    async def both():
        waiting = asyncio.create_task(loader.settled(Choice(folders[2], device="cpu")))
        gaps, before = [], time.monotonic()
        while not waiting.done():
            await asyncio.sleep(0.01)
            gaps.append(time.monotonic() - before)
            before = time.monotonic()
        return gaps, await waiting

    gaps, found = asyncio.run(both())
    assert found.state == "ready" and len(gaps) > 3


def test_a_chat_run_decodes_the_rendered_prompt(tmp_path):
    loader = Loader(tiny_models.save(tmp_path, chat=True, endings=0.0), None, "cpu")
    loader.load()
    (lane,) = lane_maker(loader)(request(chat={"system": "be brief"}))
    said = b"".join(lane.trace.vocabulary[t] for t in lane.trace.prompt)
    assert said == b"system: be brief<|end|>user: Once<|end|>assistant:"
    assert lane.trace.prompt.count(tiny_models.tokenizer().eos_token_id) == 2


def test_forwards_are_captured_where_that_was_asked_for(folders, monkeypatch):
    captured = []
    monkeypatch.setattr(LoadedModel, "capture", lambda model: captured.append(model.name))
    Loader(folders[0], folders[1], "cpu").load()
    assert not captured
    loader = Loader(folders[0], folders[1], "cpu", capture=True)
    loader.load()
    assert sorted(captured) == sorted(folders[:2]) and loader.state == "ready"
