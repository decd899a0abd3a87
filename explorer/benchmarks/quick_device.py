"""`bench --device cuda --quick`: what ten minutes on a GPU should find out, the most important first.

Whether every strategy writes there what it writes on the CPU; the shipped pair and a Llama of 1.2 billion
parameters; a draft tree of a trained head; whether a mixture of experts can be captured; the app with
visitors; a vocabulary of 152,000 tokens. Without a GPU, the same parts run on the CPU, and a simulated device
stands in where two devices are compared. A part that fails says why, and the next one runs.
"""

import argparse
import importlib.util
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from explorer.benchmarks import device_speed
from explorer.runs.load_pair import load_models
from explorer.timing import PROMPTS, figure, ours, plain_models

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 600  # for all parts
LAWS = "tests/decoders/test_devices.py"
LAW_SECONDS = 240
VISITORS = 20
LANES = ("greedy", "beam", "speculative")
VIEWS = ("beam_tree", "beam_tree", "draft_rounds")
VOCABULARY = 152_000
Part = Callable[[argparse.Namespace], Iterator[dict]]


def quick(options: argparse.Namespace) -> Iterator[dict]:
    """The rows of all parts for which there is time."""
    import torch

    until = time.monotonic() + SECONDS
    if options.device == "cuda" and not torch.cuda.is_available():
        yield {"name": "GPU", "note": "there is none: everything runs on the CPU, and no goal applies"}
        options = argparse.Namespace(**{**vars(options), "device": "cpu"})
    for name, part in PARTS.items():
        rows = part(options)
        while time.monotonic() < until:
            try:
                row = next(rows)
            except StopIteration:
                break
            except Exception as error:  # the next part may work, and a GPU is rarely at hand
                yield {"name": name, "note": f"failed: {type(error).__name__}: {error}"}
                break
            yield row
        else:
            yield {"name": name, "note": f"left out, or ended early: {SECONDS / 60:.0f} minutes are over"}


def laws(options: argparse.Namespace) -> Iterator[dict]:
    """Whether every strategy writes the same there as on the CPU, in double precision."""
    name = "every strategy and processor, there against the CPU"
    if not (ROOT / LAWS).exists() or importlib.util.find_spec("pytest") is None:
        yield {"name": name, "note": "left out: it needs the tests of a source checkout, and pytest"}
        return
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", LAWS]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LAW_SECONDS)
        note = next(reversed(done.stdout.strip().splitlines()), "no test ran")
    except subprocess.TimeoutExpired:
        note = f"not done after {LAW_SECONDS} s: run python -m pytest {LAWS}"
    yield {"name": name, "note": note}


def pair(options: argparse.Namespace) -> Iterator[dict]:
    """The shipped pair as it is loaded: greedy, beams and drafts against `generate`, and the bandwidth."""
    models = load_models(options.model, options.draft, ("target", "draft"), options.device)
    plain = plain_models(options, models)
    prompts = [models["target"].encode(text) for text in PROMPTS[:2]]
    yield from device_speed.of_pair(options.model, models, plain, prompts)


def head(options: argparse.Namespace) -> Iterator[dict]:
    """EAGLE-2's tree against greedy decoding, both captured."""
    models = load_models(options.model, options.draft, ("target", "draft"), options.device)
    prompts = [models["target"].encode(text) for text in PROMPTS[:2]]
    models["target"].capture()
    tree, greedy = ours(models, "eagle2"), ours(models, "greedy")
    for prompt in prompts:  # a shape is captured when it first occurs
        tree(prompt), greedy(prompt)
    goal = 2.0 if options.device == "cuda" else None
    yield device_speed.compared("EAGLE-2 against greedy, both captured", tree, greedy, prompts, goal)


def large(options: argparse.Namespace) -> Iterator[dict]:
    """A Llama of 1.2 billion parameters, captured and compiled; only on a GPU."""
    if options.device == "cpu":
        yield {"name": "Llama of 1.2 B parameters", "note": "left out without a GPU"}
        return
    prompts = [load_models(options.model, None, ("target",), "cpu")["target"].encode(PROMPTS[0])]
    yield from device_speed.large("Llama of 1.2 B parameters", device_speed.LARGE["1.2 B"], prompts)


def vocabulary(options: argparse.Namespace) -> Iterator[dict]:
    """Time outside the model per token with a large vocabulary."""
    from explorer.benchmarks import large_vocabulary as of

    model = of.random_model(VOCABULARY, of.TINY, of.SHARP, options.device)
    for name, strategy, parameters in of.STRATEGIES:
        seconds, _ = of.outside(model, strategy, parameters)
        label = f"{VOCABULARY:,} tokens, {name}: outside the model, per token"
        yield figure(label, 1e3 * seconds, "ms", None, False)


def experts(options: argparse.Namespace) -> Iterator[dict]:
    """Whether a small mixture of experts can be captured, or the sentence that refuses it."""
    import torch
    from transformers import MixtralConfig, MixtralForCausalLM

    from decoders.engine.engine import Engine
    from decoders.refusal import Refusal

    shape = dict(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4)
    sparse = dict(num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2, vocab_size=256)
    torch.manual_seed(0)
    model = MixtralForCausalLM(MixtralConfig(**shape, **sparse)).to(options.device).eval()
    try:
        Engine(model.requires_grad_(False), limit=512).capture()
        note = (
            "captured" if options.device == "cuda" else "runs in few shapes; there is no GPU to record it on"
        )
    except Refusal as refusal:
        note = str(refusal)
    yield {"name": "a mixture of experts (Mixtral)", "note": note}


def visitors(options: argparse.Namespace) -> Iterator[dict]:
    """The app with visitors of three lanes each."""
    if importlib.util.find_spec("gradio") is None:
        yield {"name": f"the app with {VISITORS} visitors", "note": "left out: Gradio is not installed"}
        return
    from explorer.benchmarks import many_visitors as app

    with app.served(options) as served:
        seen = app.crowd(served, VISITORS, lanes=LANES, views=VIEWS)
    name = f"the app with {VISITORS} visitors, three lanes each"
    yield app.waits(f"{name}: 95th percentile of the waits for a step", seen)
    yield app.lost(f"{name}: steps that did not arrive", seen)


PARTS: dict[str, Part] = {
    "laws": laws,
    "shipped pair": pair,
    "trained head": head,
    "1.2 B": large,
    "mixture of experts": experts,
    "visitors": visitors,
    "vocabulary": vocabulary,
}
