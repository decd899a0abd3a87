"""ADED: a trigram table replaces the draft model; a small tree search chooses which paths to verify.

Liu et al. (2024), Adaptive Draft-Verification for Efficient Large Language Model Decoding. The target draws
one token per node, which is exact; the acceptance rule of the reference code is not.
"""

from decoders.datastore import encoded, names
from decoders.lane import Lane
from decoders.parameters import choice, integer
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import speculative
from decoders.speculative.default_verifier import simplest
from decoders.speculative.drafters.ngram_mcts import (
    RECENT,
    Table,
    most_visited_paths,
    nudge,
    search,
    trigram_table,
)
from decoders.speculative.interfaces import FIXED, Draft, Drafter, Pair
from decoders.speculative.methods.lookahead import add_chain
from decoders.trace.number_format import were

PATHS = 24  # most visited paths that become a draft


def searched(store: str, simulations: int, depth: int, budget: int) -> Drafter:
    """A drafter that searches a table of the store's trigrams, whose weights adapt to the text so far."""
    read: list[Table] = []

    def propose(lane: Lane) -> Draft:
        draft, text = Draft(lane.tip), lane.tree.text(lane.tip)
        if not read:
            table = trigram_table(encoded(store, lane.models["target"]))
            read.append({run: dict(after) for run, after in table.items()})
        raised = nudge(read[0], text[-RECENT:])
        max_depth = min(depth, lane.left - 1)
        if len(text) < 2 or not max_depth:
            return draft
        root = search(
            read[0], (text[-2], text[-1]), simulations, max_depth, lane.chooser, ("search", len(text))
        )
        for path, _ in most_visited_paths(root)[:PATHS]:
            after = read[0].get((*text[-1:], *path)[-2:], {})
            longer = (*path, max(after, key=after.get)) if after else path
            if len(draft.nodes) + len(longer) <= budget:
                add_chain(lane, draft, longer[: lane.left - 1], "trigrams")
        if draft.nodes:
            lane.note(f"{were(raised, 'trigram')} raised by the text; {were(root.visits, 'path')} tried.")
        return draft

    says = "The most visited paths of a tree search over a table of trigrams, adapted to the text so far."
    return Drafter(propose, FIXED, name="searched trigrams", says=says)


@speculative(
    name="aded",
    title="ADED",
    parameters=(
        integer("simulations", 60, "Paths that the search tries per round.", low=1, high=300),
        integer("depth", 3, "Tokens of a searched path; the most likely next one is added.", low=1, high=8),
        integer("budget", 24, "Maximum number of drafted nodes.", low=1, high=128),
        choice("store", "stories", "Texts in which trigrams are counted.", names()),
        *GREEDY,
    ),
    papers=("adaptive-draft-verification-for-efficient-large-language",),
)
def aded_pair(parameters: dict) -> Pair:
    """Trigram counts replace the draft model; a tree search over them picks the paths to verify.

    1. A table holds how often each token followed two others in a store of texts. Trigrams of the newest 16
       tokens gain 0.04 before each draft.
    2. A Monte Carlo tree search tries paths: it prefers paths with a high reward, a high weight, or few
       visits. The reward of a path is one plus the sum of its weights.
    3. The 24 most visited paths, each with its most likely successor, are the draft, up to budget nodes.
    4. The target checks them in one forward.

    If the last two tokens were never seen together, the draft is empty and one plain token is decoded.
    """
    sizes = (parameters["simulations"], parameters["depth"], parameters["budget"])
    return simplest(searched(parameters["store"], *sizes), parameters["temperature"])
