"""Blockwise drafts that are rescored before the target reads them: several heads' candidates form a lattice,
and an n-gram model ranks its paths.

Kim et al. (2024), Towards Fast Inference: Exploring and Improving Blockwise Parallel Drafts. The lattice is
drafters/sausage.py.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch

from decoders.datastore import Prefix, concatenated_texts, encoded, names
from decoders.engine.capabilities import Capability
from decoders.lane import Lane
from decoders.logits.distributions import MIN_LOGPROB
from decoders.parameters import choice, integer, real
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import speculative
from decoders.speculative.default_verifier import simplest
from decoders.speculative.drafters.draft_model import scores as small_scores
from decoders.speculative.drafters.fixed_trees import largest
from decoders.speculative.drafters.sausage import NGrams, best_paths, common, oracle, repeats
from decoders.speculative.drafters.sees import record_sees
from decoders.speculative.drafters.trained_head import TrainedHead, head_of_kind, needs_head
from decoders.speculative.interfaces import FIXED, Draft, Drafter, Pair, Seen, Verification
from decoders.trace.number_format import number
from decoders.trace.scores import ScoreName

TEXT = "the text so far"  # the store that is the lane's own text
BLOCKWISE, MEDUSA = "blockwise", "medusa"
TITLES = {BLOCKWISE: "blockwise heads", MEDUSA: "Medusa heads"}


@dataclass
class Lattice:
    """One lane's drafting: the heads, and for each round the position of the root, the candidates by depth,
    the heads' entropies, the chain that the heads alone would draft, and the paths that were drafted.
    """

    head: TrainedHead
    lattices: list[tuple[int, list[list[int]], list[float], list[int]]] = field(default_factory=list)
    drafted: list[list[Prefix]] = field(default_factory=list)

    def columns(self, lane: Lane, width: int, depth: int) -> tuple[torch.Tensor, list[list]]:
        """Processed scores [K, V] of the heads, and the `width` best tokens of each with their
        log-probabilities; fewer where the others have probability 0.
        """
        self.head.scores(lane, [lane.tip])
        guesses = self.head.guesses[: min(depth, lane.left - 1)].float()
        scores = lane.process(guesses, [lane.tip] * len(guesses))
        values, tokens = largest(scores.log_softmax(-1), width)
        entropies = torch.special.entr(scores.softmax(-1)).sum(-1).tolist()
        pairs = [
            [pair for pair in zip(*both, strict=True) if pair[1] > -math.inf]
            for both in zip(tokens.tolist(), values.tolist(), strict=True)
        ]
        plain = scores.argmax(-1).tolist()  # ties as greedy decoding breaks them
        root = lane.tree.depths[lane.tip]
        self.lattices.append((root, [[token for token, _ in column] for column in pairs], entropies, plain))
        return scores, pairs

    def note_worth(self, lane: Lane) -> None:
        """Notes, at the end of the text, how good the drafts were, compared with those of the heads alone and
        the best paths of the lattices.
        """
        written = lane.tree.text(lane.tip)
        ours, plain, best = [], [], []
        for (root, columns, _, chain), paths in zip(self.lattices, self.drafted, strict=True):
            rest = written[root + 1 :]
            ours.append(max((common(path, rest) for path in paths), default=0))
            plain.append(common(chain, rest))
            best.append(oracle(columns, rest))
        if not ours:
            return
        lane.note(
            f"Tokens per round, the target's own among them: {number(1 + mean(ours))} with these drafts, "
            f"{number(1 + mean(plain))} with the heads' own best tokens, {number(1 + mean(best))} had the "
            "best path of each lattice been known."
        )
        share = mean([repeats(chain) for *_, chain in self.lattices])
        depths = zip(*(entropies for _, _, entropies, _ in self.lattices), strict=False)
        entropies = ", ".join(number(mean(list(at))) for at in depths)
        lane.note(
            f"In the heads' own drafts {number(100 * share)} % of neighbouring tokens are equal; the heads' "
            f"entropy is {entropies} nats, depth by depth."
        )


def mean(values: list[float]) -> float:
    """The arithmetic mean of at least one value."""
    return sum(values) / len(values)


def add_path(lane: Lane, draft: Draft, path: Prefix, scores: torch.Tensor) -> int:
    """Adds a path to the draft, up to an end-of-text token, sharing the nodes that are there already. Returns
    its last node. scores [K, V]: the heads'.
    """
    node, logprobs = draft.root, scores.log_softmax(-1)
    for depth, token in enumerate(path):
        draft.scores.setdefault(node, scores[depth])
        below = draft.below(lane, node)
        if token not in below:
            logprob = float(logprobs[depth, token])
            below[token] = draft.propose(lane, node, token, logprob, source="draft", fill=FIXED)
        node = below[token]
        if token in lane.eos:
            break
    return node


Write = Callable[[Lane, Draft, torch.Tensor, list], list[Prefix]]


def from_lattice(parameters: dict, write: Write, by: str, roles: tuple[str, ...] = ()) -> Drafter:
    """A drafter whose `write(lane, draft, scores, columns)` chooses paths of each lattice and drafts them."""
    kind = parameters["heads"]
    lattice = Lattice(TrainedHead(head_of_kind(kind)))

    def propose(lane: Lane) -> Draft:
        draft = Draft(lane.tip)
        if lattice.head.is_ready(lane) and lane.left > 1:
            offered = lattice.columns(lane, parameters["candidates"], parameters["depth"])
            lattice.drafted.append(write(lane, draft, *offered))
            head = lattice.head
            head.shown = record_sees(lane, head.module, draft, draft.root, head.shown)
        return draft

    def observe(lane: Lane, draft: Draft, verification: Verification, seen: Seen) -> None:
        lattice.head.observe(lane, draft, verification, seen)
        if not lane.more:
            lattice.note_worth(lane)

    return Drafter(
        propose,
        FIXED,
        observe=observe,
        name=f"paths of a lattice from {TITLES[kind]}",
        says=f"Heads guess all depths at once; the paths of their candidates are ranked by them and {by}.",
        roles=roles,
        reads=(Capability.HIDDEN_STATES,),
    )


def ngrams_of(lane: Lane, store: str, order: int) -> NGrams:
    """Counts of a store, or of the lane's own text."""
    target = lane.models["target"]
    tokens = concatenated_texts([lane.tree.text(lane.tip)]) if store == TEXT else encoded(store, target)
    return NGrams.of(tokens, order)


