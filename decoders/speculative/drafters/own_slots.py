"""Source of guesses: slots after tokens in the target's own forward, trained to guess further tokens.

The forward that verifies a tree also drafts: slots are attached to its nodes, and those of the last accepted
node hold the guesses of the next round. They are blind to the token that the target chooses there, so there
is one distribution per depth, the same on every path.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from decoders.engine.capabilities import Capability
from decoders.heads.path_independent.lookahead_tokens import LookaheadTokens
from decoders.lane import Lane
from decoders.speculative.drafters.fixed_trees import largest, open_ends
from decoders.speculative.drafters.per_state_trees import StateTree
from decoders.speculative.drafters.rank_trees import Path
from decoders.speculative.drafters.sees import record_sees
from decoders.speculative.interfaces import FIXED, Draft, Drafter, Seen, Verification
from decoders.trace.scores import ScoreName

Find = Callable[[Any], LookaheadTokens | None]  # a target -> its module
Plan = Callable[[Lane, LookaheadTokens], dict[int, StateTree]]


def attach_slots(lane: Lane, module: LookaheadTokens, host: int, count: int) -> list[int]:
    """Adds a chain of `count` slots after a node; they are not drafted nodes, and are never tested."""
    scorer, slots = lane.scorers["target"], [host]
    for i in range(1, count + 1):
        slots.append(lane.tree.add(slots[-1], lane.tree.tokens[host]))
        module.place(scorer, slots[-1], host, i)
    return slots[1:]


def forget(lane: Lane, slots: list[int]) -> None:
    """Drops these slots once the forward that read them is over."""
    scorer = lane.scorers["target"]
    for slot in slots:
        scorer.mixed.pop(slot, None)
        scorer.injections.pop(slot, None)


@dataclass
class OwnSlots:
    """One lane's drafting. `guesses` [c, V]: the logits of the slots after the node that was accepted
    last.
    """

    find: Find
    plan: Plan
    trees: dict[int, StateTree] | None = None
    guesses: torch.Tensor | None = None
    slots_of: dict[int, list[int]] = field(default_factory=dict)  # node -> its slots of this round
    shown: int = 0  # depths for which the trace has what their guesses depend on

    def propose(self, lane: Lane) -> Draft:
        """The tree of the state, and slots on the root and on its nodes."""
        draft, module = Draft(lane.tip), self.find(lane.models["target"])
        if module is None:
            return draft
        if self.trees is None:
            self.trees = self.plan(lane, module)
        n = max(self.trees)
        wanted = {draft.root: n} | self.grow(lane, draft)
        self.shown = record_sees(lane, module, draft, draft.root, self.shown)
        self.slots_of = {}
        for node, count in wanted.items():
            # the token after the node is the target's own, and one more ends the text without a guess
            room = lane.left - (lane.tree.depths[node] - lane.tree.depths[draft.root]) - 2
            if node == draft.root or open_ends(lane, [node]):
                self.slots_of[node] = attach_slots(lane, module, node, min(count, max(0, room)))
        draft.beside = [slot for slots in self.slots_of.values() for slot in slots]
        return draft

    def grow(self, lane: Lane, draft: Draft) -> dict[int, int]:
        """Drafts the state's tree. Returns node -> how many slots it is to carry."""
        state = 0 if self.guesses is None else len(self.guesses)
        tree, wanted, level = self.trees.get(state), {}, {(): draft.root}
        deepest = min(state, lane.left - 1)
        for depth in range(deepest if tree is not None else 0):
            level = {path: node for path, node in level.items() if not path or open_ends(lane, [node])}
            level = self.below(lane, draft, tree, level, self.guesses[depth])
            wanted |= {node: tree.slots[path] for path, node in level.items()}
        return wanted

    def below(
        self, lane: Lane, draft: Draft, tree: StateTree, level: dict[Path, int], logits: torch.Tensor
    ) -> dict[Path, int]:
        """Drafts the tokens of the wanted ranks of logits [V] below the nodes of a level."""
        ranks = {path: [p[-1] for p in tree.slots if p and p[:-1] == path] for path in level}
        level = {path: node for path, node in level.items() if ranks[path]}
        if not level:
            return {}
        nodes, born = list(level.values()), {}
        scores = lane.process(logits.expand(len(nodes), -1), nodes)
        draft.scores.update(zip(nodes, scores, strict=True))
        widest = 1 + max(max(ranks[path]) for path in level)
        values, tokens = largest(scores.log_softmax(-1), widest)
        if widest == 1:  # ties as greedy decoding breaks them
            tokens = scores.argmax(-1, keepdim=True)
        for row, (path, node) in enumerate(level.items()):
            offers = list(zip(tokens[row].tolist(), values[row].tolist(), strict=True))
            for rank in ranks[path]:
                if rank < len(offers) and offers[rank][1] > -float("inf"):
                    token, logprob = offers[rank]
                    child = draft.propose(lane, node, token, logprob, source="draft", fill=FIXED)
                    born[(*path, rank)] = child
        return born

    def observe(self, lane: Lane, draft: Draft, verification: Verification, seen: Seen) -> None:
        """Keeps the guesses of the slots after the last accepted node; the state is how many they are."""
        forget(lane, draft.beside)
        row = {node: at for at, node in enumerate(seen.nodes)}
        slots = self.slots_of.get([draft.root, *verification.path][-1], [])
        self.guesses = (
            seen.logits[[row[slot] for slot in slots]] if slots and verification.token is not None else None
        )
        if draft.beside and lane.more:
            lane.record_measure(lane.tip, ScoreName.STATE, float(len(slots)))


def own_slots(find: Find, plan: Plan, reads: Capability, name: str, says: str) -> Drafter:
    """The drafter of one lane that drafts from slots of the target's own forward. `plan`: the trees of its
    states, asked once. `reads`: what fills a slot. `name`: what guesses; `says`: a sentence that says how.
    """
    slots = OwnSlots(find, plan)
    return Drafter(slots.propose, FIXED, observe=slots.observe, name=name, says=says, reads=(reads,))
