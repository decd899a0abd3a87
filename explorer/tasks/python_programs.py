"""One-line Python functions from a description and two asserts, some thirty templates; hidden calls decide.

What a model wrote is parsed and looked through before it runs: one return of an expression made of known
operators, comprehensions and a few functions, small numbers, nothing that reaches outside.
"""

import ast
import random
from collections import Counter
from collections.abc import Callable

from explorer.tasks.problem import Grade, Problem, Task

LARGEST_NODES, LARGEST_NUMBER = 60, 100
MOST = {ast.Mult: 1, ast.comprehension: 2, "join": 1}  # what lets a value grow may occur so often
KNOWN = (len, sum, max, min, sorted, abs, set, list, str, int, reversed, any, all)
FUNCTIONS = {function.__name__: function for function in KNOWN}
METHODS = {"upper", "lower", "count", "split", "join", "startswith", "endswith", "index"}
ALLOWED = (
    ast.Expression, ast.Constant, ast.Name, ast.Load, ast.Store, ast.List, ast.Tuple, ast.Subscript,
    ast.Slice, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.UnaryOp, ast.USub, ast.Not,
    ast.BoolOp, ast.And, ast.Or, ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In,
    ast.NotIn, ast.IfExp, ast.Call, ast.Attribute, ast.ListComp, ast.GeneratorExp, ast.comprehension,
)  # fmt: skip


def numbers(rng: random.Random) -> tuple[list[int]]:
    """A list of three to six digits."""
    return ([rng.randint(0, 9) for _ in range(rng.randint(3, 6))],)


def text(rng: random.Random) -> tuple[str]:
    """A short word."""
    return (rng.choice(("cat", "dog", "bird", "moon", "tree", "banana", "level", "apple", "noon", "river")),)


def words(rng: random.Random) -> tuple[str]:
    """Two to four short words in one text."""
    return (" ".join(text(rng)[0] for _ in range(rng.randint(2, 4))),)


def two(rng: random.Random) -> tuple[int, int]:
    """Two small numbers, the second above zero."""
    return rng.randint(0, 20), rng.randint(1, 9)


def item_in(rng: random.Random) -> tuple[list[int], int]:
    """A list and a number that may be in it."""
    return numbers(rng)[0], rng.randint(0, 9)


# (what the function does, its parameters, its body, what makes its arguments); {k} is a small number
Template = tuple[str, str, str, Callable]
TEMPLATES: tuple[Template, ...] = (
    ("add {k} to every item", "xs", "[x + {k} for x in xs]", numbers),
    ("multiply every item by {k}", "xs", "[x * {k} for x in xs]", numbers),
    ("keep the items above {k}", "xs", "[x for x in xs if x > {k}]", numbers),
    ("keep the items below {k}", "xs", "[x for x in xs if x < {k}]", numbers),
    ("keep the even items", "xs", "[x for x in xs if x % 2 == 0]", numbers),
    ("keep the odd items", "xs", "[x for x in xs if x % 2 == 1]", numbers),
    ("reverse the list", "xs", "xs[::-1]", numbers),
    ("sort the list", "xs", "sorted(xs)", numbers),
    ("sort from large to small", "xs", "sorted(xs)[::-1]", numbers),
    ("sum of the items", "xs", "sum(xs)", numbers),
    ("largest item", "xs", "max(xs)", numbers),
    ("smallest item", "xs", "min(xs)", numbers),
    ("number of items", "xs", "len(xs)", numbers),
    ("first item", "xs", "xs[0]", numbers),
    ("last item", "xs", "xs[-1]", numbers),
    ("first {k} items", "xs", "xs[:{k}]", numbers),
    ("all but the first {k} items", "xs", "xs[{k}:]", numbers),
    ("largest minus smallest", "xs", "max(xs) - min(xs)", numbers),
    ("square every item", "xs", "[x * x for x in xs]", numbers),
    ("how many items are above {k}", "xs", "sum(x > {k} for x in xs)", numbers),
    ("whether any item is {k}", "xs", "{k} in xs", numbers),
    ("how often n occurs", "xs, n", "xs.count(n)", item_in),
    ("whether n occurs", "xs, n", "n in xs", item_in),
    ("the list without n", "xs, n", "[x for x in xs if x != n]", item_in),
    ("the text in capitals", "s", "s.upper()", text),
    ("the text backwards", "s", "s[::-1]", text),
    ("whether the text is a palindrome", "s", "s == s[::-1]", text),
    ("the text {k} times", "s", "s * {k}", text),
    ("length of the text", "s", "len(s)", text),
    ("first letter", "s", "s[0]", text),
    ("number of words", "s", "len(s.split())", words),
    ("words in reverse order", "s", '" ".join(s.split()[::-1])', words),
    ("larger of the two", "a, b", "max(a, b)", two),
    ("a plus b", "a, b", "a + b", two),
    ("remainder of a by b", "a, b", "a % b", two),
    ("whether b divides a", "a, b", "a % b == 0", two),
)  # fmt: skip
SHOWN, HIDDEN = 2, 4


