"""The search family: beam search against transformers' `generate`, and the time searches spend outside the
model.
"""

import argparse
import statistics
from collections.abc import Iterator

from decoders.trace.events import Forward
from decoders.trace.trace import Trace

BEAMS = (4, 8, 16)
# Large searches: their goal is to spend no more time outside the model than in it.
LARGE: tuple[tuple[str, str, dict], ...] = (
    ("best_first, 500 expansions", "best_first", {"max_expansions": 500}),
    ("pg_td, 64 rollouts", "pg_td", {"rollouts": 64}),
    ("phi_decoding, 64 rollouts per step", "phi_decoding", {"num_beams": 8, "num_rollouts": 8}),
    ("a_star, 64 scored texts", "a_star", {"max_calls": 64}),
    ("lattice", "lattice", {"max_forwards": 256}),
)


def search(options: argparse.Namespace) -> Iterator[dict]:
    """Beam search of several widths: tokens/s against `generate`, in turn. Then the seconds that large
    searches spend outside the model per second in it.
    """
    from explorer.benchmarks.speculative_family import traced
    from explorer.runs.load_pair import load_models
    from explorer.timing import PROMPTS, alternate, figure, generator, ours, plain_models

    models = load_models(options.model, options.draft, ("target", "draft"), "auto")
    plain = plain_models(options, models)["target"]
    prompts = [models["target"].encode(text) for text in PROMPTS]
    for width in BEAMS:
        mine, other = ours(models, "beam", num_beams=width), generator(plain, num_beams=width)
        first, second, ratio = alternate(mine, other, prompts)
        name = f"beam {width} against generate(num_beams={width})"
        yield figure(name, ratio, "x", 1.3, at_least=True, tokens_per_second=[first, second])
    for name, strategy, settings in LARGE:
        traces = traced(models, strategy, settings, [prompts[0], *prompts])[1:]  # one to warm up
        ratio = statistics.median(map(outside, traces))
        forwards = statistics.median(trace.costs.totals()["target_forwards"] for trace in traces)
        label = f"{name}, {forwards:.0f} forwards: time outside the model, relative to time in it"
        yield figure(label, ratio, "x", 1.0, at_least=False)


def outside(trace: Trace) -> float:
    """Seconds that a lane spends outside forwards per second in them."""
    inside = sum(forward.seconds for step in trace.steps for forward in step.of(Forward))
    return (trace.costs.totals()["seconds"] - inside) / inside
