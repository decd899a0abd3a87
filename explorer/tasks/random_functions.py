"""Random functions in the small Python of the task `python`: lists of numbers, slices and comprehensions,
nested at random.
"""

import random

DEPTH = 3


def function(rng: random.Random) -> str:
    """A function of one list with one to three statements."""
    lines = ["def f(xs):"]
    names = ["xs"]
    if rng.random() < 0.35:
        lines.append(f"    ys = {a_list(rng, names, 2)}")
        names.append("ys")
    if rng.random() < 0.25:
        lines += [f"    if {condition(rng, names, [], 1)}:", f"        return {value(rng, names, 1)}"]
    return "\n".join([*lines, f"    return {value(rng, names, DEPTH)}"])


def value(rng: random.Random, names: list[str], depth: int) -> str:
    """The returned expression: a list, a number or a truth value."""
    kind = rng.choices(("list", "number", "truth"), (5, 4, 1))[0]
    if kind == "list":
        return a_list(rng, names, depth)
    return number(rng, names, [], depth) if kind == "number" else condition(rng, names, [], depth)


def a_list(rng: random.Random, names: list[str], depth: int) -> str:
    """An expression that is a list."""
    if depth <= 0:
        return rng.choice(names)
    some = a_list(rng, names, depth - 1)
    made = rng.choice(("map", "filter", "map", "filter", "sorted", "reverse", "first", "rest", "name"))
    if made == "map":
        return f"[{number(rng, names, ['x'], depth - 1)} for x in {some}]"
    if made == "filter":
        return f"[x for x in {some} if {condition(rng, names, ['x'], depth - 1)}]"
    parts = {"reverse": "[::-1]", "first": f"[:{rng.randint(2, 5)}]", "rest": f"[{rng.randint(2, 5)}:]"}
    if made in parts:
        return some + parts[made]
    return f"sorted({some})" if made == "sorted" else rng.choice(names)


def number(rng: random.Random, names: list[str], items: list[str], depth: int) -> str:
    """An expression whose value is a number; `names`: list variables, `items`: number variables."""
    if depth <= 0 or rng.random() < 0.2:
        return rng.choice([*items, *items, str(rng.randint(2, 5))])
    made = rng.choice(("sum", "operator", "operator", "function", "item", "count"))
    if made == "operator":
        first = number(rng, names, items, depth - 1)
        return f"{first} {rng.choice('+-*%')} {number(rng, names, items, 0)}"
    some = a_list(rng, names, depth - 1)
    if made == "item":
        return f"{rng.choice(names)}[{rng.choice(('0', '-1'))}]"
    if made == "count":
        return f"{rng.choice(names)}.count({number(rng, names, items, depth - 1)})"
    return f"{'sum' if made == 'sum' else rng.choice(('max', 'min', 'len'))}({some})"


def condition(rng: random.Random, names: list[str], items: list[str], depth: int) -> str:
    """An expression that is true or false."""
    made = rng.choice(("compare", "compare", "even", "in"))
    first = number(rng, names, items, depth)
    if made == "even":
        return f"{number(rng, names, items, 0)} % 2 == {rng.randint(0, 1)}"
    if made == "in":
        return f"{first} in {a_list(rng, names, depth - 1)}"
    return f"{first} {rng.choice(('>', '<', '=='))} {number(rng, names, items, 0)}"


def functions(count: int, seed: int) -> list[str]:
    """`count` different functions."""
    rng = random.Random(f"functions {seed}")
    result: dict[str, None] = {}
    while len(result) < count:
        result[function(rng)] = None
    return list(result)
