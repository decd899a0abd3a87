"""SpecPV: most rounds verify with some of the keys and values, and now and then one verifies with all of
them.

Tan et al. (2025), SpecPV. The paper drafts a tree with an EAGLE-3 head; here a draft model writes a chain.
sparse_kv.py chooses which keys are read. `strict` is not in the paper.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from decoders.chooser import SeparateStreams
from decoders.engine.engine import Scorer
from decoders.engine.sparse_kv import SELECTORS, Budget, View, view
from decoders.lane import Lane
from decoders.logits.distributions import probabilities
from decoders.parameters import choice, integer, switch
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.asynchronous.overlapped_rounds import BEHIND, drafted_chain
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import simplest
from decoders.speculative.draft_verify_loop import completed, distributions, rounds
from decoders.speculative.drafters.draft_model import draft_chain
from decoders.speculative.drafters.fixed_trees import open_ends
from decoders.speculative.interfaces import Draft, Drafter, Pair, Verifier, VerifierInput, badge
from decoders.strategy import Part
from decoders.trace.number_format import number
from decoders.trace.scores import ScoreName

NO_PART = "This model's keys cannot be seen in part, so that every round sees all of them."
NAMED = 4  # blocks named in a note


class Partial:
    """The target's scorer, which sees a part of the text while `in_part` is true. A forward that sees all of
    the text reads again what only a part has checked, and chooses the part anew.
    """

    def __init__(self, lane: Lane):
        self.lane, self.inner = lane, lane.scorers["target"]
        given = lane.parameters
        self.budget = Budget(
            given["block_size"], given["sink_blocks"], given["retrieved_blocks"], given["window_blocks"]
        )
        self.view: View | None = None
        self.strict, self.inside = given["strict"], False
        # node -> logits [V] after it, computed with a part of the text
        self.partial_logits: dict[int, torch.Tensor] = {}
        if not isinstance(self.inner, Scorer):
            lane.note(NO_PART)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    @property
    def in_part(self) -> bool:
        """Whether the next forward sees a part."""
        if self.view is None:
            return False
        return self.inside if self.strict else len(self.pending()) <= self.lane.parameters["refresh"]

    def pending(self) -> list[int]:
        """The newest committed tokens that only a part of the text has checked, oldest first."""
        early, node, path = getattr(self.inner, "early", {}), self.lane.tip, []
        while (node := self.lane.tree.parents[node]) in early:
            path.append(node)
        return path[::-1]

    def score(self, nodes: list[int], hidden: bool = False) -> torch.Tensor:
        """Logits [N, V] after each node; like `engine.Scorer.score` where all of the text is seen."""
        if self.in_part:
            logits = self.inner.score_seeing(nodes, self.view)
            self.partial_logits.update(zip(nodes, logits, strict=True))
            return logits
        again = self.pending()
        logits = self.inner.score(list(dict.fromkeys([*again, *nodes])), hidden)
        if again:
            self.compare(again, logits[: len(again)])
        self.inner.forget(again)
        self.partial_logits.clear()
        if self.lane.more:
            self.choose(nodes)
        return logits[-len(nodes) :]

    def look_back(self) -> None:
        """Measures how far the end of a finished text diverges, which no full round will check."""
        self.view = None
        if again := self.pending():
            self.lane.score(again[-1:], "lens")

    def compare(self, again: list[int], logits: torch.Tensor) -> None:
        """Records how far the distributions after these nodes with a part of the text are from those with all
        of it, of logits [N, V].
        """
        lane = self.lane
        parts = distributions(lane, lane.process(torch.stack([self.partial_logits[n] for n in again]), again))
        wholes = distributions(lane, lane.process(logits, again))
        far = ((parts - wholes).abs().sum(-1) / 2).tolist()
        for node, variation in zip(again, far, strict=True):
            lane.record_measure(node, ScoreName.TOTAL_VARIATION, variation)
        if lane.parameters["temperature"] == 0.0:
            agree = sum(x < 0.5 for x in far)
            says = f"at {agree} of {len(far)} of them all keys would have chosen the same token"
        else:
            mean = number(sum(far) / len(far))
            says = f"the mean total variation between the two distributions is {mean}"
        lane.note(f"Tokens checked with a part of the keys are read again with all of them: {says}.")

    def choose(self, nodes: list[int]) -> None:
        """Chooses the part that is seen from now on, by the queries of `nodes` over the text before them."""
        self.view = None
        if not isinstance(self.inner, Scorer):
            return
        kept = [self.inner.kept[n] for n in nodes]
        if self.inner.engine.nearest is not None or any(batch.queries is None for batch, _, _ in kept):
            return  # layers that look back only so far see a part of the keys anyway
        path = self.lane.tree.path(self.lane.tip)
        slots = torch.tensor([self.inner._slot(n) for n in path], device=self.inner.engine.device)
        own = [batch.queries[:, :, at - batch.without_queries] for batch, _, at in kept]
        queries = torch.stack(own, dim=2)
        if (keys := self.inner.cache.keys(slots, queries)) is None:
            return
        self.view = view(queries, keys, slots, self.budget, self.lane.parameters["selector"])
        if self.view is not None:
            self.lane.note(seen(self.view, self.budget))


def seen(now: View, budget: Budget) -> str:
    """What the part contains, in a sentence."""
    often = Counter((now.blocks + 1).flatten().tolist()).most_common(NAMED)
    named = ", ".join(str(block) for block, _ in sorted(often))
    looked = f", most often {named}" if named else ""
    return (
        f"Of {now.depth:,} positions the next rounds see {now.slots.shape[-1]:,}, in blocks of "
        f"{budget.size}: the first {budget.sink}, the last {budget.window}, and {budget.retrieved} that "
        "each head retrieves"
        f"{looked}."
    )


def twice_checked(drafter: Drafter, verifier: Verifier) -> Drafter:
    """Drafts what rounds with a part of the keys would write, until more than `refresh` tokens wait, followed
    by a chain of the draft model: for a verifier that sees all keys.
    """

    def propose(lane: Lane) -> Draft:
        target: Partial = lane.scorers["target"]
        if target.view is None:
            return drafter.propose(lane)
        draft, end, target.inside = Draft(lane.tip), lane.tip, True
        chooser = SeparateStreams(lane.chooser, before=("part",))
        count = lane.parameters["num_assistant_tokens"]
        while end is not None and len(draft.nodes) <= lane.parameters["refresh"]:
            room = lane.left - 1 - len(draft.nodes)
            if room < 1:
                break
            end = a_round(lane, draft, end, min(count, room - 1), verifier, chooser)
        target.inside = False
        room = lane.left - 1 - len(draft.nodes)
        if end is not None and room > 0:
            drafted_chain(lane, draft, end, min(count, room))
        return draft

    return replace(drafter, propose=propose)


def a_round(
    lane: Lane, draft: Draft, end: int, count: int, verifier: Verifier, chooser: SeparateStreams
) -> int | None:
    """One round below `end` with a part of the keys: the tokens that it keeps go into `draft`, with their
    distributions. Returns the new end, None after an end-of-text token.
    """
    inner, tokens = Draft(end), lane.tree.tokens
    drafted_chain(lane, inner, end, count)
    nodes = [end, *open_ends(lane, inner.nodes)]
    scores = lane.process(lane.score(nodes, "draft"), nodes)
    lane.distribution(nodes, scores, view="draft", level="a part of the keys")
    p = dict(zip(nodes, distributions(lane, scores), strict=True))
    probs = dict(zip(nodes, probabilities(scores), strict=True))
    verification = verifier.verify(VerifierInput(inner, tokens, p, chooser, lane.tree.depths[end], probs))
    out = {test.node: test for test in verification.tests if not test.accepted}
    for node in inner.nodes:
        if node not in verification.path:
            facts: dict[str, Any] = {"reason": BEHIND}
            if test := out.get(node):
                row = probs[lane.tree.parents[node]]
                why = [completed(reason, row.log(), float(row[tokens[node]])) for reason in test.reasons]
                facts = {"p": test.p, "u": test.u, "why": why}
            lane.verdict(node, "pruned", q=inner.probability.get(node), **facts)
    lane.drop([n for n in inner.nodes if n not in verification.path])
    for node in verification.path:
        keep(lane, draft, node, p[lane.tree.parents[node]], probs[lane.tree.parents[node]])
    last = verification.path[-1] if verification.path else end
    if verification.token is None:
        return None
    own = draft.propose(
        lane, last, verification.token, math.log(float(probs[last][verification.token])), source="part"
    )
    if lane.parameters["temperature"] > 0.0:
        draft.q[last] = p[last]
    return own if tokens[own] not in lane.eos else None


def keep(lane: Lane, draft: Draft, node: int, q: torch.Tensor, probs: torch.Tensor) -> None:
    """Adds an existing node of the tree to `draft`, as drawn from q [V], which a part of the keys gave."""
    parent = lane.tree.parents[node]
    draft.nodes.append(node)
    draft.children[parent] = [node]
    draft.probability[node] = float(probs[lane.tree.tokens[node]])
    if lane.parameters["temperature"] > 0.0:
        draft.q[parent] = q


def specpv_pair(parameters: dict) -> Pair:
    """A chain from the draft model and the simplest verifier; strict, that is only the inner loop."""
    drafter, verifier = simplest(draft_chain(parameters), parameters["temperature"])
    return twice_checked(drafter, verifier) if parameters["strict"] else drafter, verifier


def refreshing(parameters: dict) -> Part:
    """Which keys are seen when, as a part of the strategy."""
    lost = "are not committed before it" if parameters["strict"] else "stay as they are"
    return Part(
        "schedule",
        "partial verification",
        f"Rounds see a part of the keys while at most {parameters['refresh']} tokens wait for a full round; "
        f"these {lost}.",
    )


@draft_and_verify(
    specpv_pair,
    name="specpv",
    title="SpecPV",
    parameters=(
        integer("num_assistant_tokens", 4, "Tokens drafted per round.", low=1, high=32),
        integer("block_size", 8, "Positions per block of keys.", low=1, high=128),
        integer(
            "sink_blocks",
            1,
            "Number of blocks at the beginning of the text that are always seen.",
            low=0,
            high=64,
        ),
        integer("retrieved_blocks", 8, "Blocks that each head retrieves.", low=0, high=1024),
        integer(
            "window_blocks",
            2,
            "Number of blocks at the end of the text that are always seen.",
            low=0,
            high=64,
        ),
        integer(
            "refresh", 12, "Maximum number of tokens committed before the next full round.", low=0, high=256
        ),
        choice("selector", "larger end", "How a block is scored from the extremes of its keys.", SELECTORS),
        switch("strict", False, "Commit only what a full round has checked: lossless."),
        *GREEDY,
    ),
    papers=("specpv",),
    badge=lambda parameters: (
        badge(*specpv_pair(parameters), parameters["temperature"]) if parameters["strict"] else "relaxed"
    ),
    further_part=refreshing,
)
def specpv(lane: Lane) -> Iterator[None]:
    """Most rounds verify with part of a long text's keys; from time to time a round sees all of them.

    1. The keys of the text are grouped into blocks of block_size positions. While the text is short, all are
       seen.
    2. A full round sees everything. Its queries then select a part, separately for each head of each layer:
       the first blocks, the last ones, and the retrieved_blocks in between with the best score, which is the
       larger of `q kmax` and `q kmin`, kmax and kmin being the extremes of a block's keys; "bound" is Quest's
       score.
    3. Partial rounds check the draft with that part and with everything written since.
    4. Once more than refresh tokens were committed this way, a full round computes their keys again and
       selects the part again. The committed tokens stay: the method is lossy, and the lane says how much.

    With strict, the output of partial rounds is itself a draft: the full round tests it, with the partial
    distribution as q, and removes what fails. Then the text has the target's distribution.
    Log-probabilities of the text are those of the round that checked it.
    """
    drafter, verifier = specpv_pair(lane.parameters)
    lane.scorers["target"] = target = Partial(lane)
    for _ in rounds(lane, drafter, verifier):
        if not lane.more:
            target.look_back()
        yield
