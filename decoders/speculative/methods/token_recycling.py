"""Token Recycling: the target's runners-up of earlier rounds are the guesses of later ones.

Luo et al. (2024), Turning Trash into Treasure, section 3. A table holds for each token the most likely tokens
after it, as the target last saw them; a fixed tree is filled by walking the table.
"""

from decoders.lane import Lane
from decoders.parameters import choice
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import speculative
from decoders.speculative.default_verifier import simplest
from decoders.speculative.interfaces import FIXED, Draft, Drafter, Pair, Seen, Verification

# A tree as path of ranks -> number of children, "" being the root: "01" is the second choice after the first.
PAPER = {
    "": 8,
    "0": 8,
    "1": 4,
    "2": 3,
    "3": 2,
    "4": 1,
    "5": 1,
    "6": 1,
    "7": 1,
    "00": 8,
    "01": 3,
    "02": 2,
    "03": 1,
    "04": 1,
    "05": 1,
    "06": 1,
    "07": 1,
    "10": 2,
    "11": 1,
    "20": 1,
    "30": 1,
    "40": 1,
    "50": 1,
    "000": 5,
    "001": 2,
    "002": 1,
    "003": 1,
    "004": 1,
    "010": 1,
    "020": 1,
    "100": 1,
    "200": 1,
    "300": 1,
    "0000": 3,
    "0001": 1,
    "0002": 1,
    "0010": 1,
    "0100": 1,
    "1000": 1,
    "00000": 2,
    "00010": 1,
}
SMALL = {
    "": 5,
    "0": 4,
    "1": 2,
    "2": 1,
    "00": 3,
    "01": 1,
    "10": 1,
    "000": 2,
    "001": 1,
    "0000": 1,
}
TEMPLATES = {"21 nodes": SMALL, "80 nodes": PAPER}
Table = dict[int, list[int]]  # token -> the most likely tokens after it, best first


def recycled(template: dict[str, int], table: Table) -> Drafter:
    """A drafter that fills `template` from `table` and updates the table with the logits of every round."""
    width = max(template.values())

    def propose(lane: Lane) -> Draft:
        draft, level = Draft(lane.tip), {"": lane.tip}
        for _ in range(lane.left - 1):
            below = {}
            for path, node in level.items():
                if lane.tree.tokens[node] in lane.eos and node != lane.tip:
                    continue
                for rank, token in enumerate(table.get(lane.tree.tokens[node], [])[: template.get(path, 0)]):
                    below[path + str(rank)] = draft.propose(
                        lane, node, token, None, source="recycled", fill=FIXED
                    )
            level = below
        return draft

    def observe(lane: Lane, draft: Draft, verification: Verification, seen: Seen) -> None:
        best = seen.logits.topk(min(width, seen.logits.shape[-1])).indices.tolist()
        for node, row in zip(seen.nodes, best, strict=True):
            table[lane.tree.tokens[node]] = row  # of equal tokens the later one counts

    return Drafter(
        propose,
        FIXED,
        observe=observe,
        name="recycled tokens",
        says="The target's latest most likely successors of each token fill a fixed tree.",
    )


@speculative(
    name="token_recycling",
    title="Token Recycling",
    parameters=(
        choice("template", "21 nodes", "The tree template that is filled.", TEMPLATES),
        *GREEDY,
    ),
    papers=("turning-trash-into-treasure",),
)
def token_recycling_pair(parameters: dict) -> Pair:
    """Drafts from the target's own earlier runners-up, which each forward yields for free.

    1. Each forward gives the target's most likely tokens after every token it read, accepted or not. They are
       written into a table, one row per token.
    2. The draft is a fixed tree that is filled from the table: below each node come the best of its token's
       row.
    3. The target checks the tree in one forward and follows it while it contains the target's own token.
    4. The rows of all tokens in that forward are overwritten.

    It needs no second model and no search. Each run begins with an empty table, so that it can be repeated,
    and its first drafts are empty; the authors keep the table from one request to the next, which makes
    their runs on later prompts shorter than those here. The smaller tree is for small models; the one of 80
    nodes is theirs.
    """
    return simplest(recycled(TEMPLATES[parameters["template"]], {}), parameters["temperature"])
