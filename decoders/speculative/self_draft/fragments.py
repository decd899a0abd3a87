"""Fragment-aligned speculation: heads guess tokens ahead, and rounds end where a syntactic fragment ends.

Xu et al. (2025), Speculative Decoding for Verilog: Speed and Quality, All in One. The heads are
heads/path_independent/fragments.py, or Medusa's; the model knows which ones fit a target.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from decoders.engine.capabilities import Capability
from decoders.lane import Lane
from decoders.parameters import choice, free_text, integers, switch
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import simplest_verifier
from decoders.speculative.draft_heads.medusa_like import TYPICAL_LIMITS
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.fixed_trees import widths
from decoders.speculative.drafters.sees import record_sees
from decoders.speculative.interfaces import FIXED, Draft, Drafter, Pair, Seen, Verification
from decoders.speculative.methods.typical_acceptance import typical
from decoders.speculative.verifiers.whole_fragments import whole_fragments

SAME, TYPICAL = "what the target writes", "what it finds likely"
MISSING = (
    "No heads come with the project for {!r}: the target writes alone. Choose llama-tiny-verilog or "
    "llama-tiny, or train heads: docs/heads.md."
)
PLAIN = "{!r} has no token {!r}: nothing is cut, and these are Medusa's rounds."


class Heads:
    """One lane's drafting: the target's state [d] from which its newest token was predicted, and the guesses
    of all heads there.
    """

    def __init__(self, children: list[int]):
        self.shape, self.state, self.shown = widths(children, 0.0), None, 0

    def propose(self, lane: Lane) -> Draft:
        """A tree of the heads' most likely tokens. Nothing in the first round, which reads the prompt."""
        draft, heads = Draft(lane.tip), heads_of(lane.models["target"])
        if self.state is None or heads is None:
            return draft
        with torch.inference_mode():
            guesses = heads.block(self.state).float()  # [K, V]
        top = lane.tree.depths[lane.tip]

        def guess(nodes: list[int]) -> torch.Tensor:
            scores = guesses[[lane.tree.depths[node] - top for node in nodes]]  # [N, V], equal in a level
            scores = lane.process(scores, nodes)
            draft.scores.update(zip(nodes, scores, strict=True))
            return scores

        self.shape.grow(lane, draft, guess, min(lane.left - 1, len(guesses)))
        self.shown = record_sees(lane, heads, draft, draft.root, self.shown)
        return draft

    def observe(self, lane: Lane, draft: Draft, verification: Verification, seen: Seen) -> None:
        """Keeps the state after the last accepted token, from which the target's own token comes too."""
        if verification.token is not None:
            self.state = lane.scorers["target"].hidden([draft.root, *verification.path][-1])


def heads_of(target) -> Any:
    """The heads that guess for a target: those trained on whole fragments, else Medusa's; None without."""
    return target.heads.get("fragments") or target.heads.get("medusa")


def mark_of(parameters: dict, target) -> int | None:
    """The token that ends a fragment, None if the model has no such token."""
    ids = target.cut(parameters["mark"]) if target.cut else []
    return ids[0] if len(ids) == 1 else None


def fragments_pair(parameters: dict, mark: int | None = -1) -> Pair:
    """A tree from the heads; greedy match or node sampling, or typical acceptance; cut to whole fragments
    unless the model has no `mark`.
    """
    temperature, heads = parameters["temperature"], Heads(parameters["widths"])
    drafter = Drafter(
        heads.propose,
        FIXED,
        observe=heads.observe,
        name="heads for later tokens",
        says="Each head guesses one position further ahead, all from the target's newest state.",
    )
    verifier = simplest_verifier(FIXED, temperature)
    if parameters["acceptance"] == TYPICAL:
        verifier = typical(parameters["epsilon"], parameters["delta"], temperature)
    verifier = replace(verifier, reads=(Capability.HIDDEN_STATES,))
    if parameters["whole"] and mark is not None:
        verifier = whole_fragments(verifier, mark, temperature == 0.0)
    return drafter, verifier


@draft_and_verify(
    fragments_pair,
    name="fragments",
    title="Whole fragments",
    parameters=(
        integers("widths", [1, 1, 1, 1], "Guesses below each node, per head.", low=1, high=16),
        switch("whole", True, "Cut accepted tokens after the last end of a fragment."),
        free_text("mark", "[FRAG]", "The token that ends a fragment."),
        choice(
            "acceptance",
            SAME,
            "Which guesses pass: only the target's own choice, or all that typical acceptance accepts.",
            (SAME, TYPICAL),
        ),
        *TYPICAL_LIMITS,
        *GREEDY,
    ),
    papers=("speculative-decoding-for-verilog",),
    view="fragments",
)
def fragments(lane: Lane) -> Iterator[None]:
    """Heads guess several tokens ahead, and each round ends where a syntactic fragment of the code ends.

    A fragment ends with a mark. `llama-tiny-verilog` was trained to write one after each keyword, identifier,
    number and operator; for a model without such a token, `mark` may be another one, such as a comma.

    1. From the target's newest state head k guesses the token k positions beyond the next one: the target
       has chosen the next one itself. All heads guess at once, without a forward of the target.
    2. One target forward reads the guesses. A guess passes if it is the target's own choice or, with typical
       acceptance, if `p(x) > min(epsilon, delta exp(-H))`.
    3. Integrity check: of the round's first token and the guesses that passed, everything after the last mark
       is cut. Without a mark everything stays.
    4. The target's own token follows, and with it the next round begins. In *Fragments* a mark is a diamond
       without a column.

    In training head k has a label only if there is a mark at its position or at that of a later head. With
    the target's own choice the text is the same as without drafting, cut or not: at a temperature above 0, a
    position that is decoded again uses the same random number. Typical acceptance, the paper's rule, is not
    lossless.

    The paper adapts CodeLlama-7B and CodeT5p to Verilog, with ten heads, fragments from a Verilog parser, and
    all weights trained together. Here `llama-tiny-verilog` writes modules of up to three statements, with
    marks placed by a regular expression, and four heads were trained on the frozen model with the paper's
    labels. `llama-tiny` has Medusa's heads, whose labels ignore fragments. How a round without a mark is
    treated is our reading.
    """
    target = lane.models["target"]
    mark = mark_of(lane.parameters, target)
    if heads_of(target) is None:
        lane.note(MISSING.format(target.name))
    elif mark is None and lane.parameters["whole"]:
        lane.note(PLAIN.format(target.name, lane.parameters["mark"]))
    drafter, verifier = fragments_pair(lane.parameters, mark)
    yield from rounds(lane, drafter, verifier)
