"""The values of `--draft`: a draft model, or a strategy that drafts by itself, such as one with the target's
own heads.
"""

from dataclasses import dataclass
from typing import Any

from decoders import registry
from decoders.heads import DraftModule
from decoders.models.loading import load
from decoders.refusal import Refusal
from decoders.suitability import with_shared_rows

WITH_MODEL = "speculative"  # how a draft model drafts: a chain of fixed length
# Parameter -> its value for a chain of K drafted tokens; the first that a strategy has is set.
LENGTHS = {
    "num_assistant_tokens": lambda count: count,
    "prompt_lookup_num_tokens": lambda count: count,
    "num_lookahead_tokens": lambda count: (
        count - 1
    ),  # of PaSS, whose chain begins with a token of the target's
    "depth": lambda count: count,  # of a head that drafts the tree "chain"
    "widths": lambda count: [1] * count,
}
NO_CHAIN = (
    "{} drafts in its own shape and not in chains of {} tokens; leave --num-assistant-tokens out (on the "
    "page: Drafted 0), and every drafter drafts in its own way."
)


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

    Raises Refusal with one sentence if there is neither, or if it does not fit the target.
    """
    known = registry.strategies().get(name)
    if known is not None:
        if known.family != "speculative" or known.needs != ("target",):
            raise Refusal(f"{known.title} drafts nothing by itself; name a draft model or another strategy.")
        heads = getattr(target, "heads", {})
        return Drafter(name, name, {"target": target}, heads.get(getattr(known.suits, "head", name)))
    draft = load(name, device)
    if draft.token_key != target.token_key:
        raise Refusal(
            f"The draft {name!r} has another tokenizer than the target {target.name!r}, so positions cannot "
            "be compared; name a draft with the same tokenizer."
        )
    models = with_shared_rows({"target": target, "draft": draft})
    return Drafter(name, WITH_MODEL, models, models["draft"])


def chain_of(strategy: str, count: int) -> dict[str, Any]:
    """The parameters with which a strategy drafts chains of `count` tokens, as vLLM does for every head.

    Raises Refusal with one sentence if it cannot.
    """
    known = registry.get(strategy)
    name, has_tree = length_of(strategy)
    if name is None:
        raise Refusal(NO_CHAIN.format(known.title, count))
    most = longest_chain(strategy, count)
    if count > most:
        raise Refusal(f"{known.title} drafts chains of at most {most} tokens, not {count}; ask for fewer.")
    return {name: LENGTHS[name](count)} | ({"tree": "chain"} if has_tree else {})


def longest_chain(strategy: str, wanted: int) -> int | None:
    """The longest chain, up to the wanted length, that a strategy drafts; None if it drafts none."""
    name, _ = length_of(strategy)
    if name is None or name == "widths":
        return None if name is None else wanted
    return min(wanted, next(one.high for one in registry.get(strategy).parameters if one.name == name))


def length_of(strategy: str) -> tuple[str | None, bool]:
    """The parameter that sets the length of a strategy's chains, None if it drafts none; and whether its
    parameter `tree` must say "chain".
    """
    declared = {one.name: one for one in registry.get(strategy).parameters}
    has_tree = "tree" in declared and "chain" in declared["tree"].choices
    return next((n for n in LENGTHS if n in declared and (n != "depth" or has_tree)), None), has_tree
