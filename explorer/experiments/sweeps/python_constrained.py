"""What does a constraint do for generated Python?

The target writes the bodies of small functions at the high temperature of 1.8: freely, with a monitor that
knows which members strings and lists have and how many arguments they take, and under a grammar of one-line
expressions. Counted are bodies that parse, names of members that do not exist, and bodies that pass all
calls; and how much of its probability the target kept per token.
"""

import ast
import math
import random
import re
from dataclasses import dataclass

from explorer.experiments import Models
from explorer.experiments.asked import decoded
from explorer.experiments.basis import Basis, by_shares
from explorer.experiments.reading import Row, percent, rows_of, two
from explorer.experiments.sweep import Setting, Sweep
from explorer.tasks import python_programs

PAPERS = ("guiding-language-models-of-code-with-global",)
TEMPERATURE, PROBLEMS, TOKENS = 1.8, 60, 40
DECLARED = """class Text:
    def upper(self) -> Text: ...
    def lower(self) -> Text: ...
    def strip(self) -> Text: ...
    def title(self) -> Text: ...
    def split(self) -> List: ...
    def join(self, words) -> Text: ...
    def count(self, part): ...
    def replace(self, old, new) -> Text: ...
    def startswith(self, part): ...
    def endswith(self, part): ...
class List:
    def count(self, item): ...
    def index(self, item): ...
s: Text
xs: List
"""
GRAMMAR = r"""start: "    return " expression
expression: comparison (" in " comparison)?
comparison: sum (COMPARED sum)?
sum: term (OPERATOR term)*
term: (NAME | NUMBER | TEXT | listed | called) suffix*
listed: "[" expression? (", " expression)* "]" | "[" expression each "]"
called: FUNCTION "(" expression (each | (", " expression)*) ")"
each: " for x in " NAME (" if " expression)?
suffix: "[" expression "]" | "[" expression? ":" expression? (":" expression?)? "]"
  | "." METHOD "(" (expression (", " expression)*)? ")"
NAME: "xs" | "s" | "x" | "n" | "a" | "b"
FUNCTION: "sorted" | "sum" | "max" | "min" | "len" | "list" | "reversed" | "any" | "all"
METHOD: "upper" | "lower" | "strip" | "split" | "join" | "count" | "replace"
COMPARED: " == " | " != " | " > " | " < " | " >= " | " <= "
OPERATOR: " + " | " - " | " * " | " % " | " // "
NUMBER: /-?[0-9]{1,3}/
TEXT: /"[a-z ]{0,8}"/
"""
WAYS = {
    "free": {},
    "monitor": {"constraint": "members", "constraint_text": DECLARED},
    "grammar": {"constraint": "lark", "constraint_text": GRAMMAR},
}
MEMBERS = frozenset(dir(str)) | frozenset(dir(list))


def parses(head: str, body: str) -> bool:
    """Whether the function parses as Python."""
    try:
        ast.parse(f"{head}\n{body}")
    except (SyntaxError, ValueError):
        return False
    return True


def strange(body: str) -> bool:
    """Whether a body uses an attribute that neither strings nor lists have."""
    return any(name not in MEMBERS for name in re.findall(r"\.([A-Za-z_]\w*)", body))


@dataclass(frozen=True)
class Body:
    """The body of a function. log_kept: the logarithm of the target's probability that was kept."""

    parses: bool
    strange: bool
    right: bool
    log_kept: float
    tokens: int


def written(models: Models, strategy: str, number: int, **parameters: float | str) -> Body:
    """The body that is written for the problem with this number, which is also the seed."""
    problem = python_programs.make(random.Random(number))
    trace = decoded(models, strategy, problem.prompt, TOKENS, number, temperature=TEMPERATURE, **parameters)
    target = models["target"]
    text = target.tokenizer.decode([token for token in trace.output() if token not in target.eos])
    body = python_programs.body_of(text)
    good = bool(body.strip()) and parses(f"def f({problem.facts['parameters']}):", body)
    solved = good and python_programs.check(problem, text).right
    return Body(good, strange(body), solved, trace.costs.log_kept or 0.0, len(trace.output()))


def measures(bodies: list[Body], free: list[Body]) -> Row:
    """Shares of bodies, and the probability that the target keeps per token, as a geometric mean."""
    return {
        "parses": sum(one.parses for one in bodies) / len(bodies),
        "unknown members": sum(one.strange for one in bodies) / len(bodies),
        "right": sum(one.right for one in bodies) / len(bodies),
        "kept per token": math.exp(
            sum(one.log_kept for one in bodies) / max(1, sum(one.tokens for one in bodies))
        ),
    }


SWEEP = Sweep(
    names=("way",),
    settings=lambda models: [
        Setting((way,), "sample", given, [(number,) for number in range(PROBLEMS)])
        for way, given in WAYS.items()
    ],
    decode=written,
    measures=measures,
    says=lambda rows: [
        f"{PROBLEMS} problems at temperature {TEMPERATURE:g}, the same seeds for all ways; a body counts as "
        "right if it passes shown and hidden calls.",
        "A text that stops at its limit in the middle of an expression does not parse, whatever the grammar.",
    ],
    sampled={"problems": PROBLEMS},
)


def finding(answer: dict) -> str:
    """The effect of each constraint."""
    free, monitor, grammar = rows_of(answer)
    return (
        f"A grammar raises the share of bodies that parse from {percent(free['parses'])} to "
        f"{percent(grammar['parses'])} and that of right ones from {percent(free['right'])} to "
        f"{percent(grammar['right'])}; a monitor of members alone gets {percent(monitor['right'])} right."
        if grammar["parses"] > free["parses"]
        else f"A grammar keeps {two(grammar['kept per token'])} of the probability per token, and "
        f"{percent(grammar['parses'])} of its bodies parse, against {percent(free['parses'])} without."
    )


def stands(answer: dict) -> Basis:
    """Problems with the same seeds for all ways."""
    free, monitor, grammar = rows_of(answer)
    compared = [
        by_shares(f"{what}, {name} against free", way[column], free[column], PROBLEMS)
        for what, name, way, column in (
            ("bodies that parse", "grammar", grammar, "parses"),
            ("right bodies", "grammar", grammar, "right"),
            ("right bodies", "monitor", monitor, "right"),
        )
    ]
    return Basis(SWEEP.sampled, compared=compared)
