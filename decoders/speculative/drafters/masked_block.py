"""A drafter that fills masks after the text in one forward: none of its guesses has seen the others."""

from dataclasses import dataclass

import torch

from decoders.lane import Lane
from decoders.speculative.draft_verify_loop import distributions
from decoders.speculative.interfaces import FIXED, SAMPLED, Draft, Drafter, Seen, Verification

MISSING = "No masked-diffusion model with the tokens of {!r} comes with the project: the target writes alone."


@dataclass
class Guess:
    """A token, the processed scores [V] that it was taken from, and, if it was drawn, its q [V]."""

    token: int
    scores: torch.Tensor
    q: torch.Tensor | None


def block(count: int, draws: bool = False, reuse_tail: bool = False) -> Drafter:
    """A drafter that fills `count` masks after the text in one forward, up to an end of text: each with its
    most likely token or, with `draws`, with one drawn from its q.

    reuse_tail: the guesses after a rejected one are the next round's draft, with the q they were drawn from;
    the drafter runs again once they are used up.
    """
    fill, tail = SAMPLED if draws else FIXED, []

    def propose(lane: Lane) -> Draft:
        draft, node = Draft(lane.tip), lane.tip
        if tail:
            for guess in tail:
                node = add(lane, draft, node, guess)
            return draft
        for place, row in enumerate(masks_behind(lane, min(count, lane.left - 1))):
            scores = lane.process(row[None], [node])
            q = distributions(lane, scores)[0] if draws else None
            root = lane.tree.depths[draft.root]
            token = int(
                scores[0].argmax() if q is None else lane.chooser.categorical(q, ("draft", root, place)).value
            )
            node = add(lane, draft, node, Guess(token, scores[0], q))
            if token in lane.eos:
                break
        return draft

    def add(lane: Lane, draft: Draft, parent: int, guess: Guess) -> int:
        draft.scores[parent] = guess.scores
        if guess.q is not None:
            draft.q[parent] = guess.q
        logprob = float(guess.scores.log_softmax(-1)[guess.token])
        return draft.propose(lane, parent, guess.token, logprob, source="draft", fill=fill)

    def keep_tail(lane: Lane, draft: Draft, verification: Verification, seen: Seen) -> None:
        parents, tokens = lane.tree.parents, lane.tree.tokens
        unread = draft.nodes[
            len(verification.path) + 1 :
        ]  # a chain: the nodes stand in the order of the text
        tail[:] = [Guess(tokens[n], draft.scores[parents[n]], draft.q.get(parents[n])) for n in unread]

    says = "A masked-diffusion model fills all masks after the text in one forward."
    if reuse_tail:
        says += " The guesses after a rejected one are the next draft."
        return Drafter(propose, fill, observe=keep_tail, name="a block of masks", says=says)
    return Drafter(propose, fill, name="a block of masks", says=says)


def masks_behind(lane: Lane, count: int) -> torch.Tensor:
    """The masked model's logits [count, V] for the tokens after the text, in one forward; none without a
    model or a mask.
    """
    model = lane.models["target"].companion("diffusion")
    if model is None or count < 1:
        return torch.empty(0, lane.models["target"].engine.vocabulary)
    text, scorer = lane.tree.text(lane.tip), model.engine.attach(lane.tree)
    return lane.run_forward(lambda scorer: scorer.guess(text, count), "draft", "draft", scorer)


def note_if_missing(lane: Lane) -> None:
    """Notes that the target decodes without a draft, where no masked model comes with it."""
    if lane.models["target"].companion("diffusion") is None:
        lane.note(MISSING.format(lane.models["target"].name))
