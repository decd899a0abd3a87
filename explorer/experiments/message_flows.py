"""Flows: units of work that share nothing, exchange messages, and combine into larger flows.

Josifoski et al. (2023), Flows: Building Blocks of Reasoning and Collaborating AI. A decoding strategy is a
flow, so is a checker, and so is every way to connect them here. Each run is a `Log` of messages.
"""

import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from decoders.refusal import Refusal
from decoders.trace.trace import Trace
from explorer.experiments import Models
from explorer.experiments.asked import decoded, text_of

Content = dict[str, Any]
Ask = Callable[["Flow", Content], Content]  # how a composite flow sends a message to one of its parts
Work = Callable[[Content, Content, Ask], Content]  # (message, state of the flow, ask) -> answer


@dataclass(frozen=True)
class Message:
    """A message from one flow to another. `time`: seconds since the log began; `parent`: the message that it
    answers or follows, None for the first.
    """

    number: int
    sender: str
    receiver: str
    content: Content
    time: float
    parent: int | None


@dataclass
class Log:
    """All messages of a run, in order."""

    messages: list[Message] = field(default_factory=list)
    began: float = field(default_factory=time.perf_counter)

    def send(self, sender: str, receiver: str, content: Content, parent: int | None) -> Message:
        """Adds a message; it holds a copy of the content, so that nobody can change it later."""
        now = time.perf_counter() - self.began
        message = Message(len(self.messages), sender, receiver, deepcopy(content), now, parent)
        self.messages.append(message)
        return message


class Flow:
    """A unit with inputs (`reads`), outputs (`gives`), and a state that only its own work sees."""

    def __init__(self, name: str, reads: Sequence[str], gives: Sequence[str], work: Work):
        self.name, self.reads, self.gives = name, tuple(reads), tuple(gives)
        self.__work, self.__state = work, {}

    def run(self, message: Message, log: Log) -> Message:
        """The answer to a message. Refusal with one sentence if a key is missing in the message or in the
        answer.
        """
        content = taken(self.reads, message.content, f"the message to {self.name}")

        def ask(part: Flow, content: Content) -> Content:
            return part.run(log.send(self.name, part.name, content, message.number), log).content

        result = self.__work(deepcopy(content), self.__state, ask)
        answer = taken(self.gives, result, f"the answer of {self.name}")
        return log.send(self.name, message.sender, answer, message.number)


def taken(keys: Sequence[str], content: Content, what: str) -> Content:
    """The values of these keys. Raises Refusal with one sentence if one is missing."""
    if missing := [key for key in keys if key not in content]:
        raise Refusal(f"There is no {missing[0]!r} in {what}; it holds {', '.join(content) or 'nothing'}.")
    return {key: content[key] for key in keys}


def ran(flow: Flow, content: Content, log: Log | None = None) -> Content:
    """A flow's answer to a user."""
    log = log or Log()
    return flow.run(log.send("you", flow.name, content, None), log).content


# ---- atomic flows ------------------------------------------------------------------------------------------
def decoding(
    name: str,
    models: Models,
    strategy: str,
    tokens: int,
    seed: int = 0,
    kept: list[Trace] | None = None,
    **parameters: Any,
) -> Flow:
    """A decoding strategy: reads `prompt`, gives `text` and the `cost`, the number of tokens that the target
    read for it. Its state counts its calls; each has its own seed, the first one `seed`. `kept`: a list that
    collects the trace of each call.
    """

    def work(content: Content, state: Content, ask: Ask) -> Content:
        state["calls"] = state.get("calls", 0) + 1
        at = seed + state["calls"] - 1
        trace = decoded(models, strategy, content["prompt"], tokens, at, **parameters)
        if kept is not None:
            kept.append(trace)
        cost = trace.costs.totals()["target_tokens"]
        return {"text": text_of(models, trace.output()), "cost": cost}

    return Flow(name, ("prompt",), ("text", "cost"), work)


def checker(name: str, reads: Sequence[str], gives: Sequence[str], check: Callable[..., Content]) -> Flow:
    """A tool, a critic or a person: a function of what it reads, by the names of the keys."""
    return Flow(name, reads, gives, lambda content, state, ask: check(**content))


# ---- composite flows --------------------------------------------------------------------------------------
def needed(parts: Sequence[Flow]) -> list[str]:
    """The keys that these flows read in turn and no earlier one gives."""
    missing: list[str] = []
    for at, part in enumerate(parts):
        given = {key for before in parts[:at] for key in before.gives}
        missing += [key for key in part.reads if key not in given and key not in missing]
    return missing


def given_by(parts: Sequence[Flow]) -> list[str]:
    """All keys that any of these flows gives."""
    return list(dict.fromkeys(key for part in parts for key in part.gives))


def one_pass(parts: Sequence[Flow], content: Content, ask: Ask) -> Content:
    """All parts in turn; each adds what it gives to what the next ones may read."""
    for part in parts:
        content |= ask(part, {key: content[key] for key in part.reads})
    return content


def sequential(name: str, *parts: Flow) -> Flow:
    """A flow that runs its parts once, one after the other."""
    return Flow(
        name, needed(parts), given_by(parts), lambda content, state, ask: one_pass(parts, content, ask)
    )


def circular(
    name: str,
    parts: Sequence[Flow],
    rounds: int,
    stop: Callable[[Content], bool],
    first: Content | None = None,
) -> Flow:
    """All parts in turn, until `stop` returns true for the messages so far, or for this many rounds. `first`:
    the values, in the first round, of keys that a later part gives. Also gives the number of `rounds`.
    """

    def work(content: Content, state: Content, ask: Ask) -> Content:
        content = {**(first or {}), **content}
        for at in range(rounds):
            content = one_pass(parts, content, ask) | {"rounds": at + 1}
            if stop(content):
                break
        return content

    reads = [key for key in needed(parts) if key not in (first or {})]
    return Flow(name, reads, [*given_by(parts), "rounds"], work)


def generator_critic(
    name: str, generator: Flow, critic: Flow, rounds: int, stop: Callable[[Content], bool], first: Content
) -> Flow:
    """A circle of two: the generator reads the critic's answer in the next round."""
    return circular(name, (generator, critic), rounds, stop, first)


def branching(
    name: str, choose: Callable[[Content], str], parts: Sequence[Flow], reads: Sequence[str]
) -> Flow:
    """Runs one of the parts, chosen by the messages so far; all of them give the same keys."""
    by_name = {part.name: part for part in parts}

    def work(content: Content, state: Content, ask: Ask) -> Content:
        part = by_name[choose(content)]
        return ask(part, taken(part.reads, content, f"the message to {name}"))

    return Flow(name, reads, parts[0].gives, work)
