"""Constraints: the cost of compiling a grammar and of masking a token, relative to a forward, and how the app
survives a thousand random texts typed as constraints.

`python -m explorer.benchmarks.constraints_family` is the process that stands in for the app: it decodes a
lane under each text, so that a crash ends only this process.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from statistics import median
from typing import Any

from decoders import packages
from decoders.refusal import Refusal, said_by

TEXTS = 1000
PROMPT, TOKENS = "Once", 30  # of the lane under each text; at its temperature nearly any allowed token occurs
CLOCK = 120.0  # seconds after which the process counts as hung
KIND = "the app's process"


def constraints(options: argparse.Namespace) -> Iterator[dict]:
    """Compile and mask times on the schemas of the experiment structured-outputs, then the typed texts."""
    from decoders.constraints import xgrammars
    from explorer.benchmarks.typed_constraints import typed
    from explorer.experiments import structured_outputs
    from explorer.runs.load_pair import load_models
    from explorer.timing import figure

    models = load_models(options.model, options.draft, ("target", "draft"), "auto")
    schemas = json.loads(structured_outputs.SCHEMAS.read_text("utf-8"))
    forward = structured_outputs.forward_us(models)
    results = [structured_outputs.tried(models, one, "llguidance") for one in schemas]
    compiled = [one.compile_ms for one in results if one.taken]
    masks = sorted(us for one in results for us in one.token_us)
    yield figure(f"{len(compiled)} schemas: median compile time", median(compiled), "ms", 50, at_least=False)
    for name, us in (("median", median(masks)), ("95th percentile", masks[int(0.95 * len(masks))])):
        label = f"{len(masks)} tokens: {name} of mask and state update, relative to a target forward"
        yield figure(label, 100 * us / forward, "%", 15, at_least=False)
    texts = [typed(number) for number in range(TEXTS)]
    yield from fuzzed(texts, options.model, "llguidance")
    if find_spec("xgrammar"):
        yield from fuzzed([one for one in texts if one[0] in xgrammars.KINDS], options.model, "xgrammar")


def fuzzed(texts: list[tuple[str, str]], model: str, engine: str) -> Iterator[dict]:
    """How often the app's process ended, and how the texts were handled, with this constraint engine."""
    from decoders.constraints.engine_process import EngineProcess
    from explorer.timing import figure

    app = EngineProcess(packages.full("explorer.benchmarks.constraints_family"), KIND, CLOCK, "no answer")
    app.ask("load", model)
    answers = []
    for kind, text in texts:
        answers.append(app.ask(kind, text, engine) | {"kind": kind, "text": text})
        if "problem" in answers[-1]:
            app.ask("load", model)
    app.close()
    ended = [one for one in answers if "problem" in one]
    raised = [one for one in answers if one.get("raised")]
    here = [one for one in answers if "problem" not in one]
    yield figure(
        f"{len(texts)} typed texts, {engine}: crashes of the app's process",
        len(ended),
        "",
        0,
        at_least=False,
    )
    yield figure("texts that ended in another error", len(raised), "", 0, at_least=False)
    for name in ("making", "token"):
        slowest = max(here, key=lambda one: one[name])
        what = "start of a lane" if name == "making" else "step of a lane"
        label = f"slowest {what} ({slowest['kind']}): CPU time"
        yield figure(label, slowest[name], "s", 2, at_least=False, text=slowest["text"][:200])
    sentences = [one["sentence"] for one in here if one["sentence"]]
    for words, says in (("crashed over it", "a crash"), ("took more than", "a hang")):
        count = sum(words in sentence for sentence in sentences)
        yield figure(f"refusals because of {says} in {engine}'s own process", count, "", None, False)
    yield figure("texts that worked", len(here) - len(sentences), "", None, at_least=True)
    yield figure("texts that were refused with a sentence", len(sentences), "", None, at_least=True)
    for one in (ended + raised)[:5]:
        yield {"name": f"{one['kind']} {one['text'][:80]!r}", "note": one.get("problem") or one["raised"]}


def lived(kind: str, text: str, model: Any, engine: str = "llguidance") -> dict:
    """Decodes a lane under a typed text: `sentence` if it was refused, `raised` for any other error, and the
    processor seconds that creating the lane (`making`) and its slowest step (`token`) took.
    """
    from decoders.lane import Lane, Limits

    asked = {"constraint": kind, "constraint_text": text, "constraint_engine": engine, "temperature": 3.0}
    answer = {"sentence": "", "raised": "", "making": 0.0, "token": 0.0}
    began = time.process_time()
    try:
        lane = Lane("sample", model.encode(PROMPT), {"target": model}, asked, 0, Limits(TOKENS))
    except Refusal as problem:  # as the page shows it
        answer["sentence"] = str(problem)
        lane = None
    except Exception as error:  # any other error is a bug, which is what the benchmark looks for
        answer["raised"] = f"{type(error).__name__}: {said_by(error)}"
        lane = None
    answer["making"] = time.process_time() - began
    try:
        while lane is not None and lane.trace.ended is None:
            began = time.process_time()
            lane.advance()
            answer["token"] = max(answer["token"], time.process_time() - began)
    except Exception as error:
        answer["raised"] = f"{type(error).__name__}: {said_by(error)}"
    sentence = answer["sentence"]
    if sentence and (not sentence.endswith(".") or "\n" in sentence or len(sentence) > 250):
        answer["raised"] = f"Not one sentence: {said_by(sentence)}"
    return answer


def main() -> None:
    """Answers requests on standard input, one JSON line each: ["load", model], then [kind, text, engine]."""
    from decoders.models import load

    model = None
    for line in sys.stdin:
        kind, text, *engine = json.loads(line)
        if kind == "load":
            model = load(text, "cpu")
        print(json.dumps({} if kind == "load" else lived(kind, text, model, *engine)), flush=True)


if __name__ == "__main__":
    main()
