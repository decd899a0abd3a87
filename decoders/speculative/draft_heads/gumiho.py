"""Gumiho: the first two drafted tokens come from a serial network, the later ones from parallel networks.

Li et al. (2025), Gumiho. The module is heads/feature_drafters/gumiho.py.
"""

from collections import Counter

from decoders.heads.feature_drafters.gumiho import SERIAL
from decoders.lane import Lane
from decoders.logits.distributions import MIN_LOGPROB
from decoders.parameters import integer
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import speculative
from decoders.speculative.default_verifier import simplest
from decoders.speculative.draft_heads.drift import with_drift
from decoders.speculative.drafters.dynamic_trees import best_children, keep
from decoders.speculative.drafters.fixed_trees import Guess, open_ends
from decoders.speculative.drafters.trained_head import head_of_kind, needs_head
from decoders.speculative.interfaces import FIXED, Draft, Pair, Shape

SAYS = "A serial network of two layers guesses two tokens, and parallel networks the ones after them."
SERIALLY, IN_PARALLEL, BORROWED = "serial", "parallel", "borrowed"


def serial_then_parallel(serial: int, parallel: int, nodes: int, borrowed: int) -> Shape:
    """Section 3.3: each level keeps its best paths, `serial` of them on the first two levels and `parallel`
    on the later ones. The `nodes` best nodes of all levels are the tree; then paths that end early borrow up
    to `borrowed` nodes. Nothing is drawn.
    """

    def grow(lane: Lane, draft: Draft, guess: Guess, max_levels: int) -> None:
        value, level = {lane.tip: 0.0}, [lane.tip]  # values are logarithms
        for depth in range(1, max_levels + 1):
            if not level:
                break
            source = SERIALLY if depth <= SERIAL else IN_PARALLEL
            count, born = serial if depth <= SERIAL else parallel, []
            for total, parent, token in best_children(level, guess(level), count, value):
                logprob = total - value[parent]
                born.append(draft.propose(lane, parent, token, logprob, source=source, fill=FIXED))
                value[born[-1]] = total
            level = open_ends(lane, born)
        keep(lane, draft, value, nodes)
        borrow_tails(lane, draft, guess, borrowed)

    return Shape(
        grow,
        FIXED,
        "tree of serial and parallel levels",
        f"Of all paths the best {nodes} nodes are kept; paths that end early borrow tails of longer ones.",
    )


def borrow_tails(lane: Lane, draft: Draft, guess: Guess, count: int) -> None:
    """Full tree attention, as fresh nodes: a path that ends early continues with the tokens that most paths
    have at the depths after it, since the parallel networks do not need the tokens between. A borrowed node
    is a new node with its own ancestors; at most `count` are added, shorter paths first.
    """
    tree, root = lane.tree, lane.tree.depths[draft.root]
    depth = {node: tree.depths[node] - root for node in draft.nodes}
    if not depth:
        return
    through = Counter()  # node -> how many paths of the tree go through it
    leaves = [node for node in draft.nodes if not draft.children.get(node)]
    for leaf in leaves:
        while leaf != draft.root:
            through[leaf] += 1
            leaf = tree.parents[leaf]
    busiest = {}  # depth -> the node that most paths go through there, the first on ties
    for node in draft.nodes:
        at = depth[node]
        if at not in busiest or through[node] > through[busiest[at]]:
            busiest[at] = node
    deepest = max(depth.values())
    for leaf in open_ends(lane, sorted(leaves, key=depth.__getitem__)):
        if not SERIAL <= depth[leaf] < deepest:
            continue
        for at in range(depth[leaf] + 1, deepest + 1):
            if not count:
                return
            token = tree.tokens[busiest[at]]
            known = draft.scores.get(leaf)  # scored already, if its own children did not fit into the tree
            scores = guess([leaf])[0] if known is None else known
            logprob = max(float(scores.log_softmax(-1)[token]), MIN_LOGPROB)
            leaf = draft.propose(lane, leaf, token, logprob, source=BORROWED, fill=FIXED)
            lane.depend(busiest[at], leaf, 1.0, BORROWED)
            count -= 1
            if token in lane.eos:
                break


@speculative(
    name="gumiho",
    title="Gumiho",
    parameters=(
        integer("serial_width", 6, "Best paths kept on each of the first two levels.", low=1, high=32),
        integer("parallel_width", 12, "Best paths kept on each later level.", low=1, high=64),
        integer("nodes", 24, "Maximum number of drafted nodes, not counting borrowed ones.", low=1, high=128),
        integer(
            "borrowed",
            4,
            "Maximum number of nodes that paths which end early borrow from longer ones; 0: none.",
            low=0,
            high=32,
        ),
        *GREEDY,
    ),
    papers=("gumiho",),
    suits=needs_head("gumiho", "Gumiho networks"),
)
def gumiho_pair(parameters: dict) -> Pair:
    """A serial network drafts the first two tokens, parallel networks the later ones.

    Early tokens decide: a wrong one wastes all after it. With the same sum of acceptance rates, `a_1 + a_1
    a_2 + a_1 a_2 a_3` is larger if the first rates are larger: 2.124 for 0.9, 0.8, 0.7, and 1.764 for 0.7,
    0.8, 0.9.

    1. Two decoder layers read states and tokens as EAGLE's does, and guess the next token and then, for each
       of the best serial_width guesses, the one after it.
    2. For each of the best pairs, small networks guess the tokens of depths 3, 4 and 5 all at once, from the
       pair's tokens and the states from which they were guessed. Below a pair these depths do not see each
       other; below different pairs they differ.
    3. The best nodes of all paths form the tree. A path that ends early borrows the most common tokens of
       the other paths at the missing depths.
    4. One target forward reads the tree, and the usual exact tests follow.

    Borrowed tokens are nodes of their own, with ancestors of their own. In the paper short paths share the
    nodes of longer ones (full tree attention): what the target says after such a node belongs to another
    path, so that only the shared token itself could be kept. Two bugs of the authors' code are not
    reproduced: pairs keep their own first token, and siblings do not see each other. The paper has five
    parallel networks of five blocks, 14 pairs and 64 nodes; llama-tiny has three of one block.
    """
    sizes = (parameters[name] for name in ("serial_width", "parallel_width", "nodes", "borrowed"))
    drafter = with_drift(head_of_kind("gumiho"), serial_then_parallel(*sizes), "a hybrid drafter", SAYS)
    return simplest(drafter, parameters["temperature"])
