"""Source of guesses: a module that was trained on the frozen target (decoders/heads).

After every verification it reads the target's states at the tokens that were committed; then it guesses below
the newest token, for a draft of any shape.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.nn import functional as F

from decoders.engine.capabilities import Capability
from decoders.engine.engine import Work
from decoders.heads import DraftModule, take_taps
from decoders.heads.parts.module import ALL
from decoders.lane import Lane
from decoders.speculative.drafters.sees import record_sees
from decoders.speculative.interfaces import Draft, Drafter, Seen, Shape, Source, Verification, drafted
from decoders.trace.events import Forward

Find = Callable[[Any], DraftModule | None]  # a target -> its module
States = dict[int, torch.Tensor]  # layer -> residual streams [M, d] after it


@dataclass
class TrainedHead:
    """One lane's drafting with the module that `find(target)` gives: the target's states that the module has
    not read yet, and what it has drafted.

    `unread`: round by round, the target's states [M, d] at newly read tokens, the streams that the module
    reads, and the token after each; the last is the newest committed one, which the target has not read.
    Before the target has read the prompt there are none, and nothing is drafted.
    """

    find: Find
    module: DraftModule | None = None
    memory: Any = None
    unread: list[tuple[torch.Tensor, States, list[int]]] = field(default_factory=list)
    number: dict[int, int] = field(default_factory=dict)  # drafted node -> its number in the memory; 0: root
    asked: int = 1  # nodes in the memory; one that is scored again is there twice
    guesses: torch.Tensor | None = None  # [K, V] of a module that sees no path
    work: Work = field(default_factory=Work)  # of the last call, as scorers count it
    shown: int = 0  # depths for which the trace has what their guesses depend on

    def is_ready(self, lane: Lane) -> bool:
        """Whether there are states to guess from. In the first round the target's scorer is asked for what
        the module will read.
        """
        if self.module is None:
            self.module = self.find(lane.models["target"])
            if self.module is None:
                return False
            self.memory = self.module.memory()
            lane.scorers["target"].taps = bool(self.module.reads) or self.module.sees.states == ALL
        return bool(self.unread)

    def observe(self, lane: Lane, draft: Draft, verification: Verification, seen: Seen) -> None:
        """Keeps the states at what was committed: the root and the accepted path. The target's own token is
        the next root.
        """
        if self.module is None or verification.token is None or not lane.more:
            return
        place = {node: row for row, node in enumerate(seen.nodes)}
        rows, tree = [place[n] for n in (draft.root, *verification.path)], lane.tree
        hidden, tokens = seen.hidden[rows], [*(tree.tokens[n] for n in verification.path), verification.token]
        streams = {layer: seen.streams[layer, rows] for layer in self.module.reads}
        if draft.root < tree.trunk and self.module.sees.states == ALL:
            before, streams_before = prompt_states(lane, self.module)  # [T, d], the root last
            hidden = torch.cat([before[:-1], hidden])
            streams = {layer: torch.cat([streams_before[layer][:-1], streams[layer]]) for layer in streams}
            tokens = [*tree.tokens[1 : tree.trunk], *tokens]
            lane.scorers["target"].taps = bool(self.module.reads)
        if self.module.sees.states != ALL:
            self.unread.clear()
        self.unread.append((hidden, streams, tokens))

    def scores(self, lane: Lane, nodes: list[int]) -> torch.Tensor:
        """The processed scores [N, V] of the token after each node: the root, or drafted ones whose parents
        were asked for before.
        """
        logits = lane.run_forward(lambda _: self.guess(lane, nodes), "draft", role="draft", scorer=self)
        return lane.process(logits, nodes)

    @torch.inference_mode()
    def guess(self, lane: Lane, nodes: list[int]) -> torch.Tensor:
        """Logits [N, V] after each node."""
        tree = lane.tree
        if nodes == [lane.tip]:
            logits = self.begin(lane)
        elif self.guesses is not None:
            self.work = Work()
            root = tree.depths[lane.tip]
            logits = self.guesses[[tree.depths[n] - root for n in nodes]]
        else:
            parents = [self.number[tree.parents[n]] for n in nodes]
            tokens = torch.tensor([tree.tokens[n] for n in nodes], device=self.module.target.embed.device)
            self.number |= dict(zip(nodes, range(self.asked, self.asked + len(nodes)), strict=True))
            self.asked += len(nodes)
            logits = self.module.expand(self.memory, parents, tokens)[
                :, : lane.models["target"].engine.vocabulary
            ]
            ran = getattr(self.memory, "ran", len(nodes))  # the others were known from earlier passes
            self.work = Work(ran, rows=ran)
        return logits if logits.dtype == torch.float64 else logits.float()

    def begin(self, lane: Lane) -> torch.Tensor:
        """Logits [1, V] below the newest token, once the module has read what it did not know."""
        hidden = torch.cat([hidden for hidden, _, _ in self.unread])  # [M, d]
        tokens = torch.tensor([t for _, _, tokens in self.unread for t in tokens], device=hidden.device)
        new = (hidden, tokens)
        if layers := self.module.reads:
            new = (
                *new,
                {layer: torch.cat([streams[layer] for _, streams, _ in self.unread]) for layer in layers},
            )
        self.unread.clear()
        logits = self.module.begin(self.memory, *new)[..., : rows_of(lane)]
        count = len(tokens) if self.module.sees.states == ALL else 1
        self.work = Work(count + self.module.masks, rows=1)
        self.number, self.asked = {lane.tip: 0}, 1
        if self.module.sees.path:
            return logits[None]
        self.guesses = logits
        return logits[:1]


def rows_of(lane: Lane) -> int:
    """How many tokens the lane's target scores; a module may score further rows that stand for no token."""
    return lane.models["target"].engine.vocabulary


