"""The loop of all draft-and-verify methods; one round is one step.

With a chain of K drafted tokens and token rejection, a round is the algorithm of Leviathan et al. (2023) and
Chen et al. (2023), u being uniform between 0 and 1:

    draft x_1 ... x_K, each from the draft's q after the ones before it
    one target forward gives p after every prefix
    accept x_k as long as u q(x_k) < p(x_k)
    at the first that fails: draw the token from norm(max(p - q, 0)) in its place, and drop the rest
    if none fails: draw one more token from the last p

Which drafter proposes and which verifier decides is the strategy's choice: the loop knows parts by their
interface alone, and records the whole story of a round in events.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator

import torch

from decoders.chooser import invert
from decoders.constraints.constraint import FORBIDDEN
from decoders.explain.verdicts import sentence
from decoders.lane import Lane
from decoders.logits.distributions import one_hot, probabilities
from decoders.speculative.interfaces import (
    Draft,
    Drafter,
    Seen,
    Verification,
    Verifier,
    VerifierInput,
)
from decoders.speculative.measured_divergence import Divergence
from decoders.trace.reasons import Code, Reason


def rounds(lane: Lane, drafter: Drafter, verifier: Verifier) -> Iterator[None]:
    """Runs rounds until the text is finished.

    Each drafts a tree below the newest token, scores it and that token with one target forward, commits the
    path that the verifier accepts and one token of the target's own (none after an end-of-text token), and
    drops the rest. For a relaxed verifier it records how far from the target's distribution it drew.
    """
    divergence, to_drafter = Divergence(verifier), drafter.reads_states
    hidden = to_drafter or verifier.reads_states
    while lane.more:
        draft = drafter.propose(lane)
        prune_forbidden(lane, draft)
        nodes = [
            n for n in (draft.root, *draft.nodes) if n == draft.root or lane.tree.tokens[n] not in lane.eos
        ]
        seen = [*nodes, *draft.beside]
        kind = "verify" if draft.nodes else "decode"
        logits = lane.score(seen, kind, hidden=hidden)  # [N + beside, V]
        states = states_of(lane, seen) if to_drafter else ()  # before a commit forgets them
        draft.record(lane)  # not before: recording is no part of drafting, and the timeline shows what is
        verification = judged(lane, draft, verifier, nodes, logits[: len(nodes)], divergence)
        kept = set(verification.path)
        lane.drop([n for n in draft.nodes if n not in kept] + draft.beside)
        drafter.observe(lane, draft, verification, Seen(seen, logits, *states))
        yield


def states_of(lane: Lane, nodes: list[int]) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The target's states [N, d] at nodes that it has just scored, and, if its scorer's `taps` are set, the
    residual streams [L + 1, N, d].
    """
    scorer = lane.scorers["target"]
    streams = torch.stack([scorer.streams(n) for n in nodes], 1) if scorer.taps else None
    return scorer.hidden_rows(nodes), streams


def prune_forbidden(lane: Lane, draft: Draft) -> None:
    """Removes drafted tokens that the lane's constraint forbids, and everything below them, before the target
    sees them. It removes deterministic guesses only: a drawn token must be tested, or the text after it would
    not have the target's distribution. Draft models are masked themselves, so they draw no forbidden token.
    """
    if lane.constraint is None:
        return
    parents, lost = lane.tree.parents, set()
    for node in draft.nodes:
        fixed = parents[node] not in draft.q and parents[node] not in draft.draws
        if parents[node] in lost or (fixed and lane.constraint.at(node) is FORBIDDEN):
            lost.add(node)
    if lost:
        draft.prune(lane, [n for n in draft.nodes if n in lost], "The constraint forbids it.")


