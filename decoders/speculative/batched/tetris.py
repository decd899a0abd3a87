"""TETRIS: the target verifies those drafted tokens of a batch that are most likely to be accepted.

Wu et al. (2025), TETRIS: Optimal Draft Token Selection for Batch Speculative Decoding.
"""

from collections.abc import Iterator

from decoders.lane import Lane
from decoders.parameters import choice, integer
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.batched.shared_batch import (
    PROMPTS,
    Text,
    batch_rounds,
    chains,
    draft_chains,
    too_long,
    too_many,
)
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import simplest
from decoders.speculative.interfaces import Draft, Pair
from decoders.trace.scores import ScoreName

DRAWN, LIKELIEST = "drawn tokens", "most likely tokens"
REASON = "Other guesses of the batch promised more: this one is not submitted."


def allocate(scores: list[list[float]], capacity: int) -> list[int]:
    """How many guesses each text may submit: the `capacity` largest scores of all, shallower ones first on
    ties. Scores fall along a row, so the chosen guesses of a row are a prefix.
    """
    ranked = sorted((-score, j, i) for i, row in enumerate(scores) for j, score in enumerate(row))
    lengths = [0] * len(scores)
    for _, _, i in ranked[:capacity]:
        lengths[i] += 1
    return lengths


def scores_of(text: Text, draft: Draft, by: str) -> list[float]:
    """For each guess of a chain the logarithm of the draft's probability of all tokens up to it. Unless `by`
    is DRAWN, the guess itself counts as its position's top-1, which is known before it is drawn.
    """
    scores, total = [], 0.0
    for node in draft.nodes:
        logprobs = draft.scores[text.tree.parents[node]].log_softmax(-1)
        own = float(logprobs[text.tree.tokens[node]])
        scores.append(total + (own if by == DRAWN else float(logprobs.max())))
        total += own
    return scores


def tetris_pair(parameters: dict) -> Pair:
    """Chains cut to a common budget; greedy match at temperature 0, else token rejection."""
    says = (
        "Of the guesses of all texts, those on the paths that the draft considers most likely are submitted."
    )
    drafter = chains(parameters["temperature"], says, sees_token=parameters["scores"] == DRAWN)
    return simplest(drafter, parameters["temperature"])


@draft_and_verify(
    tetris_pair,
    name="tetris",
    title="TETRIS",
    parameters=(
        PROMPTS,
        integer("num_assistant_tokens", 3, "Guesses per text that the target can verify.", low=1, high=16),
        integer("extra_tokens", 3, "Additional guesses that are drafted per text.", low=0, high=16),
        choice("scores", DRAWN, "How guesses are ranked.", (DRAWN, LIKELIEST)),
        *GREEDY,
    ),
    papers=("tetris",),
    together=too_many,
    suits=too_long,
    view="batch",
)
def tetris(lane: Lane) -> Iterator[None]:
    """Each text of a batch drafts a few tokens too many; the target verifies the most promising ones.

    1. Every text gets num_assistant_tokens + extra_tokens guesses.
    2. The score of a guess is the draft's log-probability of its whole path: `s(j) = log q(x1) + ... + log
       q(xj)`.
    3. Of all B texts together the `num_assistant_tokens B` best guesses are submitted: a confident text may
       use slots that an uncertain one leaves free. A single text gets num_assistant_tokens.
    4. One target forward checks them; every text keeps what it accepts and gets one token of the target's.

    If guesses are ranked by the tokens that were drawn, whether a guess is submitted depends on its token,
    and sampled text is no longer exact. Ranked by the most likely token at each position (our variant), it
    stays exact. At temperature 0 both are exact. The lane's prompt is the first text.
    """
    _, verifier = tetris_pair(lane.parameters)
    base, extra = lane.parameters["num_assistant_tokens"], lane.parameters["extra_tokens"]

    def propose(texts: list[Text]) -> list[Draft]:
        if len(texts) == 1:
            return draft_chains(texts, [base])
        drafts = draft_chains(texts, [base + extra] * len(texts))
        scores = [scores_of(*pair, lane.parameters["scores"]) for pair in zip(texts, drafts, strict=True)]
        lane.record_measure(lane.tip, ScoreName.BUDGET, base * len(texts))
        lengths = allocate(scores, base * len(texts))
        for text, draft, length in zip(texts, drafts, lengths, strict=True):
            draft.prune(text, draft.nodes[length:], REASON)
        return drafts

    yield from batch_rounds(lane, propose, verifier)
