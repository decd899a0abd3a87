"""`python -m explorer run` and `compare`: decode a prompt that `run_request` has checked, print texts and
costs, and save what is to be saved.
"""

import argparse
import json
import sys
from pathlib import Path

from decoders import files, registry
from decoders.lane import Lane, Limits
from decoders.models.named_heads import check_heads_used
from decoders.refusal import Refusal
from decoders.trace.trace import Trace
from explorer.runs.callbacks import CALLBACKS, check_tests
from explorer.runs.load_pair import load_models
from explorer.runs.run_summary import before_text, sequences, summary
from visualizers.analysis.cost_summary import in_words


def run(options: argparse.Namespace, prompt: str, lanes: list[dict]) -> None:
    """Decodes the prompt and prints the text and its costs, or one JSON object."""
    if options.width_mm is not None:
        check_print(options)
    (trace,) = decode(options, prompt, lanes)
    if options.figure or options.graph or options.drafted_tokens:
        save_extract(trace, options)
    elif options.out:
        save(options.out, prompt, options, [trace])
    if options.json:
        print(json.dumps(summary(trace)))
    else:
        print_result(prompt, trace)


def compare(options: argparse.Namespace, prompt: str, lanes: list[dict]) -> None:
    """Decodes the prompt in each lane and prints their texts, their costs and where they differ, or one JSON
    object.
    """
    from visualizers.analysis import comparison, first_difference  # which `run` does not need

    traces = decode(options, prompt, lanes)
    if options.out:
        save(options.out, prompt, options, traces)
    found = comparison.compare(traces)
    if options.json:
        compared = {name: found[name] for name in ("sentence", "divergence", "pairs")}
        print(json.dumps({"prompt": prompt, "lanes": [summary(trace) for trace in traces], **compared}))
        return
    for number, trace in enumerate(traces, 1):
        print(f"{number}. {trace.title}")
        print_result(prompt, trace)
        print()
    print(found["sentence"])
    for pair in found["pairs"]:
        if pair["position"] is not None:
            print(first_difference.pair_sentence(pair))


def decode(options: argparse.Namespace, prompt: str, lanes: list[dict]) -> list[Trace]:
    """Decodes every lane to its end. Raises Refusal with one sentence."""
    strategies = [registry.get(lane["strategy"]) for lane in lanes]
    for strategy, lane in zip(strategies, lanes, strict=True):
        check_tests(strategy, strategy.check(lane["parameters"]), prompt)
    needs = tuple({role for strategy in strategies for role in (*strategy.needs, *strategy.may_use)})
    models = load_models(options.model, options.draft, needs, options.device, options.heads)
    ids, limits = models["target"].encode(prompt), Limits(max_new_tokens=options.max_new_tokens)
    made = (
        Lane(one["strategy"], ids, models, one["parameters"], one["seed"], limits, callbacks=CALLBACKS)
        for one in lanes
    )
    traces = [decoded(lane, options.stop_when) for lane in made]
    check_heads_used(models)
    return traces


def decoded(lane: Lane, stop_when: list[str]) -> Trace:
    """A lane's trace up to its end, or to the first step at which one of the conditions holds."""
    if not stop_when:
        return lane.run()
    from decoders.stop_when import stops  # which few runs need

    for found in stops(lane, stop_when):
        said = "; ".join(stop.sentence for stop in found)
        lane.close(f"Stopped after step {found[0].step + 1}: {said}.")
    return lane.trace


def save(out: Path, prompt: str, options: argparse.Namespace, traces: list[Trace]) -> None:
    """Writes the lanes with what was asked, see `saving.save`."""
    from explorer.export import saving
    from explorer.export.run_file import settings

    saving.save(out, {**settings(traces), "prompt": prompt, "max_new_tokens": options.max_new_tokens}, traces)


def check_print(options: argparse.Namespace) -> None:
    """Raises Refusal with one sentence if a figure for print cannot be written: asked before decoding."""
    from visualizers.figures.for_print import check_width

    if not options.figure:
        raise Refusal("--width-mm is the width of a figure: name its view, such as --figure draft_rounds.")
    check_width(options.width_mm)


def save_extract(trace: Trace, options: argparse.Namespace) -> None:
    """Writes a figure, a graph or the drafted tokens of a trace. Raises Refusal with one sentence."""
    from visualizers import figures, graphs
    from visualizers.analysis.drafted_tokens import drafted_csv

    if options.out is None:
        raise Refusal(
            "--figure, --graph and --drafted-tokens write a file; name it with --out, such as beams.html."
        )
    if options.drafted_tokens:
        files.write(options.out, drafted_csv(trace))
    elif options.figure and options.width_mm is not None:
        printed = figures.for_print(trace, options.figure, width_mm=options.width_mm)
        printed.save(options.out)
        if printed.note:
            print(printed.note, file=sys.stderr)
    elif options.figure:
        figures.save(trace.figure(options.figure), options.out)
    else:
        graphs.save(trace.graph(options.graph), options.out)


def print_result(prompt: str, trace: Trace) -> None:
    """Prints the text, or all texts if several were requested, the costs, and why the lane ended."""
    texts, prompt = sequences(trace), before_text(prompt, trace)
    if len(texts) == 1:
        print(prompt + trace.text())
    else:
        for rank, sequence in enumerate(texts, 1):
            score = "" if sequence["score"] is None else f" ({sequence['score']:.4f})"
            print(f"{rank}.{score} {prompt}{sequence['text']}")
    print("\n" + in_words(trace.costs))
    print(trace.ended)
