"""How a strategy is declared: its parameters, its parts, and what it needs."""

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from decoders import memory_options as memory
from decoders.engine.capabilities import Capability
from decoders.parameters import Parameter, shortened
from decoders.refusal import Refusal
from decoders.strategy_files import views_before_run
from decoders.view_names import current

__all__ = ["Parameter", "Part", "Strategy", "shortened"]

# The views of a constraint: what it removed, where in its rules the output stands, and its automaton.
CONSTRAINT_VIEWS = {
    "none": (),
    "json_schema": ("constraint", "rules"),
    **dict.fromkeys(("regex", "lark", "gbnf", "choices"), ("constraint", "rules", "constraint_automaton")),
}

SWITCHED_VIEWS = {  # a parameter that is a switch -> the views that it adds
    "constraint_bias": ("bias",),
    "dependencies": ("graph",),
}


def constraint_views(kind: str) -> tuple[str, ...]:
    """The views that a kind of constraint adds to those of a strategy."""
    return CONSTRAINT_VIEWS.get(kind, ("constraint",))


def switched_views(parameters: dict[str, Any]) -> tuple[str, ...]:
    """The views that a lane's own switches add."""
    return tuple(view for name, views in SWITCHED_VIEWS.items() if parameters.get(name) for view in views)


def constrained(parameters: dict[str, Any]) -> bool:
    """Whether a lane with these parameters has a constraint."""
    return parameters.get("constraint", "none") != "none"


def parsed_parameters(
    strategy: str, declared: tuple[Parameter, ...], given: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """(the given parameters of a strategy, parsed; those of the lane's memory, with defaults). Raises Refusal
    with one sentence on an unknown name or an unusable value.
    """
    known = {p.name: p for p in declared}
    given, kept = memory.split_memory(given)
    for name in given:
        if name not in known:
            offer = ", ".join(known) or "none"
            raise Refusal(f"{strategy} has no parameter {shortened(name)}; it has: {offer}.")
    return {name: known[name].parse(value) for name, value in given.items()}, memory.check_memory(kept)


class PartId(StrEnum):
    """The parts that programs ask for, whatever their cards call them."""

    DRAFT_MODEL_CHAIN = "draft_model_chain"
    GREEDY_MATCH = "greedy_match"
    TOKEN_REJECTION = "token_rejection"
    LENIENT_REJECTION = "lenient_rejection"
    TYPICAL_ACCEPTANCE = "typical_acceptance"


@dataclass(frozen=True)
class Part:
    """A piece that a strategy is composed of. `kind`: drafter, verifier, processors, frontier, value ..."""

    kind: str
    name: str
    says: str  # what it does, in one sentence
    id: PartId | None = None


@dataclass(frozen=True)
class Strategy:
    """A way of decoding, declared once. `run(lane)` is a generator; each bare `yield` ends a step
    of its `lane.Lane`.
    """

    name: str
    title: str
    family: str
    summary: str
    run: Callable[[Any], Iterator[None]]
    parameters: tuple[Parameter, ...] = ()
    papers: tuple[str, ...] = ()
    needs: tuple[str, ...] = ("target",)
    may_use: tuple[str, ...] = ()  # roles of optional further models
    writes_with: str = "causal"  # the kind of model that it decodes with, see models/companions.py
    # (parameters, models) -> the model that drafts, if the strategy may prefer another one to the lane's
    draft_of: Callable[[dict, Mapping[str, Any]], Any] | None = None
    any_tokenizer: bool = False  # whether its draft may have another tokenizer than the target
    takes_memory: bool = True  # whether it can decode with a compressed cache, see memory_options.py
    follows: bool = False  # whether a server chooses the tokens, and the lane only records them
    view: str = "entropy"  # the picture with which the page opens a lane
    views: tuple[str, ...] = ()  # the pictures that it offers before it has run, see `views_before_run`
    badge: Callable[[dict], str] = lambda parameters: ""
    parts: Callable[[dict], list[Part]] = lambda parameters: []
    together: Callable[[dict], str | None] = lambda parameters: (
        None
    )  # a message if the values do not fit together
    # role -> what it reads from that model's engine besides log-probabilities
    reads: Callable[[dict], dict[str, Collection[Capability]]] = lambda parameters: {}
    suits: Callable[[dict, Any], str | None] = lambda parameters, target: (
        None
    )  # a message if the target lacks something beyond its engine's capabilities, such as experts

    def __post_init__(self) -> None:
        object.__setattr__(self, "view", current(self.views[0] if self.views else self.view))
        given = tuple(current(view) for view in self.views)
        object.__setattr__(self, "views", given or views_before_run(self.name, self.view))

    @cached_property
    def _defaults(self) -> dict[str, Any]:
        return {p.name: p.default for p in self.parameters}

    @cached_property
    def algorithm(self) -> str:
        """What its docstring says: a summary, and how it works, with numbered steps."""
        return inspect.getdoc(self.run) or ""

    def check(self, given: dict[str, Any]) -> dict[str, Any]:
        """`given` parsed, with defaults filled in. Raises Refusal with one sentence on an unknown name or
        an unusable value.
        """
        values, kept = parsed_parameters(self.name, self.parameters, given)
        values = self._defaults | values
        if problem := self.together(values):
            raise Refusal(problem)
        return values | kept

    def views_with(self, parameters: dict[str, Any]) -> tuple[str, ...]:
        """Its views, and those of its constraint and its memory."""
        own = (*self.views, *constraint_views(parameters.get("constraint", "none")))
        return tuple(dict.fromkeys((*own, *switched_views(parameters), *memory.views(parameters))))

    def declaration(self) -> dict:
        """The public form, as listed by `strategies --json`; other programs rely on it."""
        return {
            "name": self.name,
            "title": self.title,
            "family": self.family,
            "summary": self.summary,
            "papers": list(self.papers),
            "needs": list(self.needs),
            **({} if self.writes_with == "causal" else {"writes_with": self.writes_with}),
            "parameters": [
                {k: v for k, v in vars(p).items() if v is not None and v != () and (k, v) != ("group", "")}
                for p in self.parameters
            ],
            "views": list(self.views),
        }