def suits(parameters: dict, target: Any) -> str | None:
    """The message to show if the target has no such heads."""
    return needs_head(parameters["heads"], TITLES[parameters["heads"]])(parameters, target)


HEADS = choice("heads", BLOCKWISE, "The heads whose guesses form the lattice.", (BLOCKWISE, MEDUSA))
CANDIDATES = integer("candidates", 8, "Candidates per depth in the lattice.", low=1, high=32)
DEPTH = integer("depth", 4, "Maximum depth of the lattice.", low=1, high=16)
DECLARED = {
    "papers": ("towards-fast-inference",),
    "suits": suits,
}


@speculative(
    name="blockwise_refined",
    title="Refined block drafts",
    parameters=(
        HEADS,
        replace(CANDIDATES, default=6),
        DEPTH,
        integer("paths", 4, "Paths of the lattice that are drafted.", low=1, high=32),
        real("weight", 1.0, "Weight of the n-grams beside the heads; 0: none.", low=0.0, high=10.0),
        integer("ngram", 3, "Length of the longest n-grams.", low=1, high=5),
        choice("store", "stories", "Texts whose n-grams are counted.", (*names(), TEXT)),
        *GREEDY,
    ),
    **DECLARED,
)
def blockwise_refined_pair(parameters: dict) -> Pair:
    """Heads that do not see each other's guesses draft a lattice; n-grams choose its best paths.

    1. Each head guesses its own depth only, so the best guesses together often repeat a word, and the right
       token is often not the best one but close to it. The best candidates of all depths form a lattice: any
       token may follow any token of the previous depth.
    2. The score of a path is the sum of the heads' log-probabilities of its tokens, plus weight times those
       of an n-gram model, which knows which tokens follow each other. The best paths of the whole lattice are
       found exactly, by dynamic programming over the last tokens.
    3. They are merged by common prefixes to a tree, which one target forward reads; exact tests follow.

    At the end the lane reports the drafts' accepted tokens beside those of the heads alone and of the best
    path of every lattice. The paper has 16 candidates, 16 paths and nine heads; its n-grams were counted in
    the training text, here they are those of a small store of stories.
    """
    count, weight, order, store = (parameters[name] for name in ("paths", "weight", "ngram", "store"))
    kept = None

    def write(lane: Lane, draft: Draft, scores: torch.Tensor, columns: list) -> list[Prefix]:
        nonlocal kept
        if kept is None or store == TEXT:
            kept = ngrams_of(lane, store, order)
        text, words = tuple(lane.tree.text(lane.tip)), scores.shape[-1]
        paths = best_paths(columns, count, weight, text, partial(kept.logprobs, words=words), order)
        for rank, (total, path) in enumerate(paths, start=1):
            lane.record_rank(add_path(lane, draft, path, scores), ScoreName.PATH, total, rank)
        return [path for _, path in paths]

    return simplest(from_lattice(parameters, write, "n-grams"), parameters["temperature"])


@speculative(
    name="blockwise_rescored",
    title="Block drafts rescored by a small model",
    parameters=(
        HEADS,
        CANDIDATES,
        DEPTH,
        real("weight", 1.0, "Weight of the small model beside the heads; 0: none.", low=0.0, high=10.0),
        *GREEDY,
    ),
    **DECLARED,
)
def blockwise_rescored_pair(parameters: dict) -> Pair:
    """Heads guess several candidates per depth at once; a small model chooses one per depth, in order.

    1. The heads of the target guess all depths without seeing each other: a few candidates per depth.
    2. The draft model reads the text and the draft so far. Of the candidates of the next depth the one with
       the largest sum of the head's log-probability and weight times the small model's is taken.
    3. One target forward reads the chain; exact tests follow.

    This is the paper's local rescoring; *Refined block drafts* is its other one, over whole paths. It takes
    one forward of the small model per depth. The paper's small model has 61 M parameters.
    """
    weight = parameters["weight"]

    def write(lane: Lane, draft: Draft, scores: torch.Tensor, columns: list) -> list[Prefix]:
        path, node = (), draft.root
        for depth, column in enumerate(columns):
            logprobs = small_scores(lane, [node])[0].log_softmax(-1).clamp(min=MIN_LOGPROB)
            token, own = max(column, key=lambda one: one[1] + weight * float(logprobs[one[0]]))
            draft.scores[node] = scores[depth]
            node = draft.propose(lane, node, token, own, source="draft", fill=FIXED)
            lane.record_rank(node, ScoreName.PATH, own + weight * float(logprobs[token]))
            path = (*path, token)
            if token in lane.eos:
                break
        return [path]

    return simplest(from_lattice(parameters, write, "a small model", ("draft",)), parameters["temperature"])
