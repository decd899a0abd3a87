"""Is it really greedy's text?

Each strategy that promises greedy's text at temperature 0 writes after two hundred prompts. How many of the
texts are greedy's, token for token? Where rounding breaks a tie of the likeliest two tokens, that is counted
apart.
"""

import torch

from decoders.trace.trace import Trace
from explorer.experiments import Models, Result
from explorer.experiments.asked import KINDS, decoded, lossless, prompts, without_chance

PAPERS = ()
PROMPTS, TOKENS = 200, 16
TIE = 1e-4  # logits that are closer than this are a tie


def asked() -> list[str]:
    """The prompts: those of stories, and as many problems of each other kind."""
    stories = prompts("stories", PROMPTS)
    kinds = [kind for kind in KINDS if kind != "stories"]
    problems = [prompts(kind, PROMPTS) for kind in kinds]
    mixed = [text for row in zip(*problems, strict=True) for text in row]
    return [*stories, *mixed][:PROMPTS]


def tied(models: Models, plain: Trace, at: int) -> bool:
    """Whether the likeliest two tokens at place `at` of greedy's text are a tie, asked of the target anew."""
    model = models["target"].model
    ids = torch.tensor([[*plain.prompt, *plain.output()[:at]]], device=model.device)
    with torch.inference_mode():
        top = model(ids).logits[0, -1].float().topk(2).values
    return float(top[0] - top[1]) < TIE


def run(models: Models) -> Result:
    """A row a strategy: texts that are greedy's, that part at a tie, and that are others."""
    texts = asked()
    plain = [decoded(models, "greedy", text, TOKENS) for text in texts]
    rows = []
    for name in lossless():
        equal = ties = 0
        for text, wanted in zip(texts, plain, strict=True):
            found = decoded(models, name, text, TOKENS, **without_chance(name)).output()
            if found == wanted.output():
                equal += 1
                continue
            pairs = zip(found, wanted.output(), strict=False)
            at = next((i for i, (a, b) in enumerate(pairs) if a != b), None)
            ties += at is not None and tied(models, wanted, at)
        rows.append([name, equal, ties, len(texts) - equal - ties])
    other = sum(row[3] for row in rows)
    says = [
        f"Of {len(rows) * len(texts)} texts {sum(row[1] for row in rows)} are greedy's, "
        f"{sum(row[2] for row in rows)} part at a tie, {other} are others."
    ]
    return Result(["strategy", "equal", "parted at a tie", "other"], rows, says)
