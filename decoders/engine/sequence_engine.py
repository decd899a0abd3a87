"""Scores tree nodes as whole sequences: the last resort, for models that take no tree mask and whose own
cache cannot be copied.

It has the interface of `engine.Engine` and `engine.Scorer` but no KV slots: every forward starts at the first
token, which is slow but gives the same numbers.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from functools import cached_property

import torch

from decoders.engine.capabilities import Capability
from decoders.engine.engine import Engine, Work
from decoders.engine.injected_states import InjectedStates, Injections, injected_in, injecting
from decoders.engine.input_embeddings import Mixed, reads
from decoders.engine.kv_cache import ReadOnly, context_of
from decoders.engine.layers import Layers
from decoders.engine.partial_forward import Blocks, trial
from decoders.engine.tree import Tree
from decoders.refusal import Refusal

NOTE = (
    "This model cannot take a tree mask, so every candidate is scored as a whole sequence of its own: "
    "the same numbers, but slower, and no attention is shown."
)


class SequenceEngine:
    """A causal LM that scores nodes by running each root-to-node text from the start."""

    remedy = Engine.remedy
    engine_note = NOTE  # what the engine means for speed and pictures

    def __init__(self, model: torch.nn.Module):
        config = model.config.get_text_config()
        if not hasattr(config, "num_hidden_layers"):
            raise Refusal(f"{type(model).__name__} has no single stack of layers; choose another model.")
        self.model, self.device, self.dtype = model, model.device, model.dtype
        self.vocabulary = model.get_output_embeddings().weight.shape[0]
        self.context, note = context_of(config)
        self.layer_count = config.num_hidden_layers
        self.kind, self.note = type(model).__name__, " ".join(filter(None, (self.engine_note, note)))

    @cached_property
    def blocks(self) -> Blocks:
        """The model's blocks, to be run in part."""
        return Blocks(self.model)

    def gives(self, capability: Capability) -> bool:
        """Whether it can give this."""
        return (
            self.runs_in_part if capability is Capability.LAYERS else capability is not Capability.ATTENTION
        )

    @cached_property
    def runs_in_part(self) -> bool:
        """As `engine.Engine.runs_in_part`."""
        return trial(self)

    def attach(self, tree: Tree) -> "SequenceScorer":
        """A scorer for `tree`."""
        return SequenceScorer(self, tree)

    @torch.inference_mode()
    def rows(
        self,
        texts: list[list[int]],
        hidden: bool,
        part: Layers | None = None,
        starts: Sequence[int] = (),
        states: torch.Tensor | None = None,
        mixed: Sequence[Mixed] = (),
        injected: InjectedStates | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        """For N texts: logits [N, V] after each, last-layer states [N, d] if `hidden`, and, with a part, the
        residual streams [L + 1, N, d] after 0 to L layers. Shorter texts are padded on the right.

        part: the layers that run from the place `starts` of each text on; all run before it. states [N, d]:
        enter them at that place. mixed: for each text, place -> embedding [d] that is read there. injected:
        states injected in the middle of the model.
        """
        longest = max(len(t) for t in texts)
        padded = torch.tensor([t + [0] * (longest - len(t)) for t in texts], device=self.device)
        states = None if states is None else states[:, None]
        running = nullcontext() if part is None else self.blocks.running(part, states, list(starts))
        injections = nullcontext() if injected is None else injecting(self.blocks, injected)
        with injections, running as streams:
            output = self.model(
                **reads(self.model, padded, mixed), use_cache=False, output_hidden_states=hidden
            )
        at = (torch.arange(len(texts)), torch.tensor([len(t) - 1 for t in texts]))
        last = output.hidden_states[-1][at] if hidden else None
        return output.logits[at], last, torch.stack([x[at] for x in streams]) if streams else None


class SequenceScorer:
    """One lane's view of a SequenceEngine; see `engine.Scorer` for the contract."""

    def __init__(self, engine: SequenceEngine, tree: Tree):
        self.engine, self.tree = engine, tree
        self.kept: dict[int, tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]] = {}
        self.taps = False  # whether the residual stream after each layer is kept
        self.whole: set[int] = set()  # nodes that the whole model has read
        self.first: dict[int, torch.Tensor] = {}  # node -> stream [d] after the first layers
        self.depth: dict[int, int] = {}  # node -> how many layers those were
        self.mixed: Mixed = {}  # as in `engine.Scorer`
        self.injections: Injections = {}
        self.work = Work()
        self.used = self.peak = 0

    def score(self, nodes: list[int], hidden: bool = False) -> torch.Tensor:
        """Logits [N, V] for the token after each node."""
        missing = [n for n in nodes if n not in self.kept or (hidden and self.kept[n][1] is None)]
        texts = [self.tree.text(n) for n in missing]
        self.work = Work(tokens=sum(map(len, texts)), rows=len(nodes))
        if missing:
            layers = self.engine.layer_count
            part = Layers.first(layers, layers) if self.taps else None
            mixed = [self._mixed(n) for n in missing]
            starts = [len(t) for t in texts]
            injected = injected_in(self.injections, [self.tree.path(n) for n in missing])
            logits, states, streams = self.engine.rows(
                texts, hidden, part, starts, mixed=mixed, injected=injected
            )
            self.whole.update(node for n in missing for node in self.tree.path(n))
            for i, node in enumerate(missing):
                tapped = streams[:, i] if self.taps else None
                self.kept[node] = (logits[i], states[i] if hidden else None, tapped)
        logits = torch.stack([self.kept[n][0] for n in nodes])
        return logits if logits.dtype == torch.float64 else logits.float()

    def _mixed(self, node: int) -> Mixed:
        """Place -> embedding on the path to a node, where it is not the token's own."""
        path = self.tree.path(node) if self.mixed else []
        return {place: self.mixed[n] for place, n in enumerate(path) if n in self.mixed}

    def score_part(self, nodes: list[int], part: Layers) -> torch.Tensor:
        """As `engine.Scorer.score_part`; all layers run on the prefix that the whole model has read."""
        texts, starts = [self.tree.text(n) for n in nodes], []
        for node in nodes:
            path = self.tree.path(node)
            starts.append(next((i for i, n in enumerate(path) if n not in self.whole), len(path)))
        logits, _, streams = self.engine.rows(texts, False, part, starts)
        if part.exit is not None:
            self.first.update(zip(nodes, streams[part.exit], strict=True))
            self.depth.update(dict.fromkeys(nodes, part.exit))
        tokens = sum(map(len, texts))
        share = (sum(starts) + (tokens - sum(starts)) * part.share) / tokens
        self.work = Work(tokens, rows=len(nodes), share=share, scope=str(part))
        return logits if logits.dtype == torch.float64 else logits.float()

    def layers_read(self, node: int) -> int:
        """As `engine.Scorer.layers_read`."""
        return self.engine.layer_count if node in self.whole else self.depth.get(node, 0)

    def deepen(self, nodes: list[int], count: int) -> torch.Tensor:
        """As `engine.Scorer.deepen`, in one call: the texts are read again, with `count` layers where not all
        have read them.
        """
        logits = self.score_part(nodes, Layers.first(count, self.engine.layer_count))
        if count == self.engine.layer_count:
            self.whole.update(node for one in nodes for node in self.tree.path(one))
        return logits

    def early_state(self, node: int) -> torch.Tensor:
        """As `engine.Scorer.early_state`."""
        return self.first[node]

    @torch.inference_mode()
    def seen_from(self, node: int) -> ReadOnly:
        """As `engine.Scorer.seen_from`: the whole model reads the path once more."""
        ids = torch.tensor([self.tree.text(node)], device=self.engine.device)
        return ReadOnly.of(self.engine.model(input_ids=ids, use_cache=True).past_key_values)

    def hidden_rows(self, nodes: list[int]) -> torch.Tensor:
        """As `engine.Scorer.hidden_rows`."""
        return torch.stack([self.hidden(n) for n in nodes])

    def prompt_streams(self) -> None:
        """None (see `engine.Scorer.prompt_streams`): the prompt's streams are not kept."""
        return None

    def streams(self, node: int) -> torch.Tensor | None:
        """As `engine.Scorer.streams`."""
        return self.kept[node][2]

    def through(self, nodes: list[int], layer: int, states: torch.Tensor) -> torch.Tensor:
        """As `engine.Scorer.through`."""
        texts, part = [self.tree.text(n) for n in nodes], Layers.only([layer], self.engine.layer_count)
        tokens, starts = sum(map(len, texts)), [len(t) - 1 for t in texts]
        share = (sum(starts) + len(texts) * part.share) / tokens
        self.work = Work(tokens, rows=len(nodes), share=share, scope=str(part))
        return self.engine.rows(texts, False, part, starts, states)[2][-1]

    def hidden(self, node: int) -> torch.Tensor:
        """Last-layer state [d] of a node that was scored with hidden=True."""
        return self.kept[node][1]

    def attention(self, nodes: list[int]) -> None:
        return None

    def forget(self, nodes: list[int]) -> None:
        for node in nodes:
            self.kept.pop(node, None)

    def release(self, nodes: list[int]) -> None:
        self.forget(nodes)
        self.whole.difference_update(nodes)
        for node in nodes:
            self.first.pop(node, None)
            self.depth.pop(node, None)

    def close(self) -> None:
        self.kept.clear()
