"""Records of lm-evaluation-harness, as --log_samples writes them: one document a line, with the arguments of
each request and its answers. A choice among options has the log-likelihood of each; a generation has a text.
"""

from typing import Any

from decoders.refusal import Refusal
from decoders.trace.imports.answer import NO_SCALE, Answer, Option, Unlisted, Written

METRICS = ("acc_norm", "acc", "exact_match", "em", "f1", "pass@1", "pass_at_1")  # the first that a record has
UNUSABLE = "This record of lm-evaluation-harness has no answers (resps)."


def fits(record: dict) -> bool:
    """Whether a record is a sample of the harness."""
    return "doc_id" in record and "resps" in record


def read(record: dict) -> Answer:
    """The options with their log-likelihoods, or the text that was generated. Raises Refusal with one
    sentence.
    """
    answers, asked = record["resps"], arguments(record)
    score = next((float(record[m]) for m in METRICS if isinstance(record.get(m), int | float)), None)
    prompt = asked[0][0] if asked else None
    target = record.get("target")
    notes = [f"The right answer: {str(target)[:200]}"] if target is not None else []
    if not answers:
        raise Refusal(UNUSABLE)
    first = answers[0][0]
    if isinstance(first, str):
        own = Written(Unlisted(first.encode(), 0, None), [])
        return Answer("lm-eval", [own], prompt=prompt, text=first, scale=NO_SCALE, score=score, notes=notes)
    options = [
        Option(asked[at][1] if at < len(asked) else f"option {at + 1}", *likelihood(one[0]))
        for at, one in enumerate(answers)
    ]
    return Answer("lm-eval", options=options, prompt=prompt, processed=False, score=score, notes=notes)


def likelihood(answer: Any) -> tuple[float, bool]:
    """The log-likelihood of an option and whether greedy decoding would write it; both may be written as
    texts.
    """
    return float(answer[0]), str(answer[1]) == "True" if len(answer) > 1 else False


def arguments(record: dict) -> list[tuple[str, str]]:
    """(context, continuation) of each request; a generation has settings in the place of the second."""
    given = record.get("arguments")
    rows = list(given.values()) if isinstance(given, dict) else given if isinstance(given, list) else []
    pairs = [list(row.values()) if isinstance(row, dict) else row for row in rows]
    return [(str(pair[0]), str(pair[1])) for pair in pairs if isinstance(pair, list) and len(pair) > 1]
