"""Every strategy of the speculative family on the same prompts of six kinds of text: what a target forward
brings, what drafting costs, and tokens/s against greedy decoding and against what transformers' `generate`
has of the kind.

Knows no strategy by name but the chain and the trees that are compared with each other.
"""

import argparse
import statistics
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise

from decoders.trace.events import Forward
from decoders.trace.trace import Trace

EACH, MANY = 2, 6  # prompts of each kind of text: where seconds are measured, where tokens are counted
SIZE = 64  # drafted nodes of the trees that are compared with a chain, and of that chain
CHAIN = ("speculative", {"num_assistant_tokens": SIZE})
TREES = {
    "sequoia": {"budget": SIZE, "max_depth": 16},
    "opt_tree": {"budget": SIZE, "max_depth": 16, "delta": 0.05, "draft_temperature": 0.6},
    "dyspec": {"budget": SIZE},
}


def speculative(options: argparse.Namespace) -> Iterator[dict]:
    """A row a strategy as soon as it is measured, greedily where it can be, then what `generate` does, then
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
    yield figure(f"the fastest, {best}, against greedy", speeds[best], "x", 1.8, at_least=True)
    yield from against_a_chain(models)
    for name in TREES:
        share = building(traced(models, name, {}, prompts))
        yield figure(f"building the tree of {name}", share, "%", 10, at_least=False)
    plainly = building(traced(models, CHAIN[0], {}, prompts))
    yield {"name": "the same of a chain, where nothing is built", "note": f"{plainly:.0f} %"}


def against_a_chain(models: dict) -> Iterator[dict]:
    """Tokens a target forward of the best tree over those of a chain of as many nodes, for each kind of text;
    the goal is for stories. A draft that is always right leaves a tree nothing to win.
    """
    from explorer.experiments.asked import KINDS, tokens_per_forward
    from explorer.experiments.asked import prompts as asked
    from explorer.timing import figure

    for kind in KINDS:
        prompts = [models["target"].encode(text) for text in asked(kind, MANY)]
        chain = tokens_per_forward(traced(models, *CHAIN, prompts))
        trees = {n: tokens_per_forward(traced(models, n, settings, prompts)) for n, settings in TREES.items()}
        best = max(trees, key=trees.get)
        label = f"a target forward on {kind}: {best} against a chain, {SIZE} nodes each"
        if kind == "stories":
            yield figure(f"tokens {label}", trees[best] / chain, "x", 1.5, at_least=True)
        else:
            yield {"name": label, "note": f"{trees[best] / chain:.2f} x"}


def relative_speed(
    mine: Callable[[list[int]], int], other: Callable[[list[int]], int], prompts: list[list[int]]
) -> float:
    """Tokens/s of `mine` over that of `other`, all prompts together: of each the median of rounds in which
    both decode it in turn.
    """
    from explorer.timing import in_turn

    tokens, seconds = [0, 0], [0.0, 0.0]
    for prompt in prompts:
        calls = [partial(decode, prompt) for decode in (mine, other)]
        tokens = [wrote + call() for wrote, call in zip(tokens, calls, strict=True)]  # unmeasured: warms up
        seconds = [total + took for total, took in zip(seconds, in_turn(calls), strict=True)]
    return tokens[0] / seconds[0] / (tokens[1] / seconds[1])


def traced(models: dict, strategy: str, settings: dict, prompts: list[list[int]]) -> list[Trace]:
    """The traces of all prompts."""
    from decoders.lane import Lane, Limits
    from explorer.timing import NEW_TOKENS

    return [Lane(strategy, p, models, settings, limits=Limits(NEW_TOKENS)).run() for p in prompts]


def total(traces: list[Trace], name: str) -> float:
    """The sum of one of the costs."""
    return sum(trace.costs.totals()[name] for trace in traces)


def counted(traces: list[Trace]) -> str:
    """Counts of a strategy in words."""
    from explorer.experiments.asked import tokens_per_forward

    proposed, new = total(traces, "proposed"), total(traces, "new_tokens")
    share = total(traces, "accepted") / proposed if proposed else 0.0
    drafts = total(traces, "draft_forwards") / new
    checked = total(traces, "target_tokens") / new
    return (
        f"{tokens_per_forward(traces):.2f} tokens per target forward, {share:.0%} of the drafted accepted, "
        f"{checked:.1f} checked and {drafts:.2f} draft forwards per token"
    )


def building(traces: list[Trace]) -> float:
    """What a round spends on its draft outside of the draft's own forwards, in percent of a target forward:
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
