"""The map of papers as a figure: names at their places, links where there are any, markup as text."""

import networkx as nx

from visualizers.figures.paper_map import paper_map


def graph() -> nx.DiGraph:
    made = nx.DiGraph()
    for name, column, text, link in (
        (
            "a",
            0,
            "A paper with a title that is far too long for the room that a name has in its column",
            "#paper=a",
        ),
        ("m", 1, "drafter", ""),
        ("p", 2, "<img onerror=x>", ""),
        ("s", 3, "Strategy", "#method-s"),
    ):
        made.add_node(name, column=column, text=text, says=f"it says {text}", link=link, status="works")
    made.add_edges_from([("a", "m"), ("m", "p"), ("p", "s")], kind="route")
    made.add_edge("a", "s", kind="realises")
    return made


def test_names_are_links_cut_to_their_room_and_never_markup():
    figure = paper_map(graph(), [["a"], ["m"], ["p"], ["s"]], "dark", 7)
    names = [text for trace in figure.data if trace.mode == "text" for text in trace.text]
    assert names[0].startswith('<a href="#paper=a" target="_self">A paper') and names[0].endswith("…</a>")
    assert names[1] == "drafter" and names[2] == "&lt;img onerror=x&gt;"
    assert "far too long for the room" in " ".join(figure.data[1].hovertext[0].split("<br>"))
    assert figure.layout.meta["caption"].startswith("1 paper of 7 at the left")


def test_only_routes_are_drawn_and_what_is_left_out_leaves_no_gap():
    whole = paper_map(graph(), [["a"], ["m"], ["p"], ["s"]], "light", 1)
    assert whole.data[0].x.count(None) == 3
    part = paper_map(graph().subgraph(["m", "p"]), [["a"], ["m", "n"], ["p"], ["s"]], "light", 1)
    assert part.data[0].x.count(None) == 1 and "of 1" in part.layout.meta["caption"]
