"""The parallel grid on two Jacobi runs worked out by hand: states, frontier, what was right early."""

from itertools import pairwise

from decoders.trace.events import Cell, Depend
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.speculative.parallel_grid import ParallelGrid

PROMPT, WIDTH = [1, 2], 6
WORDS = ["zero", " one", " two", " three", " four", " five", " six"]
TABLE = [5, 1, 4, 4, 2, 3]


def periodic(prefix: list[int]) -> int:
    """Repeats the last token at lengths divisible by three, else reads a table."""
    return prefix[-1] if len(prefix) % 3 == 0 else TABLE[(len(prefix) - 2) % 6]


def chained(prefix: list[int]) -> int:
    """Every token needs the two before it."""
    return (3 * prefix[-1] + prefix[-2] + 1) % 7


def jacobi(model, guess: list[int], iterations: int = 20) -> list[list]:
    """Parallel Jacobi decoding of one window: accepts the right prefix of the guess and one output more."""
    steps = [[Cell(len(PROMPT) + i, 0, token, "guess") for i, token in enumerate(guess)]]
    settled: list[int] = []
    for iteration in range(1, iterations + 1):
        outputs = [model(PROMPT + settled + guess[:i]) for i in range(len(guess))]
        right = next((i for i in range(len(guess)) if guess[i] != outputs[i]), len(guess) - 1) + 1
        states = [
            "settled" if i < right else "changed" if outputs[i] != guess[i] else "kept"
            for i in range(len(guess))
        ]
        first = len(PROMPT) + len(settled)
        steps.append(
            [Cell(first + i, iteration, t, s) for i, (t, s) in enumerate(zip(outputs, states, strict=True))]
        )
        settled, guess = settled + outputs[:right], outputs[right:]
        if not guess:
            return steps
    raise AssertionError("did not settle")


def colours(marks: dict, row: int) -> str:
    """The code of a row: 0 wrong, 1 right and settled before, 2 right and new in this pass."""
    strip = marks.get(f"b{row}", {"x1": 0.5})["x1"] - 0.5
    found = ""
    for column in range(1, WIDTH + 1):
        cell = marks.get(f"g{column}-{row}")
        assert (cell is None) == (column <= strip), "a position has a cell until it is final, then the strip"
        found += "1" if cell is None else "2" if cell["state"] == "accepted" else "0"
    return found


def said(marks: dict, row: int) -> str:
    """What stands right of a row."""
    return f"{marks[f'r{row}']['right']} {marks[f'r{row}']['right_bold']}"


def test_the_worked_example():
    steps = jacobi(periodic, [0] * WIDTH)
    assert [c.token for c in steps[1]] == [5, 0, 4, 4, 0, 3] and [c.token for c in steps[2]] == [
        5,
        4,
        4,
        4,
        3,
    ]
    marks, ops = fold(ParallelGrid, steps, PROMPT, WORDS)
    assert ops[3][-1] == {"say": "Iteration 3: 4 settled, 6 in all."}
    assert colours(marks, 0) == "000000"
    assert colours(marks, 1) == "202202"
    assert colours(marks, 2) == "122222"
    # Pass three only confirms what already stood there since pass two.
    assert colours(marks, 3) == "112222"
    assert [said(marks, i) for i in range(4)] == [
        "0 settled ",
        "1 settled +1",
        "2 settled +1",
        "6 settled +4",
    ]


def test_right_early_is_outlined_and_settled_is_filled():
    marks, _ = fold(ParallelGrid, jacobi(periodic, [0] * WIDTH), PROMPT, WORDS)
    assert (
        marks["g1-1"]["fill"] == "filled"
        and marks["g3-1"]["fill"] == "outline"
        and marks["g2-1"]["fill"] == "tint"
    )
    assert "known only since iteration 3" in marks["g3-1"]["hover"][1]
    assert "already guessed in iteration 1" in marks["g3-3"]["hover"][1]


def test_nothing_is_known_before_the_frontier_passes():
    steps = jacobi(periodic, [0] * WIDTH)
    for seen in (2, 3):  # after passes 1 and 2 nothing beyond the frontier is blue
        marks, _ = fold(ParallelGrid, steps[:seen], PROMPT, WORDS)
        blue = {m["id"] for m in of_kind(marks, "cell") if m["state"] == "accepted"}
        assert blue == {"g1-1", "g2-2"} & set(marks)
        assert marks["g3-1"]["hover"][1] == "whether it is right is not known yet"


def test_the_chained_example_settles_one_position_a_pass():
    steps = jacobi(chained, [0] * WIDTH)
    marks, _ = fold(ParallelGrid, steps, PROMPT, WORDS)
    final = [
        next(m["text"] for m in of_kind(marks, "cell") if m["x"] == x and m["fill"] == "filled")
        for x in range(1, 7)
    ]
    assert final == ["␣one", "␣six", "␣six", "␣four", "␣five", "␣six"]
    assert [said(marks, i) for i in range(1, 6)] == [f"{i} settled +1" for i in range(1, 6)]


def test_the_frontier_is_one_unbroken_staircase():
    marks, _ = fold(ParallelGrid, jacobi(periodic, [0] * WIDTH), PROMPT, WORDS)
    stairs = [marks[f"f{i}"]["points"] for i in range(4)]
    assert all(above[-1] == below[0] for above, below in pairwise(stairs))
    assert stairs[0][0] == [0.5, -0.5] and stairs[-1][-1] == [6.5, 3.5]


