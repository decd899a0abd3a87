"""What chips and columns say of spans and loops."""

from decoders.trace.events import Commit, Propose, Step
from decoders.trace.scores import Measure, ScoreName
from visualizers import scene
from visualizers.scene.text_spans import TextSpans
from visualizers.scene.view import Header
from visualizers.views.any_lane.entropy import Entropy
from visualizers.views.any_lane.text import Text

WORDS = [b"<think>", b"a", b"</think>", b"b", b"<th", b"ink>", *(b"w%d" % i for i in range(9))]
HEADER = Header([1, 0], dict(enumerate(WORDS)))


def fields(*tokens: int) -> dict[int, dict]:
    """Node -> what is known of it at the end; the output's first node is 2."""
    spans, known = TextSpans(HEADER), {}
    for node, token in enumerate(tokens, len(HEADER.prompt)):
        for other, found in spans.feed(node, token).items():
            known.setdefault(other, {}).update(found)
    return known


def steps(*tokens: int, first: int = len(HEADER.prompt)) -> list[Step]:
    """One token a step, the output's first node is `first`."""
    return [
        Step(node - first, [Propose(node, node - 1, token, -0.1, "target"), Commit([node], [-0.1])])
        for node, token in enumerate(tokens, first)
    ]


def test_a_prompt_that_opens_reasoning_is_part_of_it():
    assert TextSpans(HEADER).of_prompt() == {1: "reasoning"}
    assert [one.part for one in Text(HEADER).head().ops] == [None, "reasoning"]


def test_tokens_know_their_part_and_a_delimiter_that_is_cut_tells_it_late():
    known = fields(1, 2, 3, 4, 5)
    parts = ["reasoning", "reasoning", "answer", "reasoning", "reasoning"]
    assert [known[node]["part"] for node in range(2, 7)] == parts


def test_tokens_know_their_place_in_a_loop():
    known = fields(*range(6, 13), *range(6, 13), 6, 3)
    assert [known[node]["loop"] for node in (2, 8, 9, 15, 16)] == [
        [1, 0, 7], [1, 0, 7], [1, 1, 7], [1, 1, 7], [1, 2, 7],
    ]  # fmt: skip
    assert "loop" not in known[17]


def test_a_token_belongs_to_one_loop_only():
    known = fields(*[6] * 8, *[7, 6, 6, 6, 6, 6, 6] * 3)
    assert known[2]["loop"] == [1, 0, 1] and known[25]["loop"][0] == 2
    assert known[9]["loop"][0] == 1


def test_the_unfinished_copy_of_a_loop_goes_to_the_loop_that_follows():
    first, second = [*range(6, 12)], [6, 7, 13, 14, 9, 8]
    known = fields(*first * 3, *second * 3)
    loops = [known[node]["loop"] for node in range(2, 2 + 36)]
    assert [loop[0] for loop in loops] == [1] * 18 + [2] * 18
    assert loops[18] == [2, 0, 6]


def test_bands_stand_behind_the_columns_of_the_entropy_trace():
    view = Entropy(HEADER)
    bands = [op for step in steps(1, 2, 3) for op in view.feed(step) if isinstance(op, scene.Band)]
    assert [(band.role, band.x0, band.x1) for band in bands if band.role != "amber"] == [
        ("reasoning", 0.5, 1.5), ("reasoning", 1.5, 2.5), ("answer", 2.5, 3.5),
    ]  # fmt: skip


def test_copies_of_a_loop_have_a_band_and_what_they_copy_has_none():
    view = Entropy(Header([1], HEADER.vocabulary))
    made = steps(*[*range(6, 13)] * 2, first=1)
    bands = [op.x0 for step in made for op in view.feed(step) if isinstance(op, scene.Band)]
    assert bands == [x + 0.5 for x in range(7, 14)]


def test_a_token_that_the_budget_wrote_is_a_forced_chip():
    view = Text(HEADER)
    [step] = steps(2)
    step.events.append(Measure(2, ScoreName.THINKING_BUDGET, 1.0, limit=1.0))
    chips = [op for op in view.feed(step) if isinstance(op, scene.Chip)]
    assert [chip.state for chip in chips] == ["forced"]
