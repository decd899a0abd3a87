"""Latin squares and 4 x 4 sudoku: rows of digits, a dot for each blank; any valid completion is right."""

import itertools
import random

from explorer.tasks.problem import Grade, Problem, Task, lines

SIZE = 4
DIGITS = "1234"
BASE = (
    "1234",
    "3412",
    "2143",
    "4321",
)  # a sudoku; permuting its bands, rows, columns and digits gives others


def sudoku(rng: random.Random) -> list[str]:
    """A complete 4 x 4 sudoku: rows, columns and 2 x 2 boxes hold each digit once."""

    def order() -> list[int]:
        bands = rng.sample([[0, 1], [2, 3]], 2)
        return [i for band in bands for i in rng.sample(band, 2)]

    rows, columns, names = order(), order(), rng.sample(DIGITS, SIZE)
    return ["".join(names[int(BASE[r][c]) - 1] for c in columns) for r in rows]


def latin(rng: random.Random) -> list[str]:
    """A complete Latin square: rows and columns hold each digit once."""
    rows, columns, names = (
        rng.sample(range(SIZE), SIZE),
        rng.sample(range(SIZE), SIZE),
        rng.sample(DIGITS, SIZE),
    )
    return ["".join(names[(r + c) % SIZE] for c in columns) for r in rows]


def with_blanks(grid: list[str], blanks: int, rng: random.Random) -> list[str]:
    """The grid with this many cells replaced by dots."""
    holes = set(rng.sample(range(SIZE * SIZE), blanks))
    return ["".join("." if r * SIZE + c in holes else grid[r][c] for c in range(SIZE)) for r in range(SIZE)]


def make_latin(rng: random.Random) -> Problem:
    """A Latin square with three to eight blanks."""
    grid = latin(rng)
    return asked("latin", grid, with_blanks(grid, rng.randint(3, 8), rng))


def make_sudoku(rng: random.Random) -> Problem:
    """A sudoku with three to nine blanks."""
    grid = sudoku(rng)
    return asked("sudoku", grid, with_blanks(grid, rng.randint(3, 9), rng))


def asked(name: str, grid: list[str], given: list[str]) -> Problem:
    """The prompt form of both: the grid with blanks, then the word `solved`."""
    prompt = "\n".join([f"{name}:", *given, "solved:", ""])
    return Problem(name, prompt, "\n".join(grid), {"given": given, "boxes": name == "sudoku"})


def check(problem: Problem, text: str) -> Grade:
    """Four rows that keep the given digits and have each digit once in all rows and columns (and boxes)."""
    grid, given = lines(text)[:SIZE], problem.facts["given"]
    if len(grid) < SIZE or any(len(row) != SIZE or set(row) - set(DIGITS) for row in grid):
        return Grade(False, "The answer is not four rows of four digits from 1 to 4.")
    cells = list(itertools.product(range(SIZE), repeat=2))
    if any(given[r][c] not in (".", grid[r][c]) for r, c in cells):
        return Grade(False, "A digit that was given has been changed.")
    units = [[(i, c) for c in range(SIZE)] for i in range(SIZE)] + [
        [(r, i) for r in range(SIZE)] for i in range(SIZE)
    ]
    if problem.facts["boxes"]:
        units += [[(r + i, c + j) for i in (0, 1) for j in (0, 1)] for r in (0, 2) for c in (0, 2)]
    if any(len({grid[r][c] for r, c in unit}) < SIZE for unit in units):
        return Grade(False, "A row, column or box has a digit twice.")
    return Grade(
        True,
        "Every digit occurs once in each row and column" + (" and box." if problem.facts["boxes"] else "."),
    )


TASKS = (
    Task("latin", "A 4 x 4 Latin square with blanks.", make_latin, check),
    Task("sudoku", "A 4 x 4 sudoku with blanks.", make_sudoku, check),
)
