"""The automaton's view: a ring per state, a token per edge, paths by rank, and edges that were blocked."""

from decoders.lane import Lane, Limits
from decoders.trace.events import Commit, Propose, Verdict
from decoders.trace.scores import Measure, Rank, Score
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.search.automaton import Automaton, spread

WORDS = ["ask:", " red", " blue", " hat", "<end>"]


def cost(node: int, total: float, edge: float, state: int, layer: int) -> Score:
    return Rank(
        node, "path_cost", total, {"edge": edge, "layer": float(layer)}, level=f"state {state}", number=state
    )


def steps() -> list[list]:
    """red and blue lead to one state, from which hat leads on."""
    first = [cost(0, 0.0, 0.0, 7, 0), Propose(1, 0, 1, -0.2, "target"), cost(1, 0.2, 0.2, 5, 1)]
    first += [Propose(2, 0, 2, -1.8, "target", 1), cost(2, 1.8, 1.8, 5, 1), Verdict(2, "merged", into=1)]
    first += [Propose(3, 1, 3, -0.1, "target"), cost(3, 0.3, 0.1, 3, 2)]
    first += [Propose(4, 3, 4, 0.0, "target"), cost(4, 0.3, 0.0, 0, 3), Rank(4, "path", 0.3, rank=1)]
    spur = [Measure(1, "blocked", 1.0), Propose(5, 2, 3, -0.7, "target"), cost(5, 2.5, 0.7, 3, 2)]
    spur += [Propose(6, 5, 4, 0.0, "target"), cost(6, 2.5, 0.0, 0, 3)]
    last = [Rank(6, "path", 2.5, rank=2), Commit([1, 3, 4], [-0.2, -0.1, 0.0])]
    return [first, spur, last]


def test_a_state_is_one_ring_and_an_edge_one_token_however_often_they_are_tried():
    marks, ops = fold(Automaton, steps(), [0], WORDS)
    assert [(m["x"], m["glyph"]) for m in of_kind(marks, "symbol")] == [
        (0, "ring"),
        (1, "ring"),
        (2, "ring"),
        (3, "ring"),
    ]
    tokens = {m["text"]: m for m in of_kind(marks, "node")}
    assert set(tokens) == {"␣red", "␣blue", "␣hat", "<end>"} and tokens["␣red"]["x"] == 0.5
    assert abs(tokens["␣red"]["y"] - tokens["␣blue"]["y"]) >= 1
    into = [marks[f"b7.{token}"] for token in (1, 2)]
    assert {(e["x1"], e["y1"]) for e in into} == {(1, marks["s5"]["y"])}  # where the two meet
    assert tokens["␣red"]["note"] == "0.20" and tokens["␣hat"]["note"] == "0.70"  # as last rated
    assert len(of_kind(marks, "edge")) == 8
    assert ops[0][-1]["say"] == "Step 1: 4 states, 4 edges, 1 path; the cheapest is ␣red␣hat with 0.30."


def test_paths_are_ranked_and_blocked_edges_shown_for_their_search():
    marks, _ = fold(Automaton, steps()[:2], [0], WORDS)
    assert marks["t7.1"]["state"] == marks["a7.1"]["state"] == "rejected"
    marks, _ = fold(Automaton, steps(), [0], WORDS)
    states = {m["text"]: m["state"] for m in of_kind(marks, "node")}
    assert states == {"␣red": "chosen", "␣blue": "live", "␣hat": "chosen", "<end>": "chosen"}
    assert [marks[f"p{i}"]["text"] for i in range(4)] == [
        "cheapest paths",
        "1 0.30 ␣red␣hat",
        "2 2.50 ␣blue␣hat",
        "",
    ]


def test_a_real_run_is_drawn_whole(tiny_model, prompt):
    asked = {"outputs": '"abc" | "abd" | "cbc" | "cbd" | "b" | "bc" | "bd"', "k_best": 5}
    trace = Lane("graph_decoding", prompt, {"target": tiny_model("llama")}, asked, limits=Limits(9)).run()
    words = {t: b.decode("latin-1") for t, b in trace.vocabulary.items()}
    listed = [words.get(t, "") for t in range(max(words) + 1)]
    marks, _ = fold(Automaton, [s.events for s in trace.steps], prompt, listed, **asked)
    places = [(m["x"], m["y"]) for m in marks.values() if m["kind"] in ("node", "symbol")]
    assert len(places) == len(set(places)) > 12
    chosen = [m for m in of_kind(marks, "node") if m["state"] == "chosen"]
    assert len(chosen) == len(trace.output())


def test_places_are_kept_apart():
    assert spread([1.0, 1.0, 1.0], []) == [0.0, 1.0, 2.0]
    assert spread([0.0], [0.0, 1.0]) == [2.0]
    assert spread([3.0], [1.0]) == [3.0]
