"""Kangaroo: the target's first layers and a small trained adapter draft, its other layers verify.

Liu et al. (2024), Kangaroo. The adapter is heads/feature_drafters/kangaroo.py; the model knows which one fits
a target. Without an adapter, the plain exit drafts: what an adapter is before training. The paper decodes
only greedily.
"""

from collections.abc import Iterator

import torch

from decoders.engine.layers import Layers
from decoders.heads import Entries, Kangaroo, Target
from decoders.lane import Lane
from decoders.parameters import choice, integer, real
from decoders.refusal import Refusal
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import VERIFIER, chosen, fits
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.interfaces import Drafter, Pair
from decoders.speculative.self_draft.early_layers import doubly_exited, suited
from decoders.speculative.self_draft.layerskip import exit_of
from decoders.trace.events import Forward

SHIPPED, NONE, EITHER = "shipped", "none", "if shipped"
PLAIN = (
    "No adapter comes with the project for {!r}: the plain exit drafts, as an untrained adapter would. "
    "docs/heads.md says how to train one."
)


class Shallow:
    """One lane's drafting: what the adapter has read, and the states [d] after the first layers."""

    def __init__(self, lane: Lane, adapter: Kangaroo):
        self.lane, self.module, self.entries, self.shown = lane, adapter, Entries(), 0
        total = lane.scorers["target"].engine.layer_count
        self.first = Layers.first(adapter.settings["exit"], total)
        self.states: dict[int, torch.Tensor] = {}

    def read(self, node: int) -> torch.Tensor:
        """The state after the first layers of a node that has not been read yet; its exit's logits are not
        computed.
        """
        self.lane.score([node], "draft", layers=self.first)
        self.states[node] = self.lane.scorers["target"].early_state(node)
        return self.states[node]

    def prompt_states(self) -> torch.Tensor:
        """The states [T, d] of the prompt, in one pass through the first layers."""
        lane, engine = self.lane, self.lane.scorers["target"].engine
        tokens, start = lane.tree.tokens[: lane.tree.trunk], lane.clock()
        with engine.blocks.running(self.first) as streams:
            engine.model.base_model(torch.tensor([tokens], device=engine.device), use_cache=False)
        took, share = lane.clock() - start, self.first.share
        lane.record_forward(
            Forward("target", "draft", len(tokens), 1, start, took, str(self.first), share=share)
        )
        return streams[self.first.exit][0]

    @torch.inference_mode()
    def begin(self) -> torch.Tensor:
        """Logits [1, V] below the newest token, once all that was committed since the last call is read."""
        lane, tree = self.lane, self.lane.tree
        prompt = [] if self.entries.known else [self.prompt_states()]
        new = tree.path(lane.tip)[max(self.entries.known, tree.trunk) :]
        self.read(lane.tip)
        states = torch.cat([*prompt, torch.stack([self.states[n] for n in new])])
        return self.module.begin(self.entries, states)[None]

    @torch.inference_mode()
    def below(self, node: int, rank: int) -> torch.Tensor:
        """Logits [1, V] below the drafted node number `rank`, which the first layers have read."""
        return self.module.expand(self.entries, [rank - 1], self.states[node][None])


def chain(parameters: dict) -> Drafter:
    """Drafts until the adapter is unsure: that token is still drafted, none follows it."""

    def started(lane: Lane) -> Shallow:
        return Shallow(lane, adapter_of(parameters, lane.models["target"]))

    return doubly_exited(
        started,
        parameters,
        name="chain from an early exit's adapter",
        says="The target's first layers and an adapter guess until they become uncertain.",
    )


def adapter_of(parameters: dict, target) -> Kangaroo:
    """The adapter that drafts for a target. Raises Refusal with one sentence if the parameters ask for a
    shipped one and there is none.
    """
    wanted = parameters["adapter"]
    shipped = None if wanted == NONE else target.heads.get("kangaroo")
    if shipped is not None:
        return shipped
    if wanted == SHIPPED:
        raise Refusal(
            f"No Kangaroo adapter comes with the project for {target.name!r}; choose another target, or "
            f"adapter {NONE}."
        )
    shared = Target.of(target.model)
    plain = Kangaroo(shared, exit_of({"exit_layer": 0}, target))
    return plain.to(shared.embed.device, shared.embed.dtype).eval().requires_grad_(False)


def kangaroo_pair(parameters: dict) -> Pair:
    """A chain from the adapter; greedy match at temperature 0, else the chosen verifier."""
    return chosen(chain(parameters), parameters)


@draft_and_verify(
    kangaroo_pair,
    name="kangaroo",
    title="Kangaroo",
    parameters=(
        integer("num_assistant_tokens", 6, "Maximum number of drafted tokens per round.", low=1, high=32),
        real("eta", 0.6, "Drafting stops after a guess with less confidence than this.", low=0.0, high=2.0),
        choice(
            "adapter",
            EITHER,
            "The trained adapter of the target, or none: the plain exit.",
            (EITHER, SHIPPED, NONE),
        ),
        VERIFIER,
        *GREEDY,
    ),
    papers=("kangaroo",),
    view="layers",
    fits=fits,
    suits=suited(adapter_of),
)
def kangaroo(lane: Lane) -> Iterator[None]:
    """The target's first layers and a small trained adapter draft; its other layers verify.

    1. The newest token runs through the target's first layers. The adapter, an attention layer without an
       MLP, turns their state into an estimate of the last layer's; the target's head turns it into a guess.
    2. The guess then runs through the first layers too: verification needs that state anyway. Drafting ends
       after num_assistant_tokens, or once the adapter gives its best token less than eta; that uncertain
       guess is still tested.
    3. The other layers read all of it in one pass and give the target's distribution at each position.
    4. Guesses are tested as in speculative decoding; the text is exactly the target's.

    So there are two early exits: from the layers, and from drafting. The adapter needs one extra pass over
    the prompt through the first layers. Where no adapter was trained for the target, the plain exit drafts,
    and the lane says so.
    """
    drafter, verifier = kangaroo_pair(lane.parameters)
    if lane.parameters["adapter"] == EITHER and "kangaroo" not in lane.models["target"].heads:
        lane.note(PLAIN.format(lane.models["target"].name))
    yield from rounds(lane, drafter, verifier)
