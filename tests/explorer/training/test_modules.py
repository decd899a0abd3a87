"""The trainer of draft modules, and how drafts are measured."""

import pytest
import torch

from decoders.heads import Eagle, Kangaroo, Medusa, Target
from explorer.training import loop
from explorer.training.cards import guesses
from explorer.training.evaluation.measure_drafts import measured, written
from explorer.training.modules import train_modules
from tests.helpers import tiny_models


@pytest.fixture
def target():
    """A tiny target of random weights with its tokenizer."""
    return tiny_models.make("llama", seed=3)


def fresh(target) -> dict:
    torch.manual_seed(0)
    shared = Target.of(target.model)
    return {"medusa": Medusa(shared, 2), "eagle": Eagle(shared), "kangaroo": Kangaroo(shared, 1)}


def rows_after(seen: int) -> torch.Tensor:
    return torch.randint(0, 250, (4, 16), generator=torch.Generator().manual_seed(seen))


def test_training_that_is_cut_off_goes_on_to_the_same_modules(target, tmp_path, monkeypatch):
    """The first try ends before its third batch; every module's loss falls."""
    monkeypatch.setattr(loop, "SAVE_SECONDS", 0.0)
    held, budget = rows_after(-1), 40 * 64 / 1e6
    once, again = fresh(target), fresh(target)
    start = train_modules(fresh(target), target.model, rows_after, held, 64 / 1e6, tmp_path / "start")
    curve = train_modules(once, target.model, rows_after, held, budget, tmp_path / "once")
    assert len(curve[-1]) == 1 + 2 * len(once) and curve[-1][0] == pytest.approx(budget)
    assert all(after < before for before, after in zip(start[0][4:], curve[-1][4:], strict=True))

    def cut_off(seen: int) -> torch.Tensor:
        if seen == 2 * 64:
            raise KeyboardInterrupt
        return rows_after(seen)

    with pytest.raises(KeyboardInterrupt):
        train_modules(again, target.model, cut_off, held, budget, tmp_path / "again")
    again = fresh(target)
    train_modules(again, target.model, rows_after, held, budget, tmp_path / "again")
    for name, module in again.items():
        for key, value in module.state_dict().items():
            assert torch.equal(value, once[name].state_dict()[key]), (name, key)


def test_modules_train_apart_from_one_another(target, tmp_path):
    """What one learns does not depend on who learns beside it, and the target stays as it was."""
    before = {key: value.clone() for key, value in target.model.state_dict().items()}
    alone = {"eagle": fresh(target)["eagle"]}
    beside = fresh(target)
    alone["eagle"].load_state_dict(beside["eagle"].state_dict())
    for modules, work in ((alone, "alone"), (beside, "beside")):
        train_modules(modules, target.model, rows_after, rows_after(-1), 3 * 64 / 1e6, tmp_path / work)
    for key, value in alone["eagle"].state_dict().items():
        assert torch.equal(value, beside["eagle"].state_dict()[key]), key
    assert all(torch.equal(value, before[key]) for key, value in target.model.state_dict().items())


class Oracle(Medusa):
    """Says the target's own distributions."""

    def along(self, taps, depth):
        return [taps.logits[:, k:-1] for k in range(1, depth + 1)]


class Second(Medusa):
    """Swaps the target's best token with the next best one."""

    def along(self, taps, depth):
        best = taps.logits.topk(2)
        swapped = taps.logits.scatter(-1, best.indices, best.values.flip(-1))
        return [swapped[:, k:-1] for k in range(1, depth + 1)]


def test_an_oracle_is_always_right_and_who_swaps_two_tokens_at_rank_one(target):
    groups = {"words": [target.encode(words) for words in ("the cat sat on", "a mat", "so the bird")]}
    shared = Target.of(target.model)
    found = measured(
        target,
        {"oracle": Oracle(shared), "second": Second(shared)},
        groups,
        exits=(1,),
        new_tokens=20,
        depth=3,
    )["words"]
    assert found.keys() == {"exit 1", "oracle", "second"}
    assert [ranks[0] for ranks in found["oracle"]["accuracy"]] == [1, 1, 1]
    assert found["oracle"]["overlap"] == pytest.approx([1, 1, 1], abs=1e-5)
    assert [ranks[:2] for ranks in found["second"]["accuracy"]] == [[0, 1]] * 3
    assert found["second"]["accepted"] == 0
    assert all(0 < overlap < 1 for overlap in found["second"]["overlap"])
    texts = written(target, groups["words"], 20)
    places = sum(len(text) - len(asked) - 1 for text, asked in zip(texts, groups["words"], strict=True))
    assert found["oracle"]["places"] == places
    assert 2 < found["oracle"]["accepted"] < 3  # at the end of a text, fewer are left to accept
    assert f"| words | 100 | 100 | 100 | 100 | {100 * found['oracle']['accepted']:.0f} |" in guesses(
        "oracle", {"words": found}
    )


def test_texts_are_those_that_transformers_writes_for_each_prompt_alone(target):
    """Prompts of different lengths are written together, and each ends with its end token."""
    asked = [target.encode(words) for words in ("the cat sat on a mat", "a", "so")]
    for text, prompt in zip(written(target, asked, 24), asked, strict=True):
        assert text == prompt + tiny_models.generate(target, prompt, max_new_tokens=24)
