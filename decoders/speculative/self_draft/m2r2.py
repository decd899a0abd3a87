"""M2R2: a second, faster stream through the target's first layers drafts, its other layers verify.

Bhendawade et al. (2025), M2R2: Mixture of Multi-Rate Residuals. The adapters are
heads/feature_drafters/m2r2.py; the model knows which ones fit a target. Without them the fast stream is the
usual one: the plain exit drafts.
"""

from collections.abc import Iterator

import torch

from decoders.engine.layers import Layers
from decoders.heads import M2R2, Target
from decoders.lane import Lane
from decoders.parameters import choice, integer, real
from decoders.refusal import Refusal
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import VERIFIER, chosen, fits
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.interfaces import Pair
from decoders.speculative.self_draft.early_layers import doubly_exited, suited
from decoders.speculative.self_draft.kangaroo import EITHER, NONE, SHIPPED
from decoders.speculative.self_draft.layerskip import exit_of
from decoders.trace.events import Forward

PLAIN = "No adapters come with the project for {!r}: its fast stream is the usual one, a plain exit."


class Doubled:
    """One lane's drafting: each node runs through the first layers twice, as usual and on the fast stream."""

    def __init__(self, lane: Lane, adapters: M2R2):
        self.lane, self.module, self.scorer, self.shown = lane, adapters, lane.scorers["target"], 0
        self.first = Layers.first(adapters.settings["exit"], self.scorer.engine.layer_count)

    def read(self, node: int) -> None:
        """The usual stream, whose keys and values the check needs too."""
        self.lane.score([node], "draft", layers=self.first)

    def begin(self) -> torch.Tensor:
        """Logits [1, V] below the newest token."""
        self.read(self.lane.tip)
        return self.below(self.lane.tip)

    @torch.inference_mode()
    def below(self, node: int, rank: int = 0) -> torch.Tensor:
        """Logits [1, V] of the fast stream below a node that the usual one has read."""
        lane, tree, start = self.lane, self.lane.tree, self.lane.clock()
        logits = self.module.below(tree.tokens[node], tree.depths[node], self.scorer.seen_from(node))
        took, scope = lane.clock() - start, f"fast stream through {self.first}"
        lane.record_forward(Forward("target", "draft", 1, 1, start, took, scope, share=self.first.share))
        return logits[None]


def adapters_of(parameters: dict, target) -> M2R2:
    """The adapters that draft for a target. Raises Refusal with one sentence if the parameters ask for
    shipped ones and there are none.
    """
    wanted = parameters["adapters"]
    shipped = None if wanted == NONE else target.heads.get("m2r2")
    if shipped is not None:
        return shipped
    if wanted == SHIPPED:
        raise Refusal(
            f"No M2R2 adapters come with the project for {target.name!r}; choose another target, or "
            f"adapters {NONE}."
        )
    shared = Target.of(target.model)
    silent = M2R2(shared, exit_of({"exit_layer": 0}, target), rank=1)
    return silent.to(shared.embed.device, shared.embed.dtype).eval().requires_grad_(False)


def m2r2_pair(parameters: dict) -> Pair:
    """A chain from the fast stream; greedy match at temperature 0, else the chosen verifier."""

    def started(lane: Lane) -> Doubled:
        return Doubled(lane, adapters_of(parameters, lane.models["target"]))

    drafter = doubly_exited(
        started,
        parameters,
        name="chain from a fast stream",
        says="A faster stream with small adapters guesses after the first layers until it becomes uncertain.",
    )
    return chosen(drafter, parameters)


@draft_and_verify(
    m2r2_pair,
    name="m2r2",
    title="M2R2",
    parameters=(
        integer("num_assistant_tokens", 4, "Maximum number of drafted tokens per round.", low=1, high=32),
        real("eta", 0.5, "Drafting stops after a guess with less confidence than this.", low=0.0, high=2.0),
        choice(
            "adapters",
            EITHER,
            "The trained adapters of the target, or none: the plain exit.",
            (EITHER, SHIPPED, NONE),
        ),
        VERIFIER,
        *GREEDY,
    ),
    papers=("m2r2",),
    view="layers",
    fits=fits,
    suits=suited(adapters_of),
)
def m2r2(lane: Lane) -> Iterator[None]:
    """A second, faster residual stream through the first layers drafts; the other layers verify.

    1. The newest token runs through the target's first E layers as usual: h. Beside it runs a fast stream
       from the same embedding, `a ← a + F(a) + B(a)` in each layer: F is the layer itself, which looks at the
       keys and values of the usual stream, and B a small adapter, trained so that after E layers a is what h
       is after all layers.
    2. The target's head turns the fast stream into a guess, which is read next. Drafting ends after
       num_assistant_tokens, or once the best token has a probability below eta; that uncertain guess is still
       tested.
    3. The other layers read the states h of all guesses at once and give the target's distribution at each
       position. The fast stream leaves nothing behind.
    4. Guesses are tested as in speculative decoding; the text is exactly the target's.

    The paper runs both streams as one batch; here the fast one follows the usual one, at the same cost in
    layers. Where the project has no adapters for the target, the fast stream is the usual one, and the lane
    says so. Reconstructed: no code was published.
    """
    drafter, verifier = m2r2_pair(lane.parameters)
    if lane.parameters["adapters"] == EITHER and "m2r2" not in lane.models["target"].heads:
        lane.note(PLAIN.format(lane.models["target"].name))
    yield from rounds(lane, drafter, verifier)
