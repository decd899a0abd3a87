"""The speed figures, each a ratio of two things measured alternately in one run on one machine, with tracing
on.

`decoding`: tokens/s against transformers' `generate` on the same model, threads and dtype. `page` and `start`
drive the real app in headless Chromium (see explorer/page_bench.py); `visitors` are twenty people at once.
Absolute times say little on a shared machine; ratios hold.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable

from explorer.cli import load_models

PROMPTS = (  # beginnings as long as those on which the model cards measure acceptance
    "Once upon a time, there was a little girl named Lily. She loved to play in the garden with her dog.",
    "In a quiet forest, a young fox named Finn was looking for food. He saw a small rabbit near a tree.",
    "One day, Tom and his sister went to the beach with their mom. They wanted to build a big sand castle.",
    "There was once an old owl who lived in a tall tree. Every night, the animals came to hear her stories.",
    "Tim had a red ball. He liked to throw it very high, but one day the ball went over the fence.",
    "A brave mouse lived in a small house by the river. His best friend was a turtle who was never late.",
)
NEW_TOKENS = 64
ROUNDS = 3


def run(options: argparse.Namespace) -> None:
    """Runs the parts asked for and prints a table, or one JSON object."""
    parts: dict[str, Callable[[argparse.Namespace], list[dict]]] = {
        "decoding": decoding,
        "page": page,
        "start": start,
        "visitors": visitors,
        "big": big,
    }
    for name in options.only or []:
        if name not in parts:
            raise ValueError(f"there is no benchmark {name!r}; choose one of: {', '.join(parts)}.")
    rows = []
    for name, measure in parts.items():
        if not options.only or name in options.only:
            for row in measure(options):
                rows.append({"part": name} | row)
                if not options.json:
                    print(line(rows[-1]), flush=True)
    if options.json:
        print(json.dumps({"rows": rows}))


def line(row: dict) -> str:
    """One row for people."""
    if "note" in row:
        return f"{row['part']:9} {row['name']:58} {row['note']}"
    met = {True: "met", False: "MISSED", None: ""}[row.get("met")]
    return f"{row['part']:9} {row['name']:58} {row['value']:8.2f} {row['unit']:6} goal {row['goal']:12} {met}"


def figure(name: str, value: float, unit: str, goal: float, at_least: bool, **details) -> dict:
    """One measured figure with its goal."""
    met = value >= goal if at_least else value <= goal
    return {
        "name": name,
        "value": value,
        "unit": unit,
        "goal": f"{'≥' if at_least else '≤'} {goal:g} {unit}",
        "met": met,
        **details,
    }


def decoding(options: argparse.Namespace) -> list[dict]:
    """Our strategies against `generate`, token counts equal, alternating, median of the ratios."""
    import torch
    from transformers import AutoModelForCausalLM

    from decoders.lane import Lane, Limits
    from decoders.names import locate

    models = load_models(options.model, options.draft, ("target", "draft"), "auto")
    device, dtype = models["target"].model.device, models["target"].model.dtype
    plain = {}
    for role, name in (("target", options.model), ("draft", options.draft)):
        where, revision = locate(name)
        options_ = {"revision": revision} if revision else {}
        plain[role] = AutoModelForCausalLM.from_pretrained(where, dtype=dtype, **options_).to(device).eval()
    prompts = [models["target"].encode(text) for text in PROMPTS]

    def ours(strategy: str, **parameters) -> Callable[[list[int]], int]:
        def decode(prompt: list[int]) -> int:
            lane = Lane(strategy, prompt, models, parameters, limits=Limits(NEW_TOKENS))
            return len(lane.run().output())

        return decode

    def theirs(**arguments) -> Callable[[list[int]], int]:
        def decode(prompt: list[int]) -> int:
            ids = torch.tensor([prompt], device=device)
            out = plain["target"].generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=NEW_TOKENS,
                do_sample=False,
                **arguments,
            )
            return out.shape[1] - len(prompt)

        return decode

    greedy, generate = ours("greedy"), theirs()
    speculative = ours("speculative")
    pairs = [
        ("greedy against generate(do_sample=False)", greedy, generate, 1.0),
        ("beam 4 against generate(num_beams=4)", ours("beam", num_beams=4), theirs(num_beams=4), 1.2),
        (
            "speculative against generate(assistant_model=...)",
            speculative,
            theirs(assistant_model=plain["draft"]),
            1.2,
        ),
        ("speculative against our greedy", speculative, greedy, 1.3),
        ("speculative against generate(do_sample=False)", speculative, generate, 0.0),
        ("speculative_tree against our greedy", ours("speculative_tree"), greedy, 0.0),
        ("prompt_lookup against our greedy", ours("prompt_lookup"), greedy, 0.0),
    ]
    rows = []
    for name, mine, other, goal in pairs:
        first, second, ratio = alternate(mine, other, prompts)
        row = figure(name, ratio, "x", goal, at_least=True, tokens_per_second=[first, second])
        rows.append(row if goal else row | {"goal": "none", "met": None})
    return rows


def alternate(
    mine: Callable[[list[int]], int], other: Callable[[list[int]], int], prompts: list[list[int]]
) -> tuple[float, float, float]:
    """Median tokens/s of both, and the median of the ratios of neighbouring measurements; one warm-up run
    each.
    """
    mine(prompts[0]), other(prompts[0])
    speeds: list[tuple[float, float]] = []
    for _ in range(ROUNDS):
        for prompt in prompts:
            pair = []
            for decode in (mine, other):
                began = time.perf_counter()
                tokens = decode(prompt)
                pair.append(tokens / (time.perf_counter() - began))
            speeds.append((pair[0], pair[1]))
    return (
        statistics.median(a for a, _ in speeds),
        statistics.median(b for _, b in speeds),
        statistics.median(a / b for a, b in speeds),
    )


def page(options: argparse.Namespace) -> list[dict]:
    """From event to paint in headless Chromium, four lanes of 64 tokens."""
    from explorer import page_bench

    return page_bench.drawing(options)


def start(options: argparse.Namespace) -> list[dict]:
    """From `python app.py` to a usable page, and to the stored trace."""
    from explorer import page_bench

    return page_bench.starting(options)


def visitors(options: argparse.Namespace) -> list[dict]:
    """Twenty people who press Run together: how long each waits for a step."""
    from explorer import visitors_bench

    return visitors_bench.visiting(options)


def big(options: argparse.Namespace) -> list[dict]:
    """Four lanes of 512 tokens with thousands of nodes each: scrubbing, pauses, memory."""
    from explorer import big_bench

    return big_bench.big(options)
