"""FastDraft's three checkpoints: the target's tokens, its text, and a better draft after alignment."""

import pytest
import torch

from decoders.lane import Lane, Limits
from decoders.models.head_files import tokenizer_sha256
from decoders.models.loading import load
from explorer.experiments.models.small import own_text
from explorer.experiments.stages_of_a_draft import STAGES, mbsu, overlap, size


@pytest.fixture(scope="module")
def shipped():
    """The target and the three drafts."""
    return load("llama-tiny"), {stage: load(name) for stage, name in STAGES.items()}


@pytest.mark.parametrize(("drafted", "speed"), [(3, 2.383), (5, 2.311)])
def test_the_memory_bound_speed_up_by_hand(drafted, speed):
    assert mbsu(61, 2.5, drafted) == pytest.approx(speed, abs=5e-4)


def test_overlap_by_hand(models):
    """That of a model with itself is 1; that of two is the mean over the places after the prompt."""
    target, draft = models["target"], models["draft"]
    text = [40, 41, 42, 43, 44]
    assert overlap(target, target, [(2, text)]) == pytest.approx(1.0, abs=1e-6)
    with torch.no_grad():
        p, q = (one.model(torch.tensor([text])).logits[0].softmax(-1) for one in (target, draft))
    by_hand = [torch.minimum(p[at], q[at]).sum().item() for at in (1, 2, 3)]
    assert overlap(target, draft, [(2, text)]) == pytest.approx(sum(by_hand) / 3, abs=1e-6)


def test_all_checkpoints_have_the_targets_tokens_and_a_seventeenth_of_its_size(shipped):
    target, drafts = shipped
    wanted = tokenizer_sha256(target.tokenizer)
    assert all(tokenizer_sha256(draft.tokenizer) == wanted for draft in drafts.values())
    assert all(16.5 < size(target) / size(draft) < 17.5 for draft in drafts.values())


def test_alignment_does_not_lower_the_overlap_on_the_targets_own_text(shipped):
    """At 2,048 places, with a margin of .02: the dossier's check; in fact it rises."""
    target, drafts = shipped
    texts = [(1, [0, *row]) for row in own_text({"target": target}, 32, 64, seed=5).tolist()]
    first, last = (overlap(target, drafts[stage], texts) for stage in ("pre-trained", "aligned"))
    assert last >= first - 0.02 and last > first


@pytest.mark.parametrize("stage", STAGES)
def test_every_checkpoint_is_lossless(shipped, stage):
    target, drafts = shipped
    for prompt in ("Once upon a time", "Sam from London has a bird and is 38. As json:\n"):
        ids, pair = target.encode(prompt), {"target": target, "draft": drafts[stage]}
        settings = {"temperature": 0.0, "num_assistant_tokens": 4}
        traces = [
            Lane(name, ids, pair, given, limits=Limits(32)).run()
            for name, given in (("speculative", settings), ("greedy", {}))
        ]
        assert traces[0].output() == traces[1].output()
        if prompt.startswith("Once"):
            assert traces[0].costs.totals()["accepted"] > 0
