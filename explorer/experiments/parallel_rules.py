"""Which masks a forward fills: the rules that are compared, in families that are one curve each. A rule is a
strategy with its parameters; its strategy says which kind of model it needs.
"""

from dataclasses import dataclass
from typing import Any

from decoders.registry import strategies
from decoders.strategy import Strategy
from explorer.experiments import Models


@dataclass(frozen=True)
class Rule:
    """A strategy and its parameters. Rules of a family form a curve."""

    family: str
    label: str
    strategy: str
    parameters: dict

    @property
    def of(self) -> Strategy:
        """The registered strategy of the rule."""
        return strategies()[self.strategy]

    @property
    def training_free(self) -> bool:
        """Whether it needs only a masked-diffusion model and nothing trained for the rule."""
        return self.of.writes_with == "diffusion" and self.of.needs == ("target",) and self not in LEARNED


def masked(family: str, label: str, **parameters: Any) -> Rule:
    """A rule of masked diffusion."""
    return Rule(family, label, "masked_diffusion", parameters)


QUOTAS = tuple(masked("quota", f"quota {k}", tokens_per_forward=k) for k in (1, 2, 4, 8, 16))
LEARNED = tuple(
    Rule("Learn2PD, a trained filter", f"filter {theta}", "learn2pd", {"theta": theta, "eotp": False})
    for theta in (0.96, 0.8, 0.5)
)
AT_ONCE = (  # one forward's predictions for the masks decide
    *QUOTAS,
    *(masked("threshold", f"threshold {tau}", policy="threshold", tau=tau) for tau in (0.9, 0.7, 0.5)),
    *(masked("factor", f"factor {f}", policy="factor", factor=f) for f in (0.7, 1.0, 1.9)),
    *(masked("entropy bound", f"entropy bound {g}", policy="entropy bound", gamma=g) for g in (0.1, 1.0)),
    Rule("LocalLeap", "local leap", "local_leap", {}),
    *LEARNED,
)
VERIFIED = (  # verified by further canvases in the same forward
    *(Rule("LoPA", f"LoPA {n}", "lopa", {"branches": n}) for n in (1, 3)),
    Rule("FreeDave, lossless", "FreeDave 4", "freedave", {}),
    *(
        Rule("FreeDave++", f"FreeDave++ {tau}", "freedave", {"policy": "threshold", "tau": tau})
        for tau in (0.99, 0.9)
    ),
    Rule("SSD, lossless", "SSD 8", "ssd", {}),
)
OTHER_MODELS = (  # another model verifies or writes
    *(
        Rule("APD, the draft judges", f"APD {r}", "apd", {"mixture_weight": r, "temperature": 0.0})
        for r in (0.5, 0.9)
    ),
    *(Rule("WeDLM, its own model", f"WeDLM {tau}", "wedlm", {"tau": tau}) for tau in (0.0, 0.4, 0.8)),
    *(
        Rule("Set Block Decoding, its own model", f"set block {g}", "set_block", {"gamma": g})
        for g in (0.0, 0.1, 1.0)
    ),
)
RULES = (*AT_ONCE, *VERIFIED, *OTHER_MODELS)
FOUR = {"tokens_per_forward": 4}
VARIANTS = (
    *(masked("order", f"quota 4, {o}", order=o, **FOUR) for o in ("margin", "entropy", "random")),
    masked("order", "quota 4, left to right", order="left to right", **FOUR),
    masked("block", "quota 4, blocks of 8", block_length=8, **FOUR),
    masked("temperature", "quota 4, temperature 1", temperature=1.0, **FOUR),
)


def writers(models: Models, rule: Rule) -> str:
    """The names of the models with which a rule writes and verifies."""
    name = models["target"].companion(rule.of.writes_with).name
    return f"{name}, judged by {models['draft'].name}" if "draft" in rule.of.needs else name
