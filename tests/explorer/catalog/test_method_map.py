"""The map of methods is what strategies, papers and experiments declare, and can be saved."""

import networkx as nx
import pytest

from decoders.registry import strategies
from explorer import cli
from explorer.catalog import papers
from explorer.catalog.method_map import method_map


def test_the_map_says_what_the_declarations_say():
    graph = method_map()
    for name, strategy in strategies().items():
        near = {kind: [] for kind in ("realises", "has", "belongs to")}
        for _, other, kind in graph.out_edges(f"strategy {name}", data="kind"):
            near[kind].append(other)
        assert sorted(near["realises"]) == sorted(f"paper {slug}" for slug in strategy.papers)
        assert near["belongs to"] == [f"family {strategy.family}"]
        parts = strategy.parts({p.name: p.default for p in strategy.parameters})
        assert set(near["has"]) == {f"part {part.kind}: {part.name}" for part in parts}
    kinds = {claim.kind for claim in papers.claims()}
    assert set(dict(graph.nodes(data="kind")).values()) == {"paper", "part", "family"} | kinds
    assert kinds >= {"strategy", "lens", "memory", "experiment"}
    for row in papers.papers():
        paper = f"paper {row['slug']}"
        assert (graph.in_degree(paper) > 0) == (row["status"] == "works")
        assert graph.nodes[paper]["status"] == row["status"]


def test_the_command_line_writes_it(tmp_path):
    path = tmp_path / "methods.graphml"
    cli.main(["papers", "--graph", str(path)])
    again = nx.read_graphml(path)
    assert set(again) == set(method_map()) and again.nodes["strategy greedy"]["text"] == "Greedy"
    with pytest.raises(SystemExit) as ended:
        cli.main(["papers", "--graph", str(tmp_path / "methods.png")])
    assert ended.value.code == 2
