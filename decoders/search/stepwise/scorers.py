"""Scorers: how good a text is, or its prefix, from 0 to 1. Searches choose one by the parameter `scorer`.

All but two are rules that read the text. `reward` uses the target's reward head. `tests` uses the lane's
callback, since generated programs run outside this package.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import torch

from decoders.callbacks import Callbacks
from decoders.lane import Lane
from decoders.parameters import choice, free_text, integer, real
from decoders.refusal import Refusal
from decoders.strategy import Part

SIDE = r"\d+(?:[+*-]\d+)*"
EQUATION = re.compile(rf"(?<![\d+*-])({SIDE})=(\d+)(?!\d)")
START, CHAIN = re.compile(r"start (\d+);"), re.compile(r"^([+*-]\d+) -> (\d+)$", re.MULTILINE)
WORD = re.compile(r"\w+")
# What may be missing at the end of a JSON text that is cut in the middle of a literal, number or escape.
CUT_OFF = ("0", "rue", "ue", "e", "alse", "lse", "se", "ull", "ll", "l", '"', '0"', '00"', '000"', '0000"')


@dataclass(frozen=True)
class Text:
    """What a rule reads: the prompt, what was written after it, whether that is a whole text, and the
    functions that were given to the lane.
    """

    prompt: str
    written: str
    whole: bool
    callbacks: Callbacks = Callbacks()


def true_equation(left: str, right: str) -> bool:
    """Whether `2+3*4` is `14`: sums, differences and products of whole numbers, products first."""
    total = 0
    for sign, product in re.findall(r"([+-]?)(\d+(?:\*\d+)*)", left):
        value = 1
        for factor in product.split("*"):
            value *= int(factor)
        total += -value if sign == "-" else value
    return total == int(right)


def arithmetic(text: Text, parameters: dict) -> float:
    """The share of true ones among the equations (`12+6=18`) and steps of a chain (`+4 -> 7`) that the text
    has finished. Without any, a prefix scores 1, since it may still become right, and a whole text 0.
    """
    before = text.prompt.rsplit("\n", 1)[-1]
    lines = before + text.written
    if not text.whole:  # digits may follow a number at the end
        lines = re.sub(r"\d+\Z", "", lines)
    correct = [true_equation(m[1], m[2]) for m in EQUATION.finditer(lines) if m.end() > len(before)]
    if start := START.search(text.prompt):
        value = start[1]
        for step in CHAIN.finditer(lines):
            correct.append(true_equation(value + step[1], step[2]))
            value = step[2]
    return sum(correct) / len(correct) if correct else float(not text.whole)


def json_begins(text: str) -> bool:
    """Whether some JSON text begins with this one."""
    for missing in ("", *CUT_OFF):
        try:
            read_json(text + missing)
            return True
        except json.JSONDecodeError as error:
            if error.pos >= len((text + missing).rstrip(" \t\r\n")) or error.msg.startswith("Unterminated"):
                return True
        except (ValueError, RecursionError):
            pass
    return False


def read_json(text: str) -> Any:
    """The value of a JSON text. ValueError if it is none; NaN and Infinity are none."""

    def refuse(word: str) -> None:
        raise Refusal(word)

    return json.loads(text, parse_constant=refuse)


def is_json(text: Text, parameters: dict) -> float:
    """1 for a whole JSON text, or a prefix of one; else 0."""
    if not text.whole:
        return float(json_begins(text.written))
    try:
        read_json(text.written)
    except (ValueError, RecursionError):
        return 0.0
    return 1.0


def length(text: Text, parameters: dict) -> float:
    """How close the number of words is to the wanted one: the smaller divided by the larger. A prefix that is
    not yet too long scores 1.
    """
    words, wanted = len(WORD.findall(text.written)), parameters["words"]
    if words <= wanted and not text.whole:
        return 1.0
    return min(words, wanted) / max(words, wanted)


def keyword(text: Text, parameters: dict) -> float:
    """The share of the keywords that occur as whole words, in any case."""
    wanted = keywords(parameters)
    written = text.written.casefold()
    present = [bool(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", written)) for word in wanted]
    return sum(present) / len(present)


def keywords(parameters: dict) -> list[str]:
    """The keywords that were typed, without case."""
    return [word.strip().casefold() for word in parameters["keywords"].split(",") if word.strip()]


def passed(text: Text, parameters: dict) -> float:
    """The share of the prompt's own tests that the written program passes."""
    return text.callbacks.pass_rate(text.prompt, text.written) or 0.0


def applied(rule: Callable[[Text, dict], float], text: Text, parameters: dict, lane: Lane) -> float:
    """The value that a rule gives a text of `lane`; other lanes compute while a program runs for it."""
    if rule is passed:
        return lane.elsewhere(text.callbacks.programs, lambda: rule(text, parameters))
    return rule(text, parameters)


