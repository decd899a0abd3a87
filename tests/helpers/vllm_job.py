"""Run by the Python that has vLLM: decodes each case of a job twice, watched the second time, and prints what
came of it as one line of JSON that begins with `RESULT `. The traces go into a folder.
"""

import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

PREFIX = "vllm:spec_decode_"


def counts(llm: Any) -> dict[str, Any]:
    """vLLM's own counts of speculative decoding so far."""
    found = {}
    for metric in llm.get_metrics():
        if metric.name.startswith(PREFIX):
            values = getattr(metric, "values", None)
            found[metric.name.removeprefix(PREFIX)] = metric.value if values is None else list(values)
    return found


def difference(after: Any, before: Any) -> Any:
    """What was counted in between."""
    if isinstance(after, dict):
        return {name: difference(value, before.get(name, 0)) for name, value in after.items()}
    if isinstance(after, list):
        return [difference(a, b) for a, b in zip(after, before or [0] * len(after), strict=True)]
    return after - before


def mend_expansion() -> None:
    """vLLM 0.32's CPU kernel converts what it is to write into (temperatures, top-k) to whole numbers and
    writes into the copy: this does what the kernel of GPUs does.
    """
    from vllm.utils import cpu_triton_utils

    def expand(output: Any, values: Any, ends: Any, old: Any, new: Any, MAX_NUM_TOKENS: Any = None) -> None:  # noqa: N803
        start = 0
        for value, end in zip(values.tolist(), ends.tolist(), strict=True):
            output[start:end] = new if value == old else value
            start = end

    cpu_triton_utils._expand_kernel_impl = expand


def run(job: dict[str, Any]) -> list[dict[str, Any]]:
    """The cases of a job, each decoded twice by one engine."""
    if job.get("mended"):
        mend_expansion()
    import torch
    from vllm import LLM, SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    from decoders import watch

    llm = LLM(**job["llm"])
    found = []
    for number, case in enumerate(job["cases"]):
        params = dict(case["params"])
        if "structured" in case:
            params["structured_outputs"] = StructuredOutputsParams(**case["structured"])
        params, texts = SamplingParams(**params), []
        for watched in (False, True):
            torch.manual_seed(number)  # drafts are drawn with the global generator, here in this process
            if watched:
                before, problems = counts(llm), []
                with warnings.catch_warnings(record=True) as caught, watch(llm) as run:
                    outputs = llm.generate(case["prompts"], params, use_tqdm=False)
                time.sleep(0.2)
                problems = [str(one.message) for one in caught if "watch" in str(one.message)]
            else:
                outputs = llm.generate(case["prompts"], params, use_tqdm=False)
            texts.append([list(output.outputs[0].token_ids) for output in outputs])
        for at, trace in enumerate(run.traces):
            trace.save(Path(job["folder"], f"{number}-{at}.json"))
        found.append(
            {
                "plain": texts[0],
                "watched": texts[1],
                "text": [output.outputs[0].text for output in outputs],
                "counts": difference(counts(llm), before),
                "problems": problems,
                "traces": len(run.traces),
            }
        )
    return found


if __name__ == "__main__":
    print("RESULT " + json.dumps(run(json.loads(sys.argv[1]))))
