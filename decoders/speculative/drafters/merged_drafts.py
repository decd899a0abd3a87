"""Drafter with several draft models: each grows a tree of its own, and the trees are merged where they agree.

SpecInfer (Miao et al. 2023), "merge-based speculative inference". With one draft model it is the tree of
`fixed_trees.widths`, drawn with replacement.
"""

from collections import Counter

from decoders.lane import Lane
from decoders.roles import DRAFT_ROLES
from decoders.speculative.draft_verify_loop import distributions
from decoders.speculative.drafters import draft_model
from decoders.speculative.drafters.fixed_trees import SAYS, likeliest, open_ends, repeated
from decoders.speculative.interfaces import FIXED, WITH_REPLACEMENT, Draft, Drafter


def merged_drafts(expansion: list[int], temperature: float) -> Drafter:
    """The tree that all draft models of a lane grow together.

    Below each node that a model has drafted at depth d, it draws expansion[d] tokens, as often as it has
    drawn the node; at temperature 0 it takes the most likely ones. Each draw keeps its model's distribution
    for the verifier.
    """
    fill = FIXED if temperature == 0.0 else WITH_REPLACEMENT

    def propose(lane: Lane) -> Draft:
        draft = Draft(lane.tip)
        levels = {role: Counter([lane.tip]) for role in lane.models if role in DRAFT_ROLES}
        for count in expansion[: lane.left - 1]:
            for role, level in levels.items():
                levels[role] = below(lane, draft, role, level, count)
        return draft

    def below(lane: Lane, draft: Draft, role: str, level: Counter, count: int) -> Counter:
        """What the model `role` drafts below its nodes of a level: node -> how often it drew it."""
        nodes = open_ends(lane, list(level))
        if not nodes:
            return Counter()
        scores = draft_model.scores(lane, nodes, role=role)  # [nodes, V]
        if role == "draft":
            draft.scores.update(zip(nodes, scores, strict=True))
        else:
            lane.distribution(nodes, scores, view="draft", level=role)
        if fill == FIXED:
            return Counter(likeliest(lane, draft, nodes, scores, [count] * len(nodes), role))
        return repeated(
            lane, draft, nodes, distributions(lane, scores), [count * level[n] for n in nodes], role
        )

    says = f"Each draft model drafts {SAYS[fill]}; equal tokens of two models share one node."
    return Drafter(propose, fill, name="merged trees of draft models", says=says, roles=("draft",))
