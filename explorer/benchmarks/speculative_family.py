"""Every strategy of the speculative family on the same prompts of six kinds of text: tokens per target
forward, the cost of drafting, and tokens/s relative to greedy decoding; also the speculative modes of
transformers' `generate`.
"""

import argparse
import statistics
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise

from decoders.trace.events import Forward
from decoders.trace.trace import Trace

EACH, MANY = 2, 6  # prompts of each kind of text: for measuring seconds, for counting tokens
SIZE = 64  # drafted nodes of each tree and of the chain that they are compared with
CHAIN = ("speculative", {"num_assistant_tokens": SIZE})
TREES = {
    "sequoia": {"budget": SIZE, "max_depth": 16},
    "opt_tree": {"budget": SIZE, "max_depth": 16, "delta": 0.05, "draft_temperature": 0.6},
    "dyspec": {"budget": SIZE},
}


def speculative(options: argparse.Namespace) -> Iterator[dict]:
    """A row per strategy as soon as it is measured, without sampling where possible; then `generate`, then
    the goals.
    """
    from decoders.registry import strategies
    from explorer.experiments.asked import KINDS, without_sampling
    from explorer.experiments.asked import prompts as asked
    from explorer.runs.load_pair import load_models
    from explorer.timing import figure, generator, ours, plain_models

    models = load_models(options.model, options.draft, ("target", "draft"), "auto")
    prompts = [models["target"].encode(text) for kind in KINDS for text in asked(kind, EACH)]
    greedy, speeds = ours(models, "greedy"), {}
    for name, strategy in strategies().items():
        if strategy.family != "speculative" or not set(strategy.needs) <= set(models):
            continue
        settings = without_sampling(name)
        counts = counted(traced(models, name, settings, prompts))
        ratio = relative_speed(ours(models, name, **settings), greedy, prompts)
        yield {"name": name, "note": f"{counts}; {ratio:.2f} x greedy"}
        if strategy.badge(strategy.check(settings)).startswith("lossless"):
            speeds[name] = ratio
    plain = plain_models(options, models)
    for name, arguments in {
        "generate(assistant_model=...)": {"assistant_model": plain["draft"]},
        "generate(prompt_lookup_num_tokens=10)": {"prompt_lookup_num_tokens": 10},
    }.items():
        ratio = relative_speed(generator(plain["target"], **arguments), greedy, prompts)
        yield {"name": name, "note": f"{ratio:.2f} x greedy"}

    best = max(speeds, key=speeds.get)
    label = f"the fastest lossless strategy ({best}) against greedy"
    yield figure(label, speeds[best], "x", 1.8, at_least=True)
    yield from against_a_chain(models)
    for name in TREES:
        share = building(traced(models, name, {}, prompts))
        yield figure(
            f"building the tree of {name}, relative to a target forward", share, "%", 10, at_least=False
        )
    chain = building(traced(models, CHAIN[0], {}, prompts))
    label = "drafting a chain, where no tree is built, relative to a target forward"
    yield figure(label, chain, "%", None, at_least=False)


def against_a_chain(models: dict) -> Iterator[dict]:
    """Tokens per target forward of the best tree relative to a chain of as many nodes, for each kind of text.
    Only stories have a goal: where the draft is always right, a tree has nothing to gain.
    """
    from explorer.experiments.asked import KINDS
    from explorer.experiments.asked import prompts as asked
    from explorer.experiments.measures import tokens_per_forward
    from explorer.timing import figure

    for kind in KINDS:
        prompts = [models["target"].encode(text) for text in asked(kind, MANY)]
        chain = tokens_per_forward(traced(models, *CHAIN, prompts))
        trees = {n: tokens_per_forward(traced(models, n, settings, prompts)) for n, settings in TREES.items()}
        best = max(trees, key=trees.get)
        label = f"tokens per target forward on {kind}: {best} against a chain, {SIZE} nodes each"
        goal = 1.5 if kind == "stories" else None
        yield figure(label, trees[best] / chain, "x", goal, at_least=True)


def relative_speed(
    mine: Callable[[list[int]], int], other: Callable[[list[int]], int], prompts: list[list[int]]
) -> float:
    """Tokens/s of `mine` relative to `other` over all prompts together; the seconds of a prompt are the
    median of rounds in which both decode it in turn.
    """
    from explorer.timing import in_turn

    tokens, seconds = [0, 0], [0.0, 0.0]
    for prompt in prompts:
        calls = [partial(decode, prompt) for decode in (mine, other)]
        tokens = [wrote + call() for wrote, call in zip(tokens, calls, strict=True)]  # not timed: a warm-up
        seconds = [total + took for total, took in zip(seconds, in_turn(calls), strict=True)]
    return tokens[0] / seconds[0] / (tokens[1] / seconds[1])


def traced(models: dict, strategy: str, settings: dict, prompts: list[list[int]]) -> list[Trace]:
    """The trace of each prompt."""
    from decoders.lane import Lane, Limits
    from explorer.timing import NEW_TOKENS

    return [Lane(strategy, p, models, settings, limits=Limits(NEW_TOKENS)).run() for p in prompts]


def total(traces: list[Trace], name: str) -> float:
    """The sum of one of the costs over all traces."""
    return sum(trace.costs.totals()[name] for trace in traces)


def counted(traces: list[Trace]) -> str:
    """Tokens per target forward, acceptance and drafting cost of a strategy, in words."""
    from explorer.experiments.measures import tokens_per_forward

    proposed, new = total(traces, "proposed"), total(traces, "new_tokens")
    share = total(traces, "accepted") / proposed if proposed else 0.0
    drafts = total(traces, "draft_forwards") / new
    verified = total(traces, "target_tokens") / new
    return (
        f"{tokens_per_forward(traces):.2f} tokens per target forward, {share:.0%} of drafted tokens "
        f"accepted, {verified:.1f} verified and {drafts:.2f} draft forwards per token"
    )


def building(traces: list[Trace]) -> float:
    """The time that a round spends on its draft outside the draft's forwards, in percent of a target forward:
    the median over all rounds.
    """
    shares = []
    for trace in traces:
        verifies = [f.seconds for step in trace.steps for f in step.of(Forward) if f.kind == "verify"]
        for before, step in pairwise(trace.steps):
            forwards = step.of(Forward)
            check = next((f for f in forwards if f.kind == "verify"), None)
            if check is None:
                continue
            drafting = sum(f.seconds for f in forwards if f.model == "draft")
            shares.append((check.start - before.seconds - drafting) / statistics.median(verifies))
    return 100 * statistics.median(shares)
