"""The order of nodes in the columns of a layered graph: near their neighbours, so that few edges cross. Takes
nodes with a `column`, and edges from one column to a later one.
"""

import networkx as nx

SWEEPS = 12


def columns(graph: nx.DiGraph) -> list[list[str]]:
    """The nodes of each column from the top down, by the barycentre method (Sugiyama et al. 1981): sweeps to
    the right and back, in which each node moves to the mean position of its neighbours in the column before.
    Deterministic.
    """
    depth = 1 + max(column for _, column in graph.nodes(data="column"))
    made = [sorted(n for n, own in graph.nodes(data="column") if own == at) for at in range(depth)]
    place = {name: (at + 0.5) / len(names) for names in made for at, name in enumerate(names)}
    for sweep in range(SWEEPS):
        order, near = (
            (range(1, depth), graph.pred) if sweep % 2 == 0 else (range(depth - 2, -1, -1), graph.succ)
        )
        for column in order:
            names = made[column]
            mean = {n: sum(place[m] for m in near[n]) / len(near[n]) if near[n] else place[n] for n in names}
            names.sort(key=lambda name: (mean[name], name))
            place.update({name: (at + 0.5) / len(names) for at, name in enumerate(names)})
    return made
