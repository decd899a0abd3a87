"""PPD: trained prompt tokens on the nodes of a drafted tree let the forward that verifies it also draft the
next tree.

Chen et al. (2024), Hardware-Aware Parallel Prompt Decoding for Memory-Efficient Acceleration of LLM
Inference. The embeddings are heads/path_independent/prompt_tokens.py.
"""

from decoders.engine.capabilities import Capability
from decoders.heads.path_independent.prompt_tokens import PPD
from decoders.parameters import integer
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import speculative
from decoders.speculative.draft_heads.medusa_like import TYPICAL_PARAMETERS, verified
from decoders.speculative.draft_heads.own_forward import plan_of, slot_parameters
from decoders.speculative.drafters.own_slots import own_slots
from decoders.speculative.drafters.trained_head import head_of_kind, needs_head
from decoders.speculative.interfaces import Pair

KIND = PPD.kind


@speculative(
    name="ppd",
    title="Parallel prompt decoding",
    parameters=(
        integer("num_prompt_tokens", 3, "Prompt tokens after the newest token (n).", low=0, high=16),
        *slot_parameters(rows=24),
        *TYPICAL_PARAMETERS,
        *GREEDY,
    ),
    papers=("hardware-aware-parallel-prompt-decoding-for-memory",),
    suits=needs_head(KIND, "prompt tokens of PPD"),
)
def ppd_pair(parameters: dict) -> Pair:
    """Trained prompt tokens after each drafted token guess what follows, in the forward that verifies it.

    1. Prompt token i after a token is an embedding that sees the text up to that token and the prompt tokens
       before it. It guesses the token i + 1 positions after that token, without knowing the one that the
       target chooses in between.
    2. A forward reads the newest token, a tree of guesses, and prompt tokens on all of them. The target's own
       choices decide which path is accepted; the prompt tokens on its last node hold the next guesses.
    3. Prompt tokens take up positions in the forward. The state d is how many were attached to that node, and
       the next tree can be that deep. There is one tree per state: its paths of ranks are those that are
       right most often, and the prompt tokens that are least likely to be needed are left out first, `P(last
       = v) (f_c - f_(c - 1))`. The newest token always carries all n.
    4. The states form a Markov chain; tokens per forward are `1 + sum pi_d f_d`, with pi its stationary
       distribution and f_d what state d drafts. The number of positions is the one with the most tokens per
       time, given what a position costs: row_cost, or the times measured on this machine.

    The trees follow from how often the guess of each rank was right when the prompt tokens were measured. At
    temperature 0 the text is greedy decoding's; above it the target draws, and follows the tree while it
    contains the token: exact, since no guess is drawn. The authors use Medusa's typical acceptance, which is
    an option here and is not lossless. They train three prompt tokens for models of seven billion parameters,
    in a variant with several virtual tokens each; here there is one each, on a model of six million, where
    they help far less.
    """
    drafter = own_slots(
        head_of_kind(KIND),
        plan_of(parameters, parameters["num_prompt_tokens"]),
        Capability.EMBEDDINGS,
        name="prompt tokens of the target",
        says="Trained embeddings after the last accepted token make the guesses, in the forward that "
        "accepted it.",
    )
    return verified(drafter, parameters)
