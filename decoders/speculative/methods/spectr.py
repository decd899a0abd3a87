"""SpecTr: several chains drawn independently, tested with K-SEQ, a simple rule close to optimal transport."""

from collections.abc import Iterator

from decoders.lane import Lane
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.draft_model import DRAFT_MODEL
from decoders.speculative.drafters.fixed_trees import widths
from decoders.speculative.interfaces import TIMED_TREE_VIEWS, Drafter, Verifier, drafted
from decoders.speculative.verifiers.greedy_match import GREEDY_MATCH
from decoders.speculative.verifiers.kseq import KSEQ
from decoders.strategy import Parameter


def spectr_pair(parameters: dict) -> tuple[Drafter, Verifier, float]:
    """Chains and K-SEQ; at temperature 0, where all chains are the same, one chain and greedy match."""
    temperature, length = parameters["temperature"], parameters["num_assistant_tokens"]
    if temperature == 0.0:
        return drafted(DRAFT_MODEL, widths([1] * length, temperature)), GREEDY_MATCH, temperature
    shape = widths([parameters["num_chains"], *[1] * (length - 1)], temperature, replacement=True)
    return drafted(DRAFT_MODEL, shape), KSEQ, temperature


@draft_and_verify(
    spectr_pair,
    name="spectr",
    title="SpecTr",
    needs=("target", "draft"),
    parameters=(
        Parameter("num_chains", "int", 4, "Chains that the draft writes per round.", low=1, high=16),
        Parameter("num_assistant_tokens", "int", 3, "Tokens of each chain.", low=1, high=32),
        *GREEDY,
    ),
    papers=("spectr",),
    views=TIMED_TREE_VIEWS,
)
def spectr(lane: Lane) -> Iterator[None]:
    """Drafts several independent chains; an optimal-transport test keeps as many tokens as possible.

    1. The draft writes num_chains chains, drawn independently; equal prefixes share their nodes.
    2. One target forward scores them all.
    3. At each position the k tokens of the chains that are still valid are tried in turn: x passes with
       `min(1, p(x) / (rho q(x)))`, where rho, from 1 to k, is the smallest number for which the rest of p
       can still be supplied afterwards.
    4. If none passes, the token is drawn from the residual of p.

    Choosing one of several draws so that the distribution stays p is a problem of optimal transport; this
    rule reaches at least 1 - 1/e of the best plan, and a note says how close it comes at each round's first
    position. At temperature 0 all chains are the same.
    """
    drafter, verifier, _ = spectr_pair(lane.parameters)
    yield from rounds(lane, drafter, verifier)
