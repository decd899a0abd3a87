"""RSD-S: whole paths are drawn without replacement, by a beam search whose scores are perturbed.

Recursive Speculative Decoding (Jeon et al. 2024), section 3.2, with the stochastic beam search of Kool et al.
(2019). phi is the log-probability of a path under the draft, G its perturbed value.

Traversal verification cannot be used: it looks below a node before it tests the node's later siblings, and
from three nodes per level on, how many children a node keeps depends on which tokens those siblings are.
"""

from decoders.lane import Lane
from decoders.logits.gumbel import perturbed
from decoders.parameters import integer
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import speculative
from decoders.speculative.default_verifier import simplest
from decoders.speculative.draft_verify_loop import distributions
from decoders.speculative.drafters.draft_model import DRAFT_MODEL
from decoders.speculative.drafters.fixed_trees import Guess, open_ends
from decoders.speculative.interfaces import FIXED, WITHOUT_REPLACEMENT, Draft, Pair, Shape, drafted
from decoders.trace.scores import ScoreName


def stochastic_beam(width: int, depth: int, temperature: float) -> Shape:
    """A tree of `depth` levels, each with the at most `width` nodes of the largest perturbed values, siblings
    in the order of their values. At temperature 0 nothing is perturbed: a plain beam.
    """
    fill = FIXED if temperature == 0.0 else WITHOUT_REPLACEMENT

    def grow(lane: Lane, draft: Draft, guess: Guess, max_levels: int) -> None:
        phi, value, level = {lane.tip: 0.0}, {lane.tip: 0.0}, [lane.tip]
        root = lane.tree.depths[lane.tip]
        for _ in range(min(depth, max_levels)):
            if not level:
                break
            scores = guess(level)
            # [level, V]
            probs = scores.double().softmax(-1) if fill == FIXED else distributions(lane, scores)
            at, candidates = lane.tree.depths[level[0]] + 1, []
            for rank, (node, q) in enumerate(zip(level, probs, strict=True)):
                logs = phi[node] + q.cpu().log()
                values = logs
                if fill != FIXED:
                    draft.q[node] = q
                    values = perturbed(lane.chooser, value[node], logs, ("draft", root, at, rank))
                best = values.topk(min(width, len(q)))
                candidates += [
                    (total, float(logs[token]), node, token)
                    for total, token in zip(best.values.tolist(), best.indices.tolist(), strict=True)
                    if q[token] > 0
                ]
            born = []
            for total, path, parent, token in sorted(candidates, reverse=True)[:width]:
                node = draft.propose(lane, parent, token, path - phi[parent], source="draft", fill=fill)
                phi[node], value[node] = path, total
                lane.record_rank(
                    node, ScoreName.PERTURBED_VALUE if fill != FIXED else ScoreName.PATH, total, path=path
                )
                born.append(node)
            level = open_ends(lane, born)

    return Shape(
        grow,
        fill,
        "stochastic beam",
        f"It draws {width} paths, none of them twice, and drops unlikely prefixes as it goes.",
    )


@speculative(
    name="rsd_s",
    title="RSD-S (stochastic beam)",
    parameters=(
        integer("beam_width", 4, "Maximum number of nodes on each level of the draft.", low=1, high=16),
        integer("num_assistant_tokens", 4, "Levels of the draft.", low=1, high=32),
        *GREEDY,
    ),
    papers=("recursive-speculative-decoding",),
)
def rsd_s_pair(parameters: dict) -> Pair:
    """The draft tree is a stochastic beam: paths sampled without replacement.

    1. Each path has the log-probability that the draft gives it, plus noise of its own (Gumbel): the paths
       with the largest sums are a draw without replacement.
    2. Level by level the beam_width best stay. The noise of a node's children is drawn so that the largest
       sum among them is the node's own, which keeps the levels consistent.
    3. One target forward scores the tree; siblings are tested in the order of their sums, each against the
       residual of the earlier ones.

    How many children a node has depends on the noise, not on which tokens they are, so the text keeps exactly
    the target's distribution.
    """
    temperature = parameters["temperature"]
    shape = stochastic_beam(parameters["beam_width"], parameters["num_assistant_tokens"], temperature)
    return simplest(drafted(DRAFT_MODEL, shape), temperature)
