"""PaSS: look-ahead embeddings make the target draft for itself, in one extra pass whose first token is valid.

Monea et al. (2023), PaSS: Parallel Speculative Sampling. The embeddings are
heads/path_independent/prompt_tokens.py.
"""

import torch

from decoders.engine.capabilities import Capability
from decoders.heads.path_independent.prompt_tokens import PaSS
from decoders.lane import Lane
from decoders.parameters import integer
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import speculative
from decoders.speculative.default_verifier import simplest
from decoders.speculative.draft_verify_loop import distributions
from decoders.speculative.drafters.own_slots import attach_slots, forget
from decoders.speculative.drafters.sees import record_sees
from decoders.speculative.drafters.trained_head import head_of_kind, needs_head
from decoders.speculative.interfaces import FIXED, SAMPLED, Draft, Drafter, Pair

KIND = PaSS.kind


def expected_tokens(alpha: float, count: int) -> float:
    """Tokens per round, two passes, if each look-ahead token is accepted with probability alpha: the valid
    one, those accepted in a row of `count`, and the correction or bonus.
    """
    return 2.0 + sum(alpha**i for i in range(1, count + 1))


def truncated(scores: torch.Tensor, top_k: int) -> torch.Tensor:
    """Scores [N, V] with all but the `top_k` largest of each row at -inf; 0 keeps all."""
    if not top_k or top_k >= scores.shape[-1]:
        return scores
    best = scores.topk(top_k)
    return torch.full_like(scores, -torch.inf).scatter(-1, best.indices, best.values)


def looking_ahead(count: int, top_k: int, temperature: float) -> Drafter:
    """A chain of the target's own next token and of what `count` look-ahead slots after the newest token
    guess, each drawn without regard to the others.
    """
    fill, shown = FIXED if temperature == 0.0 else SAMPLED, 0

    def propose(lane: Lane) -> Draft:
        nonlocal shown
        draft, module = Draft(lane.tip), head_of_kind(KIND)(lane.models["target"])
        ahead = 0 if module is None else min(count, module.depth, lane.left - 2)
        if ahead < 1:
            return draft
        slots = attach_slots(lane, module, lane.tip, ahead)
        logits = lane.score([lane.tip, *slots])  # [1 + L, V]: pass A
        forget(lane, slots)
        lane.drop(slots)
        node, root = draft.root, lane.tree.depths[draft.root]
        for place in range(1 + ahead):
            scores = lane.process(logits[place : place + 1], [node])
            scores = truncated(scores, top_k) if place and temperature else scores
            draft.scores[node] = scores[0]
            if temperature:
                q = draft.q[node] = distributions(lane, scores)[0]
                token, logprob = lane.chooser.categorical(q, ("draft", root, place)).value, None
                logprob = float(q[token].log())
            else:
                token = int(scores[0].argmax())
                logprob = float(scores[0].log_softmax(-1)[token])
            source = "draft" if place else "target"  # the first is drawn from p itself
            node = draft.propose(lane, node, token, logprob, source=source, fill=fill)
            if token in lane.eos:
                break
        shown = record_sees(lane, module, draft, draft.nodes[0], shown)  # the first is the target's own
        return draft

    return Drafter(
        propose,
        fill,
        name="look-ahead slots of the target",
        says="One pass gives the next token and, through trained embeddings, guesses of the tokens after it.",
        reads=(Capability.EMBEDDINGS,),
    )


@speculative(
    name="pass",
    title="PaSS",
    parameters=(
        integer(
            "num_lookahead_tokens",
            4,
            "Number of look-ahead embeddings (L); 0 is plain decoding.",
            low=0,
            high=16,
        ),
        integer(
            "draft_top_k",
            10,
            "Above temperature 0 a guess is drawn from this many of the most likely tokens; 0 draws from "
            "all.",
            low=0,
            high=1000,
        ),
        *GREEDY,
    ),
    papers=("pass",),
    # its drafts are chains
    suits=needs_head(KIND, "look-ahead embeddings of PaSS"),
)
def pass_pair(parameters: dict) -> Pair:
    """Trained embeddings after the newest token make the target guess several tokens in one pass.

    1. Pass A reads the newest token and L look-ahead embeddings after it. The token gives an ordinary
       next-token distribution p: what is drawn from it is valid, whatever follows. Look-ahead i gives q_i,
       the distribution of the token i positions later; the guesses are drawn independently.
    2. The keys and values of the look-ahead slots are dropped.
    3. Pass B reads the valid token and the L guesses. From left to right guess x passes if `u q(x) < p(x)`;
       at the first that fails, the token comes from `norm(max(p - q, 0))`; if none fails, one more from p.

    A round of two passes commits at least two tokens, so it never takes more passes than plain decoding. If
    each guess passes with probability .5 and L is 4, it commits 2.94 tokens, 1.47 per pass. The valid token
    is the first of the draft, with q = p: it always passes, and counts as proposed and accepted.

    Only the embeddings are trained: L vectors, by the cross-entropy of texts after random prefixes (how these
    are drawn is our reading). They help a model of six million parameters far less than the paper's of seven
    billion, as the card of its heads says. Here pass A is a separate forward and shares nothing with pass B,
    so that several texts are decoded in the same way.
    """
    temperature = parameters["temperature"]
    count, top_k = parameters["num_lookahead_tokens"], parameters["draft_top_k"]
    return simplest(looking_ahead(count, top_k, temperature), temperature)
