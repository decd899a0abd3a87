"""Imports run one way, app.py -> explorer -> visualizers -> decoders, and never in a circle."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import networkx

ROOT = Path(__file__).resolve().parent.parent
ORDER = ("app", "explorer", "visualizers", "decoders")  # each may import itself and those after it
PAGE_AND_PICTURES = {"gradio", "gradio_client", "plotly"}


def modules() -> dict[str, Path]:
    """Dotted name -> file, of everything that is not a test."""
    files = [ROOT / "app.py", *(file for name in ORDER[1:] for file in (ROOT / name).rglob("*.py"))]
    names = (file.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".") for file in files)
    return {name.removesuffix(".__init__"): file for name, file in zip(names, files, strict=True)}


def imported(file: Path) -> Iterator[str]:
    """Every dotted name that a file imports: at its top, inside functions, and for type checkers alone."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{file}: an import is written out in full"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def imports() -> networkx.DiGraph:
    """Module -> the modules that it imports; one of another package is named by that package alone."""
    known, graph = modules(), networkx.DiGraph()
    for name, file in known.items():
        graph.add_node(name)
        for dotted in imported(file):
            parent = dotted.rpartition(".")[0]
            own = next((module for module in (dotted, parent) if module in known), None)
            graph.add_edge(name, own or dotted.partition(".")[0])
    return graph


def test_imports_run_one_way():
    place = {package: at for at, package in enumerate(ORDER)}
    upwards = [
        f"{source} imports {target}"
        for source, target in imports().edges
        if place.get(target.partition(".")[0], len(ORDER)) < place[source.partition(".")[0]]
    ]
    assert not upwards


def test_no_module_imports_itself_through_others():
    parts = networkx.strongly_connected_components(imports())
    assert [sorted(part) for part in parts if len(part) > 1] == []


def parts(graph: networkx.DiGraph, package: str) -> networkx.DiGraph:
    """How the parts of a package import each other: each of its modules, and each folder in it as one."""
    inside, own = f"{package}.", networkx.DiGraph()
    for edge in graph.edges:
        if all(name.startswith(inside) for name in edge):
            source, target = (name.removeprefix(inside).partition(".")[0] for name in edge)
            own.add_edge(source, target)
    own.remove_edges_from(list(networkx.selfloop_edges(own)))
    return own


def circles(graph: networkx.DiGraph) -> dict[str, list[list[str]]]:
    """Package -> its parts that import each other in a circle."""
    packages = sorted({name[:at] for name in graph for at, sign in enumerate(name) if sign == "."})
    groups = {package: networkx.strongly_connected_components(parts(graph, package)) for package in packages}
    closed = {name: [sorted(group) for group in own if len(group) > 1] for name, own in groups.items()}
    return {package: own for package, own in closed.items() if own}


def test_no_folder_imports_itself_through_others():
    """Two folders that need each other are one, or something in them lies in the wrong place."""
    assert circles(imports()) == {}


def test_a_circle_of_folders_is_seen():
    graph = imports().copy()
    graph.add_edge("decoders.sampling.greedy", "decoders.search.beam.beam_state")  # beam search samples
    assert circles(graph) == {"decoders": [["sampling", "search"]]}


def test_the_record_of_a_lane_stands_alone():
    """Whoever opens a trace needs nothing of models or strategies, only a way to write or refuse a file."""
    own = [edge for edge in imports().edges if edge[0].startswith("decoders.trace.")]
    files = {"decoders.refusal", "decoders.files", "decoders.packages", "decoders.roles"}
    others = {target for _, target in own if target.startswith("decoders.")} - files
    assert own and all(target.startswith("decoders.trace") for target in others)


def test_search_knows_no_speculation():
    edges = imports().edges
    assert not [e for e in edges if e[0].startswith("decoders.search.") and ".speculative." in e[1]]


def test_what_decodes_knows_neither_page_nor_pictures():
    graph = imports()
    found = [edge for edge in graph.edges if edge[0].startswith("decoders") and edge[1] in PAGE_AND_PICTURES]
    assert not found


def test_every_import_is_seen():
    graph = imports()
    assert len(graph) > 300 and graph.has_edge(
        "app", "explorer.runs.scheduler"
    )  # this one is made inside a function
    assert graph.has_edge("decoders.lane", "decoders.trace.trace") and "torch" in graph