def make(rng: random.Random) -> Problem:
    """A comment, two examples, and the head of the function."""
    says, parameters, body, arguments = rng.choice(TEMPLATES)
    k = rng.randint(2, 5)
    says, body = says.format(k=k), body.format(k=k)
    calls = [arguments(rng) for _ in range(SHOWN + HIDDEN)]
    examples = [(call, evaluate(body, parameters, call)) for call in calls]
    asserts = [f"# f({', '.join(map(repr, call))}) == {result!r}" for call, result in examples[:SHOWN]]
    prompt = "\n".join([f"# {says}", *asserts, f"def f({parameters}):", ""])
    return Problem("python", prompt, f"    return {body}", {"parameters": parameters, "examples": examples})


def evaluate(body: str, parameters: str, call: tuple) -> object:
    """The value of an expression for these arguments. ValueError if it may not run or cannot be computed."""
    tree = ast.parse(body.strip(), mode="eval")
    refuse(tree, set(parameters.split(", ")))
    names = dict(zip(parameters.split(", "), call, strict=True))
    try:
        return eval(compile(tree, "answer", "eval"), {"__builtins__": {}, **FUNCTIONS, **names})
    except Exception as error:
        raise ValueError(f"It fails with {type(error).__name__}.") from error


def refuse(tree: ast.Expression, parameters: set[str]) -> None:
    """ValueError with one sentence if an expression holds anything but what is allowed."""
    nodes = list(ast.walk(tree))
    kinds = Counter(
        [type(node) for node in nodes] + [node.attr for node in nodes if isinstance(node, ast.Attribute)]
    )
    if len(nodes) > LARGEST_NODES or any(kinds[kind] > most for kind, most in MOST.items()):
        raise ValueError("The expression is too long.")
    bound = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for node in nodes:
        if not isinstance(node, ALLOWED):
            raise ValueError(f"{type(node).__name__} is not allowed.")
        if isinstance(node, ast.Name) and node.id not in parameters | bound | set(FUNCTIONS):
            raise ValueError(f"The name {node.id} is not known.")
        if isinstance(node, ast.Attribute) and node.attr not in METHODS:
            raise ValueError(f"The method {node.attr} is not allowed.")
        if isinstance(node, ast.Constant):
            small = isinstance(node.value, int) and abs(node.value) <= LARGEST_NUMBER
            if not small and not (isinstance(node.value, str) and len(node.value) <= LARGEST_NUMBER):
                raise ValueError("A constant is too large or of another kind.")


def check(problem: Problem, text: str) -> Grade:
    """The first line must be `return` and an expression; shown and hidden calls decide."""
    first = next((line.strip() for line in text.split("\n") if line.strip()), "")
    word, _, body = first.partition(" ")
    if word != "return":
        return Grade(False, "The function has no return in its first line.")
    for count, (call, wanted) in enumerate(problem.facts["examples"]):
        try:
            found = evaluate(body, problem.facts["parameters"], call)
        except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
            return Grade(
                False, str(error) if isinstance(error, ValueError) else "It is no Python expression."
            )
        if found != wanted or type(found) is not type(wanted):
            which = "a shown call" if count < SHOWN else "a hidden call"
            return Grade(False, f"It gives {found!r} in {which} that should give {wanted!r}."[:200])
    return Grade(True, "It is right in all calls, shown and hidden.")


TASKS = (Task("python", "A one-line Python function from a description and two asserts.", make, check),)