RULES: dict[str, tuple[Callable[[Text, dict], float], str]] = {
    "keyword": (keyword, "The share of the keywords that occur."),
    "length": (length, "How close the number of words is to the target."),
    "arithmetic": (arithmetic, "The share of the written equations that are true."),
    "json": (is_json, "1 for JSON, or a prefix of it, else 0."),
    "tests": (passed, "The share of the prompt's examples that the written program passes."),
}
REWARD_SUMMARY = "The target's reward head: the probability that the text is, or may still become, right."
SCORER = (
    choice("scorer", "length", "What scores a text: a rule, tests, or the reward head.", (*RULES, "reward")),
    free_text("keywords", "", "For keyword: words that should occur, such as dog, ball."),
    integer("words", 12, "For length: the number of words that the text should have.", low=1, high=1000),
)
NOISE = real(
    "value_noise",
    0.0,
    "Makes the scorer worse: values are drawn around the true ones with this standard deviation, clipped "
    "to 0 and 1.",
    low=0.0,
    high=100.0,
)


def noisy_score(value: float, deviation: float, u: float) -> float:
    """The quantile `u`, from 0 to 1, of a normal distribution around `value` that is truncated at 0 and 1."""
    normal = NormalDist(value, deviation)
    low, high = normal.cdf(0.0), normal.cdf(1.0)
    return min(1.0, max(0.0, normal.inv_cdf(low + u * (high - low))))


def part(parameters: dict) -> Part:
    """The scorer as a part of a strategy."""
    name = parameters["scorer"]
    return Part("value", name, REWARD_SUMMARY if name == "reward" else RULES[name][1])


def unusable(parameters: dict) -> str | None:
    """The message to show if the scorer lacks what it needs."""
    if parameters["scorer"] == "keyword" and not keywords(parameters):
        return "The scorer keyword needs keywords: type some, such as dog, ball."
    return None


def unscored(parameters: dict, target: Any) -> str | None:
    """The message to show if there is nothing that could score texts of this target."""
    if parameters["scorer"] == "reward" and "reward" not in target.heads:
        return f"The model {target.name!r} has no reward head; choose another scorer."
    return None


class Scorer:
    """Scores texts of one lane, each of them once. `calls` counts the texts scored."""

    def __init__(self, lane: Lane, parameters: dict | None = None):
        """parameters: those of the scorer, if they are not the lane's own."""
        self.lane, self.parameters = lane, parameters or lane.parameters
        self.name = self.parameters["scorer"]
        self.prompt = decoded(lane, lane.tree.path(lane.tip))
        self.known: dict[tuple[tuple[int, ...], bool], float] = {}
        self.calls = 0

    def score(self, node: int, whole: bool) -> float:
        """The value, 0 to 1, of the text from the lane's beginning to this node.

        whole: scores the text as finished, else as a prefix. For the reward head, nodes that were not read
        yet are read.
        """
        path = self.lane.tree.path(node, above=self.lane.tree.trunk - 1)
        key = (tuple(self.lane.tree.tokens[n] for n in path), whole)
        if key not in self.known:
            self.calls += 1
            text = Text(self.prompt, decoded(self.lane, path), whole, self.lane.callbacks)
            if self.name == "reward":
                self.known[key] = self._ask_head(node, text)
            else:
                self.known[key] = applied(RULES[self.name][0], text, self.parameters, self.lane)
            if deviation := self.parameters.get(NOISE.name):
                u = float(self.lane.chooser.uniforms(1, ("value", *key))[0])
                self.known[key] = noisy_score(self.known[key], deviation, u)
        return self.known[key]

    def _ask_head(self, node: int, text: Text) -> float:
        """The reward head's answer to one of three questions: whether a whole text is right; at the end of a
        line, whether all steps are right; elsewhere, whether the prefix can become right.

        The head reads what was written after the last token of the prompt; nodes whose states were not kept
        are read again.
        """
        lane = self.lane
        path = lane.tree.path(node, above=lane.tree.trunk - 2)
        after = lane.score(path, "value", hidden=True)[:-1].log_softmax(-1)
        tokens = torch.tensor([lane.tree.tokens[n] for n in path[1:]], device=after.device)
        log_p = torch.cat([after.new_zeros(1), after.gather(-1, tokens[:, None])[:, 0]])
        states = torch.stack([lane.scorers["target"].hidden(n) for n in path])
        heard = lane.models["target"].heads["reward"].scores(states, log_p)
        question = "outcome" if text.whole else "steps" if text.written.endswith("\n") else "prefix"
        return float(heard[question][-1])


def decoded(lane: Lane, nodes: list[int], *more: int) -> str:
    """The text of these nodes followed by that of the tokens `more`, without end-of-text tokens."""
    tokens = [*(lane.tree.tokens[n] for n in nodes), *more]
    words = b"".join(lane.models["target"].bytes_of(t) for t in tokens if t not in lane.eos)
    return words.decode("utf-8", "replace")