def judged(
    lane: Lane,
    draft: Draft,
    verifier: Verifier,
    nodes: list[int],
    logits: torch.Tensor,
    divergence: Divergence | None = None,
) -> Verification:
    """Verifies `draft` with the target's logits [N, V] after `nodes`, records the verification and commits
    its result. Drafted nodes whose parents are not among `nodes` are not tested.
    """
    scores = lane.process(logits, nodes)
    p = dict(zip(nodes, distributions(lane, scores), strict=True))
    position = lane.tree.depths[draft.root]
    probs = dict(zip(nodes, probabilities(scores), strict=True)) if verifier.relaxed_for else {}
    states = {n: lane.scorers["target"].hidden(n) for n in nodes[1:]} if verifier.reads_states else {}
    inputs = VerifierInput(draft, lane.tree.tokens, p, lane.chooser, position, probs, states)
    verification = verifier.verify(inputs)

    row = {n: i for i, n in enumerate(nodes)}
    visited = [n for n in (draft.root, *verification.path, *verification.cut) if n in row]
    at = [row[n] for n in visited]
    logprobs = lane.distribution(visited, logits[at])  # [visited, V], before any processor
    if scores is not logits:
        lane.distribution(visited, scores[at], view="processed")
    raw = dict(zip(visited, logprobs, strict=True))
    committed = record_verdicts(lane, draft, verification, raw)
    if divergence is not None:
        divergence.record(lane, inputs, verification)
    parents = [draft.root, *committed]
    logprobs_of_committed = [
        float(raw[parent][lane.tree.tokens[n]]) for parent, n in zip(parents, committed, strict=False)
    ]
    lane.commit(committed, logprobs_of_committed)
    return verification


def distributions(lane: Lane, scores: torch.Tensor) -> torch.Tensor:
    """The distributions [N, V] (float64) of processed logits [N, V]: one-hot at temperature 0."""
    return one_hot(scores) if lane.parameters["temperature"] == 0.0 else probabilities(scores)


def drawn_again(lane: Lane, u: float | None) -> Callable[[torch.Tensor, int], int]:
    """A function that draws a token with the same u from other logits [1, V] after a node; the most likely
    one if u is None.
    """

    def redo(logits: torch.Tensor, node: int) -> int:
        p = distributions(lane, lane.process(logits, [node]))[0]
        return int(p.argmax()) if u is None else invert(p, u)

    return redo


def record_verdicts(
    lane: Lane, draft: Draft, verification: Verification, raw: dict[int, torch.Tensor]
) -> list[int]:
    """Records the verdicts in the order of the tests, then those of the nodes never reached, then that of the
    target's own token. Returns the nodes to commit.

    `raw`: log-probabilities [V] of the target at the visited nodes; they give p and q where the test compared
    none.
    """
    parents, tokens = lane.tree.parents, lane.tree.tokens
    tried, last_test = Counter(), {test.node: test for test in verification.tests}
    for test in verification.tests:
        parent = parents[test.node]
        tried[parent] += 1
        if test.left is not None:
            lane.distribution([parent], test.left.log()[None], "residual", f"after test {tried[parent]}")
        if test is not last_test[test.node]:
            continue  # the token was drawn again, and tested again
        p = math.exp(raw[parent][tokens[test.node]]) if test.p is None else test.p
        q = draft.probability.get(test.node) if test.q is None else test.q
        passed = "pruned" if test.node in verification.cut else "accepted"
        status = passed if test.accepted else "rejected"
        why = tuple(completed(reason, raw.get(parent), p) for reason in test.reasons)
        lane.verdict(
            test.node, status, why=why, code=test.code, p=p, q=q, u=test.u, acceptance=test.threshold
        )
        if test.watched:
            name, value, limit = test.watched
            lane.record_measure(test.node, name, value, limit=limit)
    tested, on_path = {t.node for t in verification.tests}, {draft.root, *verification.path}
    for node in draft.nodes:
        if node not in tested:
            code = Code.SIBLING_ACCEPTED if parents[node] in on_path else Code.PARENT_NOT_ACCEPTED
            lane.verdict(node, "never reached", q=draft.probability.get(node), why=(Reason(code),))
    if verification.note:
        lane.note(sentence(verification.note))
    if verification.token is None:
        return verification.path
    last = verification.path[-1] if verification.path else draft.root
    own = lane.propose(last, verification.token, float(raw[last][verification.token]))
    if draft.nodes:
        status = "resampled" if draft.children.get(last) else "bonus"
        p = math.exp(raw[last][verification.token]) if verification.p is None else verification.p
        why = (verification.reason,) if verification.reason else ()
        lane.verdict(own, status, why=why, code=verification.code, p=p, u=verification.u)
    return [*verification.path, own]


def completed(reason: Reason, raw: torch.Tensor | None, p: float) -> Reason:
    """A verifier's reason, completed with numbers for the trace: where another token is preferred, the
    probability of that token, and p, the probability of the tested one. raw: the target's log-probabilities
    there [V]; None at a node that was not visited, where no other token is preferred.
    """
    if reason.code is not Code.OTHER_PREFERRED:
        return reason
    preferred = reason.numbers["preferred"]
    return Reason(reason.code, {"preferred": preferred, "p_preferred": math.exp(raw[preferred]), "p": p})
