"""Losslessness as a statistic, on the shipped models: a thousand seeded runs against the target's exact
joint law.

Every run goes through the real strategy, verifier and `Random` chooser with its own seed. Only the forwards
are remembered: a text that was scored once, by the real model, is not scored again.
"""

from collections import Counter
from dataclasses import dataclass, field

import pytest
import torch

from decoders.chooser import Random
from decoders.engine.engine import Work
from decoders.lane import Lane, Limits
from decoders.speculative import default_verifier
from decoders.speculative.interfaces import Verifier
from decoders.testing import shape_of
from tests.helpers.losslessness import statistics
from tests.helpers.shipped_pair import pair

PROMPT = "One day, the little dog"
SHAPE = {"temperature": 0.9, "top_k": 6}  # 36 texts: few enough that a bend shows in a thousand runs
RUNS = 1000


@dataclass
class Remembering:
    """Stands in for a loaded model and its engine: looks logits up by text, and asks the model for what is
    new.
    """

    model: torch.nn.Module
    name: str = "remembering"
    eos: frozenset[int] = frozenset()
    context: int = 512
    note: str | None = None
    generation: dict = field(default_factory=dict)
    rows: dict[tuple[int, ...], torch.Tensor] = field(default_factory=dict)
    token_key: str = "one for both"
    chat_template: str | None = None
    model_kind: str = "causal"

    def companion(self, wanted: str) -> "Remembering | None":
        return self if wanted == self.model_kind else None

    @property
    def engine(self) -> "Remembering":
        return self

    @property
    def vocabulary(self) -> int:
        return self.model.config.vocab_size

    def bytes_of(self, token: int) -> bytes:
        return b"?"

    def gives(self, capability: str) -> bool:
        return True

    def attach(self, tree) -> "Scorer":
        return Scorer(self, tree)

    @torch.inference_mode()
    def logits(self, text: tuple[int, ...]) -> torch.Tensor:
        if text not in self.rows:
            self.rows[text] = self.model(torch.tensor([text])).logits[0, -1].float()
        return self.rows[text]


class Scorer:
    """The engine's scorer as far as a lane needs it."""

    def __init__(self, memory: Remembering, tree):
        self.memory, self.tree = memory, tree
        self.work, self.used, self.peak = Work(), 0, 0

    def score(self, nodes, hidden=False) -> torch.Tensor:
        self.work = Work(tokens=len(nodes), rows=len(nodes))
        return torch.stack([self.memory.logits(tuple(self.tree.text(n))) for n in nodes])

    def attention(self, node) -> None:
        return None

    def forget(self, nodes) -> None:
        pass

    release = forget

    def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def memories() -> dict[str, Remembering]:
    torch.set_num_threads(1)
    return {role: Remembering(model.model, role) for role, model in pair().items()}


@pytest.fixture(scope="module")
def joint(memories) -> dict[tuple[int, ...], float]:
    """The exact law of the first two tokens under the target's processed distribution."""
    prompt, shape = tuple(pair()["target"].encode(PROMPT)), shape_of(SHAPE)
    law = {}
    first = shape(memories["target"].logits(prompt)[None])[0]
    for token in first.nonzero().flatten().tolist():
        second = shape(memories["target"].logits((*prompt, token))[None])[0]
        for after in second.nonzero().flatten().tolist():
            law[token, after] = float(first[token] * second[after])
    assert sum(law.values()) == pytest.approx(1.0, abs=1e-9)
    return law


def frequencies(strategy: str, parameters: dict, memories, runs: int) -> Counter:
    """The first two tokens of runs with seeds 0, 1, 2 ...; each may write a third, so that trees are two
    deep.
    """
    prompt, counts = pair()["target"].encode(PROMPT), Counter()
    for seed in range(runs):
        lane = Lane(
            strategy, prompt, memories, {**SHAPE, **parameters}, limits=Limits(3), chooser=Random(seed)
        )
        lane.records_offers = False
        while lane.written < 2:
            lane.advance()
        counts[tuple(lane.trace.output()[:2])] += 1
        lane.close()
    return counts


@pytest.mark.slow
@pytest.mark.parametrize(
    "strategy,parameters",
    [("speculative", {"num_assistant_tokens": 2}), ("speculative_tree", {"widths": [2, 1]})],
)
def test_a_thousand_runs_have_the_target_s_law(strategy, parameters, memories, joint):
    """The mistake below has a p-value of 2e-14 in 700 runs of the chain already, 2e-30 in the tree's."""
    p_value, far, bound = statistics(frequencies(strategy, parameters, memories, RUNS), joint)
    assert p_value > 0.001
    assert far < bound


def test_a_correction_drawn_from_p_is_noticed(memories, joint, monkeypatch):
    """The test has teeth on the models too: after a rejection the residual is forgotten."""
    real = default_verifier.RECURSIVE_REJECTION

    def forgetful(inputs):
        found = real.verify(inputs)
        last = found.path[-1] if found.path else inputs.draft.root
        if inputs.children(last):
            depth = inputs.position + 1 + len(found.path)
            found.token, found.u = inputs.chooser.categorical(inputs.p[last], ("sample", depth))
        return found

    monkeypatch.setattr(default_verifier, "RECURSIVE_REJECTION", Verifier(forgetful, real.exact_for))
    p_value, far, bound = statistics(
        frequencies("speculative", {"num_assistant_tokens": 2}, memories, RUNS), joint
    )
    assert p_value < 0.001 and far > bound
