"""The values of `--draft`: a draft model, or a strategy that drafts by itself, such as one with the target's
own heads. Knows models and the registry, no strategy by name.
"""

from dataclasses import dataclass
from typing import Any

from decoders import registry
from decoders.heads import DraftModule
from decoders.models.loading import load
from decoders.refusal import Refusal

WITH_MODEL = "speculative"  # how a draft model drafts: a chain of fixed length


@dataclass(frozen=True, eq=False)
class Drafter:
    """A drafter: its name, the strategy that decodes with it, and the models that the strategy needs.
    `guesser`: the draft model or head that predicts along a given text; None if the strategy has neither.
    """

    name: str
    strategy: str
    models: dict[str, Any]
    guesser: Any | DraftModule | None


def drafter(name: str, target: Any, device: str = "auto") -> Drafter:
    """The drafter called `name`: a strategy that drafts with the target alone, otherwise a model.

    Raises ValueError with one sentence if there is neither, or if it does not fit the target.
    """
    known = registry.strategies().get(name)
    if known is not None:
        if known.family != "speculative" or known.needs != ("target",):
            raise Refusal(f"{known.title} drafts nothing by itself; name a draft model or another strategy.")
        heads = getattr(target, "heads", {})
        return Drafter(name, name, {"target": target}, heads.get(name))
    draft = load(name, device)
    if draft.token_key != target.token_key:
        raise Refusal(
            f"The draft {name!r} has another tokenizer than the target {target.name!r}, so positions cannot "
            "be compared; name a draft with the same tokenizer."
        )
    return Drafter(name, WITH_MODEL, {"target": target, "draft": draft}, draft)
