"""A draft model that learns while it drafts: it collects the positions where the target corrected it, and
every few of them takes one training step towards the target's distribution there.

Liu et al. (2023), Online Speculative Decoding, algorithm 2. The weights are a copy, and the original model
stays unchanged.
"""

import copy
from dataclasses import dataclass, field

import torch

from decoders.engine.engine import Engine
from decoders.engine.sequence_engine import SequenceEngine
from decoders.lane import Lane
from decoders.models.loaded_model import LoadedModel
from decoders.speculative.divergences import DIVERGENCES
from decoders.speculative.interfaces import Draft, Seen, Verification
from decoders.trace.events import Forward

LARGEST = 200_000_000  # parameters: their copy, gradients and two moments take sixteen bytes each


@dataclass
class Correction:
    """A place where the target rejected a token: the slot that predicted it, as a position in its text, and
    the target's logits [V] there.
    """

    slot: int
    logits: torch.Tensor


@dataclass
class LearningDraft(LoadedModel):
    """A copy of a draft model with an optimiser. `corrections`: text -> those not learned from yet."""

    optimizer: torch.optim.Optimizer | None = None
    divergence: str = "forward KL"
    corrections: dict[tuple[int, ...], list[Correction]] = field(default_factory=dict)
    updates: int = 0

    @classmethod
    def of(cls, draft: LoadedModel, rate: float, divergence: str) -> "LearningDraft":
        """A copy of `draft` whose weights change by AdamW at this rate; 0 leaves them unchanged."""
        with torch.inference_mode(False):
            model = copy.deepcopy(draft.model).float().train(False)
            for parameter in model.parameters():
                parameter.data = parameter.data.clone()
                parameter.requires_grad_(True)
            optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.0)
        learner = cls(
            draft.name, model, draft.tokenizer, tokens_of=draft, optimizer=optimizer, divergence=divergence
        )
        learner.engine = engine_of(draft, model)
        return learner

    @property
    def waiting(self) -> int:
        """How many corrections have not been learned from yet."""
        return sum(map(len, self.corrections.values()))

    def learn(self) -> tuple[float, int]:
        """Takes one gradient step on the divergence from the target at the kept slots, which are then
        forgotten. Returns its mean before the step, in nats, and how many tokens were read.
        """
        read, total, slots = 0, 0.0, self.waiting
        with torch.inference_mode(False), torch.enable_grad():
            for text, corrections in self.corrections.items():
                ids = torch.tensor([text], device=self.model.device)
                at = [one.slot for one in corrections]
                logits = self.model(input_ids=ids, use_cache=False).logits[0, at].float()
                wanted = torch.stack([one.logits for one in corrections]).to(logits)
                loss = DIVERGENCES[self.divergence](wanted, logits).sum() / slots
                loss.backward()
                read, total = read + len(text), total + loss.item()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
        self.corrections, self.updates = {}, self.updates + 1
        self.engine = engine_of(self, self.model)
        return total, read


def engine_of(draft: LoadedModel, model: torch.nn.Module) -> Engine | SequenceEngine:
    """An engine of the same kind for other weights."""
    with torch.no_grad():  # it lays the weights out again
        return type(draft.engine)(model)


def keep_correction(
    lane: Lane, learner: LearningDraft, draft: Draft, verification: Verification, seen: Seen
) -> bool:
    """Keeps where the first rejected token of a round was predicted, and the target's distribution there;
    False if nothing was rejected. Later positions teach nothing, nor does the bonus token of a round without
    a rejection.
    """
    rejected = next((test.node for test in verification.tests if not test.accepted), None)
    if rejected is None:
        return False
    slot_node = lane.tree.parents[rejected]  # its row predicts the rejected token
    logits = seen.logits[seen.nodes.index(slot_node)].detach().clone()
    text = tuple(lane.tree.text(slot_node))
    earlier = next((one for one in learner.corrections if one == text[: len(one)]), None)
    kept = learner.corrections.pop(earlier, []) if earlier else []  # the same text, which has grown since
    learner.corrections[text] = [*kept, Correction(len(text) - 1, logits)]
    return True


def learned(lane: Lane, learner: LearningDraft) -> None:
    """Takes one training step and lets the lane draft with the new weights; records the divergence and the
    cost.

    Keys and values of the old weights are dropped: the draft reads the text again.
    """
    with lane.undivided():
        slots, start = learner.waiting, lane.clock()
        before, tokens = learner.learn()
        lane.record_forward(Forward("draft", "learn", tokens, 1, start, lane.clock() - start))
        attach(lane, learner)
    lane.note(
        f"Update {learner.updates}: the draft has learned from {slots} corrections, where it was "
        f"{before:.2f} nats from the target."
    )


def attach(lane: Lane, learner: LearningDraft) -> None:
    """Lets the lane draft with the learner's current weights."""
    lane.scorers["draft"].close()
    lane.scorers["draft"] = lane.attach(learner)