def prompt_states(lane: Lane, module: DraftModule) -> tuple[torch.Tensor, States]:
    """The target's states [T, d] of the prompt and the streams that the module reads, as the forward over the
    prompt left them. That forward left none if another lane had asked for it or the model takes no tree mask;
    then one more forward computes them and is recorded.
    """
    scorer, target = lane.scorers["target"], module.target
    streams = scorer.prompt_streams()  # [L + 1, T, d], or [1, T, d] after the last layer
    if streams is not None and (len(streams) > 1 or set(module.reads) <= {target.layers}):
        hidden = F.rms_norm(streams[-1], (target.width,), target.last_norm, target.eps)
        return hidden, {layer: streams[min(layer, len(streams) - 1)] for layer in module.reads}
    tokens, start = lane.tree.tokens[: lane.tree.trunk], lane.clock()
    with torch.inference_mode():
        taps = take_taps(target.model, torch.tensor([tokens], device=target.embed.device), module.reads)
    took = lane.clock() - start
    lane.record_forward(Forward("target", "draft", len(tokens), 1, start, took, "the prompt once more"))
    dtype = target.embed.dtype
    return taps.hidden[0].to(dtype), {layer: states[0].to(dtype) for layer, states in taps.states.items()}


def from_head(find: Find, shape: Shape, name: str, says: str, head: TrainedHead | None = None) -> Drafter:
    """The drafter of one lane that drafts trees of `shape` from the guesses of its target's module, no deeper
    than the module can guess. `name`: what guesses, in words that can follow "from"; `says`: a sentence that
    says how. `head`: the lane's drafting, for a caller that reads it.
    """
    head = head or TrainedHead(find)
    inner = drafted(Source(head.scores, name, says), replace(shape, grow=no_deeper(shape, head)))

    def propose(lane: Lane) -> Draft:
        if not head.is_ready(lane):
            return Draft(lane.tip)
        draft = inner.propose(lane)
        head.shown = record_sees(lane, head.module, draft, draft.root, head.shown)
        return draft

    def observe(lane: Lane, draft: Draft, verification: Verification, seen: Seen) -> None:
        head.observe(lane, draft, verification, seen)
        shape.observe(lane, draft, verification, seen)

    return replace(inner, propose=propose, observe=observe, reads=(Capability.HIDDEN_STATES,))


def no_deeper(shape: Shape, head: TrainedHead) -> Callable:
    """The `grow` of a shape that ends where the module's guesses end."""

    def grow(lane: Lane, draft: Draft, guess: Callable, max_levels: int) -> None:
        deepest = head.module.depth
        shape.grow(lane, draft, guess, max_levels if deepest is None else min(max_levels, deepest))

    return grow


def head_of_kind(kind: str) -> Find:
    """Finds a target's module by its name."""
    return lambda target: target.heads.get(kind)


def needs_head(kind: str, title: str) -> Callable[[dict, Any], str | None]:
    """The `suits` of a strategy whose drafter is the target's module `kind`, which people call `title`. Its
    attribute `head` is that kind: strategies may share a head, as EAGLE and EAGLE-2 do.
    """

    def suits(parameters: dict, target: Any) -> str | None:
        if head_of_kind(kind)(target) is not None:
            return None
        return (
            f"{target.name!r} has no {title}: choose llama-tiny, or train heads for it (docs/heads.md) and "
            "name their folder with --heads."
        )

    suits.head = kind
    return suits