def test_changed_cells_carry_an_amber_dot_and_no_others_do():
    steps = jacobi(periodic, [0] * WIDTH)
    marks, _ = fold(ParallelGrid, steps, PROMPT, WORDS)
    changed = {f"d{c.position - 1}-{c.iteration}" for step in steps for c in step if c.state == "changed"}
    assert changed == {m["id"] for m in of_kind(marks, "symbol")} and len(changed) == 4
    assert {m["role"] for m in of_kind(marks, "symbol")} == {"amber"}


def test_links_hang_from_the_cell_waited_for_to_the_cell_that_waited():
    steps = jacobi(periodic, [0] * WIDTH)
    links = [(3, 4), (2, 5), (7, 6), (1, 5)]  # the third points forward, the last at the prompt: no links
    steps[3] += [Depend(source, target, 1.0, "causal") for source, target in links]
    marks, _ = fold(ParallelGrid, steps, PROMPT, WORDS)
    hooks = {m["id"]: (m["x0"], m["y0"], m["x1"], m["y1"]) for m in of_kind(marks, "hook")}
    assert hooks == {"h2-3": (2, 2, 3, 3), "h1-4": (1, 1, 4, 3)}, "only cells of the grid were waited for"
    assert "waited for 1 earlier position" in marks["g3-3"]["hover"][1]
    said = marks["h2-3"]["hover"][0]
    assert "(token 2, final in iteration 2) → " in said and "(token 3, final in iteration 3)" in said
    assert marks["h2-3"]["to"] == {"cell": marks["g3-3"]["cell"]}


def test_the_chain_of_the_newest_position_is_strong():
    steps = [
        [Cell(2, 1, 1, "settled"), Cell(3, 1, 1, "settled")],
        [
            Cell(4, 2, 1, "settled"),
            Cell(5, 2, 1, "settled"),
            Depend(2, 4, 1.0, "causal"),
            Depend(3, 5, 1.0, "causal"),
        ],
        [Cell(6, 3, 1, "settled"), Depend(4, 6, 1.0, "causal"), Depend(3, 6, 1.0, "causal")],
    ]
    marks, ops = fold(ParallelGrid, steps, PROMPT, WORDS)
    assert {m["id"]: m["strong"] for m in of_kind(marks, "hook")} == {
        "h1-3": True,
        "h2-4": False,
        "h3-5": True,
        "h2-5": False,
    }
    assert {"id": "h2-4", "set": {"strong": True}} in ops[1], "then the newest position was column 4"


def test_ops_grow_with_the_window_not_with_the_text():
    # One position settles an iteration; a fresh guess enters at the right.
    steps = [
        [Cell(2 + k + i, k, (k + i) % 7, "settled" if i == 0 else "changed") for i in range(4)]
        for k in range(1, 200)
    ]
    _, ops = fold(ParallelGrid, steps, PROMPT, WORDS)
    assert len(ops[190]) == len(ops[30]) < 25


def test_a_new_blocks_first_guesses_join_the_row_in_which_the_last_block_ended():
    first = [Cell(2, 0, 1, "guess")], [Cell(2, 1, 3, "settled")]
    second = [Cell(3, 1, 1, "guess"), Cell(4, 1, 1, "guess"), Cell(3, 2, 4, "settled"), Cell(4, 2, 1, "kept")]
    marks, _ = fold(ParallelGrid, [*first, second], PROMPT, WORDS)
    assert {m["id"] for m in of_kind(marks, "cell")} == {"g1-0", "g1-1", "g2-1", "g3-1", "g2-2", "g3-2"}
    assert [said(marks, row) for row in (1, 2)] == ["1 settled +1", "2 settled +1"]
    assert marks["b2"]["x1"] == 1.5


def test_a_new_block_overwrites_the_output_that_the_last_pass_left_behind():
    first = [Cell(2, 1, 3, "settled"), Cell(3, 1, 5, "changed")]
    second = [Cell(3, 1, 1, "guess"), Cell(3, 2, 5, "settled")]
    marks, _ = fold(ParallelGrid, [first, second], PROMPT, WORDS)
    assert marks["g2-1"]["text"] == "␣one" and marks["g2-1"]["fill"] == "tint", (
        "what was dropped was no early hit"
    )
    assert not of_kind(marks, "symbol")


def test_markup_in_tokens_stays_text():
    marks, _ = fold(ParallelGrid, [[Cell(2, 0, 0, "guess")]], PROMPT, ["<img src=x onerror=alert(1)>"])
    assert marks["g1-0"]["text"] == "<img src=x onerror=alert(1)>"


def test_captions_say_how_many_iterations_were_unavoidable_where_waits_are_tested():
    settled = [[Cell(2 + i, 1 + i, 1, "settled")] for i in range(3)]
    settled[2].append(Depend(2, 4, 1.0, "causal"))
    said = [ops[-1]["say"] for ops in fold(ParallelGrid, settled, PROMPT, WORDS, dependencies=True)[1]]
    assert [sentence.split(". ")[1] for sentence in said] == [
        "At least 1 of 1 iteration was unavoidable.",
        "At least 1 of 2 iterations was unavoidable.",
        "At least 2 of 3 iterations were unavoidable.",
    ]
    untested = fold(ParallelGrid, settled, PROMPT, WORDS)[1]
    assert not any("unavoidable" in ops[-1]["say"] for ops in untested)
