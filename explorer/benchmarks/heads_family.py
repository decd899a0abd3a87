"""Every strategy whose drafter is a module trained for the frozen target, on the same prompts: tokens/s
against greedy, tokens per target forward, and where the drafting time goes.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from decoders import packages
from decoders.refusal import Refusal
from decoders.strategy import Strategy
from decoders.trace.events import Forward
from decoders.trace.trace import Trace

FOLDER = packages.full("decoders.speculative.draft_heads")
OTHERS = ("kangaroo", "m2r2", "fragments")  # trained drafters among the early exits
SHORT = {"a chain of 3 from EAGLE": ("eagle", {"tree": "chain", "depth": 3})}  # besides the paper's tree
EAGLES = ("eagle", "eagle2", "eagle3", "adaeagle")
DRAFT_MODELS = {  # for comparison with the trained drafters
    "a chain of 4 from the shipped draft": ("speculative", {"num_assistant_tokens": 4}),
    "a tree from the shipped draft": ("dyspec", {}),
}
PROMPTS = {"stories": 3, "word problems": 1, "records": 1}
FASTER, PER_FORWARD = 2.2, 3.5  # goals: speed relative to greedy; tokens per target forward on stories


@dataclass(frozen=True)
class Gains:
    """What one drafter gained."""

    drafter: str  # the name of its strategy, or in words
    against_greedy: float  # tokens/s relative to greedy decoding
    on_stories: float  # tokens per target forward
    overall: float  # the same on all prompts
    draft_step: float | None  # milliseconds of a draft forward; None if there are none
    in_steps: float  # share of the time in draft forwards
    other: float  # share of the time in drafting outside of them

    def in_words(self) -> str:
        """The row's note."""
        step = "" if self.draft_step is None else f", {self.draft_step:.1f} ms per draft forward"
        return (
            f"{self.against_greedy:.2f} x greedy; {self.on_stories:.2f} tokens per target forward on "
            f"stories, {self.overall:.2f} in all; drafting: {self.in_steps:.0%} of the time in forwards, "
            f"{self.other:.0%} outside them{step}"
        )


def trained() -> list[Strategy]:
    """The strategies with a trained drafter."""
    from decoders.registry import strategies

    return [s for s in strategies().values() if s.run.__module__.startswith(FOLDER) or s.name in OTHERS]


def heads(options: argparse.Namespace) -> Iterator[dict]:
    """A row per drafter as soon as it is measured, then the goals."""
    from explorer.benchmarks.speculative_family import relative_speed, traced
    from explorer.experiments.asked import prompts as asked
    from explorer.experiments.asked import without_sampling
    from explorer.experiments.measures import tokens_per_forward
    from explorer.runs.load_pair import load_models
    from explorer.timing import figure, ours

    models = load_models(options.model, options.draft, ("target", "draft"), "auto")
    prompts = [models["target"].encode(text) for kind, many in PROMPTS.items() for text in asked(kind, many)]
    stories, greedy = PROMPTS["stories"], ours(models, "greedy")
    ways = {s.name: (s.name, {}) for s in trained()} | SHORT | DRAFT_MODELS
    busy = getattr(options, "busy", False)
    speeds, brought, python = {}, {}, {}
    for label, (name, given) in ways.items():
        settings = without_sampling(name) | given
        try:
            if busy:
                traces, speeds[label] = computed(models, name, settings, greedy, prompts)
            else:
                traces = traced(models, name, settings, prompts)
                speeds[label] = relative_speed(ours(models, name, **settings), greedy, prompts)
        except Refusal as error:  # the target has no such heads
            yield {"name": label, "note": str(error)}
            continue
        brought[label] = tokens_per_forward(traces[:stories])
        forwards, outside = drafting(traces)
        if forwards:
            python[label] = outside / forwards
        gains = Gains(
            label,
            speeds[label],
            brought[label],
            tokens_per_forward(traces),
            step_time(traces),
            forwards,
            outside,
        )
        yield {"name": label, "note": gains.in_words(), "gains": vars(gains)}
    heads_alone = {label: speed for label, speed in speeds.items() if label not in DRAFT_MODELS}
    if not heads_alone:
        return
    best = max(heads_alone, key=heads_alone.get)
    yield figure(f"the fastest trained drafter, {best}, against greedy", speeds[best], "x", FASTER, True)
    longest = max(heads_alone, key=brought.get)
    label = f"tokens per target forward on stories: {longest}"
    yield figure(label, brought[longest], "tokens", PER_FORWARD, True)
    chain = next(iter(DRAFT_MODELS))
    eagles = [label for label in (*SHORT, *EAGLES) if label in speeds]
    if eagles:
        eagle = max(eagles, key=speeds.get)
        yield figure(f"{eagle}, against {chain}", speeds[eagle] / speeds[chain], "x", 1.0, True)
    costly = [label for label in heads_alone if label in python]
    if costly:
        worst = max(costly, key=python.get)
        name = f"drafting outside a drafter's forwards, relative to them, at worst: {worst}"
        yield figure(name, python[worst], "x", 1.0, False)


def computed(
    models: dict, name: str, settings: dict, other: Callable[[list[int]], int], prompts: list[list[int]]
) -> tuple[list[Trace], float]:
    """The traces of all prompts, and tokens per processor second relative to `other`; each prompt once."""
    from explorer.benchmarks.speculative_family import traced
    from explorer.timing import computing_ratio

    traces = []

    def mine(prompt: list[int]) -> int:
        traces.extend(traced(models, name, settings, [prompt]))
        return len(traces[-1].output())

    ratio = computing_ratio(mine, other, prompts)
    return traces[1:], ratio  # the first one warmed up


def drafting(traces: list[Trace]) -> tuple[float, float]:
    """(share of the decoding time spent in the draft's forwards, share spent outside them before verification
    begins: building the draft, and what the drafter does with the target's states).
    """
    forwards = outside = whole = 0.0
    for trace in traces:
        for before, step in pairwise(trace.steps):
            whole += step.seconds - before.seconds
            check = next((f for f in step.of(Forward) if f.kind == "verify"), None)
            if check is not None:
                spent = sum(
                    f.seconds for f in step.of(Forward) if f.kind == "draft" and f.start < check.start
                )
                forwards += spent
                outside += check.start - before.seconds - spent
    return (forwards / whole, outside / whole) if whole else (0.0, 0.0)


def step_time(traces: list[Trace]) -> float | None:
    """The median time of a draft forward in ms; None if the drafter runs within the target's forwards."""
    took = [f.seconds for t in traces for s in t.steps[1:] for f in s.of(Forward) if f.kind == "draft"]
    return 1000 * median(took) if took else None
