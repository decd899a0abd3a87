"""Requests that share a model, and the loop that executes a schedule, iteration by iteration.

Time is counted in iterations, each request writes its tokens greedily, and memory is never short: nothing is
preempted.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter

from decoders.engine.engine import Engine
from decoders.engine.sequence_engine import SequenceEngine
from decoders.engine.tree import Tree
from decoders.refusal import Refusal


@dataclass(eq=False)  # two with the same prompt are two
class Request:
    """A prompt, how many tokens are wanted after it, and the iteration (from 0 on) at which it arrives."""

    prompt: list[int]
    wants: int
    arrives: int = 0
    read: int = 0  # tokens whose keys and values are kept
    written: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.prompt or self.wants < 1:
            raise Refusal("A request needs a prompt of one token or more, and one wanted token or more.")

    @property
    def text(self) -> list[int]:
        return self.prompt + self.written

    @property
    def prompt_left(self) -> int:
        """Tokens of the prompt that are not read yet; 0: it decodes."""
        return max(0, len(self.prompt) - self.read)

    @property
    def done(self) -> bool:
        return len(self.written) >= self.wants


Plan = list[tuple[Request, int]]  # who reads how many of its next tokens in an iteration
Schedule = Callable[[list[Request], list[Request]], Plan]  # of those that run and those that wait, in order
Read = Callable[[Plan], list[int]]  # runs a plan: the most likely token after what each request has read then


@dataclass
class Iteration:
    """What ran at one time; requests by their place in the list that was served."""

    at: int
    tokens: dict[int, int]  # request -> tokens that it read
    wrote: list[int]  # those that got a token
    cells: int  # tokens computed, padding included
    seconds: float


def serve(requests: list[Request], schedule: Schedule, read: Read) -> list[Iteration]:
    """Runs all requests to their end. A request is admitted by being planned. Raises ValueError if a schedule
    plans nothing while something waits.
    """
    place = {request: i for i, request in enumerate(requests)}
    coming, running, at, ran = sorted(requests, key=lambda r: r.arrives), [], 0, []
    while coming or running:
        if not running:
            at = max(at, coming[0].arrives)
        plan = schedule(running, [r for r in coming if r.arrives <= at])
        if not plan:
            raise Refusal("The schedule plans nothing; give it a budget and a number of rows of at least 1.")
        start = perf_counter()
        tokens = read(plan)
        seconds = perf_counter() - start
        wrote = after(plan, tokens)
        counts = {place[request]: count for request, count in plan}
        ran.append(Iteration(at, counts, [place[r] for r in wrote], sum(counts.values()), seconds))
        admitted = [request for request, _ in plan if request in coming]
        running, coming = running + admitted, [request for request in coming if request not in admitted]
        running, at = [request for request in running if not request.done], at + 1
    return ran


def after(plan: Plan, tokens: list[int]) -> list[Request]:
    """Notes what was read; who has read all of its text gets its token. Gives those."""
    wrote = []
    for (request, count), token in zip(plan, tokens, strict=True):
        request.read += count
        if request.read == len(request.text):
            request.written.append(token)
            wrote.append(request)
    return wrote


class Together:
    """`read(plan)` is one forward of an engine: each request is a text with a root of its own in one token
    tree, and the tree's mask hides the others from it.
    """

    def __init__(self, engine: Engine | SequenceEngine):
        self.engine, self.scorer = engine, None
        self.nodes: dict[Request, list[int]] = {}

    def read(self, plan: Plan) -> list[int]:
        for request in [one for one in self.nodes if one.done]:
            self.scorer.release(self.nodes.pop(request))
        for request, count in plan:
            nodes = self.nodes.setdefault(request, [])
            for token in request.text[request.read : request.read + count]:
                nodes.append(self._add(nodes[-1] if nodes else -1, token))
        logits = self.scorer.score([self.nodes[request][-1] for request, _ in plan])
        self.scorer.forget([self.nodes[request][-1] for request, _ in plan])
        return logits.argmax(-1).tolist()

    def _add(self, parent: int, token: int) -> int:
        if self.scorer is None:  # the first token of all is the tree's trunk
            self.scorer = self.engine.attach(Tree([token]))
            return 0
        return self.scorer.tree.add(parent, token)

    def close(self) -> None:
        """Gives all slots back."""
        if self.scorer is not None:
            self.scorer.close()


def served(engine: Engine | SequenceEngine, requests: list[Request], schedule: Schedule) -> list[Iteration]:
    """`serve` on an engine, one joint forward per iteration."""
    together = Together(engine)
    try:
        return serve(requests, schedule, together.read)
    finally:
        together.close()


def waits(ran: list[Iteration], request: int, arrives: int) -> tuple[float, list[float]]:
    """(seconds from a request's arrival to its first token, those between its tokens). A request that comes
    while nothing runs does not wait.
    """
    clock, times, came = 0.0, [], None
    for one in ran:
        if came is None and one.at >= arrives:
            came = clock
        clock += one.seconds
        if request in one.wrote:
            times.append(clock)
    return times[0] - came, [b - a for a, b in zip(times, times[1:], strict=False)]
