"""Do lossless methods really write greedy's text?

Each strategy that promises greedy's text at temperature 0 continues two hundred prompts. How many of the
texts are equal to greedy's, token for token? Texts that first differ where rounding breaks a tie between the
two most likely tokens are counted separately.
"""

from collections.abc import Sequence

import torch

from decoders.trace.trace import Trace
from explorer.experiments import Cell, Models, Result, progress
from explorer.experiments.asked import KINDS, decoded, lossless, prompts, without_sampling
from explorer.experiments.basis import Basis
from explorer.experiments.reading import count, rows_of
from explorer.experiments.spread import over

PAPERS = ()
PROMPTS, TOKENS = 200, 16
TIE = 1e-4  # logits closer than this count as tied


def asked() -> list[str]:
    """The prompts: beginnings of stories, and equally many problems of each other kind."""
    stories = prompts("stories", PROMPTS)
    kinds = [kind for kind in KINDS if kind != "stories"]
    problems = [prompts(kind, PROMPTS) for kind in kinds]
    mixed = [text for row in zip(*problems, strict=True) for text in row]
    return [*stories, *mixed][:PROMPTS]


def tied(models: Models, plain: Trace, at: int) -> bool:
    """Whether the two most likely tokens at position `at` of greedy's text are tied, by asking the target
    again.
    """
    model = models["target"].model
    ids = torch.tensor([[*plain.prompt, *plain.output()[:at]]], device=model.device)
    with torch.inference_mode():
        top = model(ids).logits[0, -1].float().topk(2).values
    return float(top[0] - top[1]) < TIE


def compared(models: Models, name: str, text: str, plain: Trace) -> str:
    """`equal` if a strategy writes greedy's text, `tie` if it first differs at a tie, otherwise `other`."""
    output = decoded(models, name, text, TOKENS, **without_sampling(name)).output()
    if output == plain.output():
        return "equal"
    pairs = zip(output, plain.output(), strict=False)
    at = next((i for i, (a, b) in enumerate(pairs) if a != b), None)
    return "tie" if at is not None and tied(models, plain, at) else "other"


def run(models: Models, known: Sequence[list[Cell]] = ()) -> Result:
    """One row per strategy: texts that equal greedy's, that differ at a tie, and others. Strategies with a
    row in `known` are not run again.
    """
    texts, names = asked(), lossless()
    by_name = {row[0]: row for row in known if row[0] in names}
    missing = [name for name in names if name not in by_name]
    with progress.part(1 / (1 + len(missing))):
        plain = over(models, decoded, [("greedy", text, TOKENS) for text in texts if missing])
    for name in progress.each(missing):
        kinds = over(models, compared, [(name, *pair) for pair in zip(texts, plain, strict=True)])
        equal, ties = kinds.count("equal"), kinds.count("tie")
        by_name[name] = [name, equal, ties, len(texts) - equal - ties]
    rows = [by_name[name] for name in names]
    other = sum(row[3] for row in rows)
    says = [
        f"{sum(row[1] for row in rows):,} of {len(rows) * len(texts):,} texts equal greedy's; "
        f"{sum(row[2] for row in rows):,} differ first at a tie, {other:,} elsewhere."
    ]
    return Result(["strategy", "equal", "differs at a tie", "other"], rows, says)


def finding(answer: dict) -> str:
    """How many of the texts equal greedy's."""
    rows = rows_of(answer)
    equal = sum(row["equal"] for row in rows)
    texts = equal + sum(row["differs at a tie"] + row["other"] for row in rows)
    share = f"All {equal:,}" if equal == texts else f"{equal:,} of {texts:,}"
    return (
        f"{share} texts by {count(len(rows), 'method')} that promise greedy's text are greedy's, token for "
        "token."
    )


STANDS = Basis(exact="each text was compared with greedy's token for token")
