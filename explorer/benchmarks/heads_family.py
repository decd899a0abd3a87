"""The trained drafters: every strategy that drafts with something trained beside the frozen target, on the
same prompts: tokens/s against greedy, tokens per target forward, and where the time of drafting goes.

Knows which strategies these are, and EAGLE's kind, which is compared with the shipped draft.
"""

import argparse
from collections.abc import Callable, Iterator
from itertools import pairwise
from statistics import median

from decoders.strategy import Strategy
from decoders.trace.events import Forward
from decoders.trace.trace import Trace

FOLDER = "decoders.speculative.draft_heads"
OTHERS = ("kangaroo", "m2r2", "fragments")  # trained drafters among the early exits
SHORT = {"a chain of 3 from EAGLE": ("eagle", {"tree": "chain", "depth": 3})}  # beside the paper's tree
EAGLES = ("eagle", "eagle2", "eagle3", "adaeagle")
DRAFT_MODELS = {  # what the trained drafters are measured beside
    "a chain of 4 from the shipped draft": ("speculative", {"num_assistant_tokens": 4}),
    "a tree from the shipped draft": ("dyspec", {}),
}
PROMPTS = {"stories": 3, "word problems": 1, "records": 1}
FASTER, PER_FORWARD = 2.2, 3.5  # goals: times greedy; tokens per target forward on stories


def trained() -> list[Strategy]:
    """The strategies with a trained drafter."""
    from decoders.registry import strategies

    return [s for s in strategies().values() if s.run.__module__.startswith(FOLDER) or s.name in OTHERS]


def heads(options: argparse.Namespace) -> Iterator[dict]:
    """A row per drafter as soon as it is measured, then the goals."""
    from explorer.benchmarks.speculative_family import relative_speed, traced
    from explorer.experiments.asked import prompts as asked
    from explorer.experiments.asked import tokens_per_forward, without_sampling
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
        except ValueError as error:  # a target that has no such heads
            yield {"name": label, "note": str(error)}
            continue
        brought[label] = tokens_per_forward(traces[:stories])
        forwards, beside = drafting(traces)
        if forwards:
            python[label] = beside / forwards
        note = (
            f"{speeds[label]:.2f} x greedy; {brought[label]:.2f} tokens per target forward on stories, "
            f"{tokens_per_forward(traces):.2f} in all; drafting: {forwards:.0%} of the time in forwards, "
            f"{beside:.0%} beside them{step_time(traces)}"
        )
        yield {"name": label, "note": note}
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
        name = f"Python beside a drafter's own forwards, at worst: {worst}"
        yield figure(name, python[worst], "x", 1.0, False)


def computed(
    models: dict, name: str, settings: dict, other: Callable[[list[int]], int], prompts: list[list[int]]
) -> tuple[list[Trace], float]:
    """The traces of all prompts, and tokens/s over those of `other` by computing time: each prompt once."""
    from explorer.benchmarks.speculative_family import traced
    from explorer.timing import computing_ratio

    traces = []

    def mine(prompt: list[int]) -> int:
        traces.extend(traced(models, name, settings, [prompt]))
        return len(traces[-1].output())

    ratio = computing_ratio(mine, other, prompts)
    return traces[1:], ratio  # the first one warmed up


def drafting(traces: list[Trace]) -> tuple[float, float]:
    """The shares of all decoding time that go into a draft's forwards, and into what stands beside them until
    the check begins: growing the draft, and what the drafter does with the states it was given.
    """
    forwards = beside = whole = 0.0
    for trace in traces:
        for before, step in pairwise(trace.steps):
            whole += step.seconds - before.seconds
            check = next((f for f in step.of(Forward) if f.kind == "verify"), None)
            if check is not None:
                spent = sum(
                    f.seconds for f in step.of(Forward) if f.kind == "draft" and f.start < check.start
                )
                forwards += spent
                beside += check.start - before.seconds - spent
    return (forwards / whole, beside / whole) if whole else (0.0, 0.0)


def step_time(traces: list[Trace]) -> str:
    """What a forward of the drafter takes, the median, in words; nothing if it drafts in the target's own."""
    took = [f.seconds for t in traces for s in t.steps[1:] for f in s.of(Forward) if f.kind == "draft"]
    return f", {1000 * median(took):.1f} ms a draft step" if took else ""
