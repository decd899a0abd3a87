"""The diffusion family: what rules that fill several masks per forward save compared with one mask per
forward, and how many tokens per forward they reach without answering fewer problems right.

The experiment parallel-bench measures the errors of these rules.
"""

import argparse
import math
from collections.abc import Iterator
from functools import partial
from statistics import fmean

KINDS = ("records", "copying", "stories")
EACH = 1  # prompts of each kind
TASKS = {"json": "records", "upper": "capitals"}  # tasks with checkers, and their names in the rows
PROBLEMS = 16  # of each task
STRICT = 0.99  # probability threshold above which a token is almost never wrong
REACH = 3.0  # goal: tokens per forward of the best rule at equal accuracy
GOAL = 0.8  # speed-up in seconds per speed-up in forwards that the fastest rule should reach


def diffusion(options: argparse.Namespace) -> Iterator[dict]:
    """A row per rule: forwards, committed tokens per forward, and speed relative to one mask per forward.
    Then how much of the fastest rule's saving in forwards is a saving in seconds, accuracy, and the canvas's
    speed.
    """
    from explorer.benchmarks.page_latency import canvas
    from explorer.experiments.asked import prompts as asked
    from explorer.experiments.parallel_rules import AT_ONCE, VERIFIED
    from explorer.runs.load_pair import load_models
    from explorer.timing import figure

    models = load_models(options.model, options.draft, ("target", "draft"), "auto")
    prompts = [models["target"].encode(text) for kind in KINDS for text in asked(kind, EACH)]
    rules = (*AT_ONCE, *VERIFIED)  # all use one model, so that a forward costs the same for all
    rows = {rule.label: row for rule, row in zip(rules, compared(models, rules, prompts), strict=True)}
    base = rows[rules[0].label]
    for name, (forwards, tokens, seconds) in rows.items():
        speed = f"{base[2] / seconds:.2f} x {rules[0].label}"
        note = f"{forwards} forwards, {tokens:.2f} tokens per forward; {speed}"
        yield {"name": name, "note": note}
    fastest = min(rows, key=lambda name: rows[name][2])
    forwards, _, seconds = rows[fastest]
    kept = (base[2] / seconds) / (base[0] / forwards)
    label = f"{fastest}: speed-up in seconds relative to the speed-up in forwards"
    yield figure(label, kept, "x", GOAL, at_least=True)
    for task, name in TASKS.items():
        yield from at_equal_accuracy(models, task, name)
    yield from canvas(options)


def at_equal_accuracy(models: dict, task: str, name: str) -> Iterator[dict]:
    """A row per rule: the share of problems that it solves, and committed tokens per forward; then the most
    tokens per forward of a rule whose accuracy is at most one standard error below that of one mask per
    forward with the same model. APD is left out: the forwards of its second model would not count.
    """
    from explorer.experiments.measures import tokens_per_forward
    from explorer.experiments.parallel_bench import measured
    from explorer.experiments.parallel_rules import AT_ONCE, OTHER_MODELS, VERIFIED, masked
    from explorer.tasks import HELD_OUT_SEED, problems
    from explorer.timing import figure

    asked = problems(task, PROBLEMS, HELD_OUT_SEED)
    strict = masked("threshold", f"threshold {STRICT}", policy="threshold", tau=STRICT)
    causal = [[one for one in OTHER_MODELS if one.strategy == name] for name in ("wedlm", "set_block")]
    best = (0.0, "no rule")
    for rules in ([*AT_ONCE, strict, *VERIFIED], *causal):  # the first of each fills one mask per forward
        min_accuracy = 0.0
        for rule in rules:
            outcomes = measured(models, rule, asked)
            right = fmean(solved for _, solved in outcomes)
            per_forward = tokens_per_forward([trace for trace, _ in outcomes])
            if rule is rules[0]:
                min_accuracy = right - math.sqrt(right * (1 - right) / len(asked))
            equal = right >= min_accuracy
            words = "" if equal else ", fewer than with one mask per forward"
            note = f"{right:.0%} right{words}; {per_forward:.2f} tokens per forward"
            yield {"name": f"{name}: {rule.label}", "note": note}
            best = max(best, (per_forward, rule.label)) if equal and right else best
    label = f"{name}: tokens per forward at equal accuracy ({best[1]})"
    yield figure(label, best[0], "tokens", REACH, at_least=True)


def compared(models: dict, rules: tuple, prompts: list[list[int]]) -> list[tuple[int, float, float]]:
    """(forwards, committed tokens per forward, seconds) of each rule over all prompts; seconds are medians of
    rounds in which the rules take turns.
    """
    from explorer.benchmarks.speculative_family import total, traced
    from explorer.experiments.measures import tokens_per_forward
    from explorer.timing import in_turn, ours

    seconds = [0.0] * len(rules)
    traces = [traced(models, rule.strategy, rule.parameters, prompts) for rule in rules]  # also a warm-up
    decode = [ours(models, rule.strategy, **rule.parameters) for rule in rules]
    for prompt in prompts:
        spent = in_turn([partial(one, prompt) for one in decode])
        seconds = [before + took for before, took in zip(seconds, spent, strict=True)]
    counts = [(int(total(some, "target_forwards")), tokens_per_forward(some)) for some in traces]
    return [(*count, took) for count, took in zip(counts, seconds, strict=True)]
