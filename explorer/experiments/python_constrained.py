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

from decoders.lane import Lane, Limits
from explorer.experiments import Models, Result, progress
from explorer.experiments.basis import Basis, by_shares
from explorer.experiments.reading import percent, rows_of, two
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


def run(models: Models) -> Result:
    """One row per way; the same problems and seeds for all."""
    target, counts = models["target"], {way: [0, 0, 0] for way in WAYS}
    kept, tokens = dict.fromkeys(WAYS, 0.0), dict.fromkeys(WAYS, 0)
    for number in progress.each(range(PROBLEMS)):
        problem = python_programs.make(random.Random(number))
        head = f"def f({problem.facts['parameters']}):"
        for way, constraint in WAYS.items():
            parameters = {"temperature": TEMPERATURE} | constraint
            lane = Lane("sample", target.encode(problem.prompt), models, parameters, number, Limits(TOKENS))
            trace = lane.run()
            text = target.tokenizer.decode([t for t in trace.output() if t not in target.eos])
            body = python_programs.body_of(text)
            good = bool(body.strip()) and parses(head, body)
            right = good and python_programs.check(problem, text).right
            for at, hit in enumerate((good, strange(body), right)):
                counts[way][at] += hit
            kept[way] += trace.costs.log_kept or 0.0
            tokens[way] += len(trace.output())
    rows = [
        [way, *(n / PROBLEMS for n in hits), math.exp(kept[way] / max(1, tokens[way]))]
        for way, hits in counts.items()
    ]
    says = [
        f"{PROBLEMS} problems at temperature {TEMPERATURE:g}, the same seeds for all ways; a body counts as "
        "right if it passes shown and hidden calls.",
        "A text that stops at its limit in the middle of an expression does not parse, whatever the grammar.",
    ]
    return Result(["way", "parses", "unknown members", "right", "kept per token"], rows, says)


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
        by_shares(f"{what}, {name} against free", way[column], PROBLEMS, free[column], PROBLEMS)
        for what, name, way, column in (
            ("bodies that parse", "grammar", grammar, "parses"),
            ("right bodies", "grammar", grammar, "right"),
            ("right bodies", "monitor", monitor, "right"),
        )
    ]
    return Basis({"problems": PROBLEMS}, compared=compared)
