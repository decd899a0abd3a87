"""SpecTr: several chains drawn independently, tested with K-SEQ, a simple rule close to optimal transport."""

from decoders.parameters import integer
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import speculative
from decoders.speculative.drafters.draft_model import DRAFT_MODEL
from decoders.speculative.drafters.fixed_trees import widths
from decoders.speculative.interfaces import Pair, drafted
from decoders.speculative.verifiers.greedy_match import GREEDY_MATCH
from decoders.speculative.verifiers.kseq import KSEQ


@speculative(
    name="spectr",
    title="SpecTr",
    parameters=(
        integer("num_chains", 4, "Chains that the draft writes per round.", low=1, high=16),
        integer("num_assistant_tokens", 3, "Tokens of each chain.", low=1, high=32),
        *GREEDY,
    ),
    papers=("spectr",),
)
def spectr_pair(parameters: dict) -> Pair:
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
    temperature, length = parameters["temperature"], parameters["num_assistant_tokens"]
    if temperature == 0.0:
        return drafted(DRAFT_MODEL, widths([1] * length, temperature)), GREEDY_MATCH
    shape = widths([parameters["num_chains"], *[1] * (length - 1)], temperature, replacement=True)
    return drafted(DRAFT_MODEL, shape), KSEQ
