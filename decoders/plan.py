"""What a lane is asked to do, checked before anything is computed: whatever is refused is refused here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from decoders import model_defaults, registry, stopping, suitability, token_healing
from decoders.callbacks import Callbacks
from decoders.constraints.constraint import FORBIDDEN, Constraint, States
from decoders.constraints.kinds import constraint_of
from decoders.engine.capabilities import RECORDED
from decoders.engine.tree import Tree
from decoders.limits import Limits
from decoders.logits.distributions import ProcessorContext
from decoders.memory.lane_memory import LaneMemory, drafts_stay_exact, memory_of
from decoders.model_interface import Model
from decoders.refusal import Refusal
from decoders.strategy import Strategy
from decoders.trace import given_tokens
from decoders.trace.code import Code
from decoders.trace.trace import Trace


@dataclass(frozen=True)
class Plan:
    """A lane before its first step."""

    strategy: Strategy
    parameters: dict[str, Any]  # all of the strategy's, those of its memory included
    models: dict[str, Model]  # by role, one of them with its memory
    memory: LaneMemory | None
    prompt: list[int]  # without a token that is healed
    healing: list[int]  # the tokens that may stand for the healed one, itself first; none if none is healed
    given: list[int]  # tokens after the prompt with which the lane begins
    forced: list[int]  # places of given tokens that a person chose
    room: int  # tokens that may stand after the prompt, the given ones included
    eos: frozenset[int]
    stop_strings: tuple[bytes, ...]
    constraint: Constraint | None
    taken: dict[str, Any]  # what comes from the model's own files
    shaping: dict[str, Any]  # the processors that the parameters and the model's own settings switch on

    @property
    def target(self) -> Model:
        return self.models["target"]

    def trace(self, seed: int) -> Trace:
        """The trace of the lane, without a step."""
        generation = self.target.generation
        return Trace(
            strategy=self.strategy.name,
            title=self.strategy.title,
            parameters=self.parameters,
            seed=seed,
            models={role: model.name for role, model in self.models.items()},
            prompt=list(self.prompt),
            badge=model_defaults.badge(self.strategy, self.parameters, generation),
            model_defaults=self.taken,
            code=Code(self.strategy.algorithm),
            lacks=[c.value for c in RECORDED if not self.target.engine.gives(c)],
        )

    def notes(self) -> list[str]:
        """What a reader should know before the first step, a sentence each."""
        exact = drafts_stay_exact(self.parameters, self.strategy.badge(self.parameters))
        return [
            *model_defaults.sentences(self.parameters, self.target.generation),
            *(self.constraint.notes if self.constraint else ()),
            *([exact] if exact else ()),
        ]

    def processor_context(self, coin: Callable[..., bool]) -> ProcessorContext:
        """What the processors know of the lane. coin: their random decisions."""
        return ProcessorContext(
            self.target.engine.vocabulary,
            tuple(sorted(self.eos)),
            len(self.prompt),
            getattr(self.target, "cut", None),  # a table of probabilities reads no text
            length=len(self.prompt) + self.room,
            keep=1 + len(self.eos) if self.parameters.get("do_sample") else 1,  # of each beam
            coin=coin,
            bytes_of=self.target.bytes_of,
        )


def plan_of(
    name: str,
    prompt: list[int],
    models: Mapping[str, Model],
    parameters: dict[str, Any],
    limits: Limits,
    begin: dict[str, Any] | None,
    callbacks: Callbacks,
    processors: Mapping[str, Any],
) -> Plan:
    """The plan of the strategy of this name; for the arguments see `lane.Lane`. processors: functions of the
    caller, by the names of `generate`.

    Raises Refusal with one sentence for an unusable prompt, parameter, limit, begin or missing model.
    """
    strategy = registry.get(name)
    parameters = strategy.check(parameters)
    models = models_of(strategy, parameters, models, callbacks)
    memory = memory_of(parameters, models)
    if memory is not None:
        models = models | {memory.role: memory.model}
    target = models["target"]
    if limits.max_new_tokens < 1:
        raise Refusal(f"max_new_tokens must be at least 1, not {limits.max_new_tokens}.")
    check_tokens(prompt, target)
    prompt, healing = token_healing.cut(parameters, target, prompt)
    eos = stopping.eos_of(parameters, target)
    stop_strings = stopping.stop_strings_of(parameters)
    room = min(limits.max_new_tokens, context_for(prompt, models) - len(prompt))
    room = stopping.room_of(parameters, len(prompt), room)
    given, forced = [], []
    if begin:
        given, forced = given_tokens.check_given_tokens(begin, eos, room, target.engine.vocabulary)
    constraint = constraint_of(parameters, target, eos, b"".join(map(target.bytes_of, prompt)))
    if constraint and given and forbids(constraint, prompt, given, eos):
        raise Refusal("The constraint forbids the tokens with which this lane begins; change one of them.")
    if any(processors.values()) and "model_defaults" not in parameters:
        raise Refusal(f"{strategy.title} takes no processors; use one that does, such as greedy.")
    taken = model_defaults.used(parameters, target.generation) | own_delimiters(parameters, target)
    return Plan(
        strategy,
        parameters,
        models,
        memory,
        prompt,
        healing,
        given,
        forced,
        room,
        eos,
        stop_strings,
        constraint,
        taken,
        shaping=model_defaults.shaping(parameters, taken) | processors,
    )


def own_delimiters(parameters: dict[str, Any], target: Model) -> dict[str, str]:
    """What the lane takes from the target's chat template, see `thinking.own_delimiters`."""
    template = target.chat_template
    if not template and not parameters.get("span_delimiters"):
        return {}
    from decoders import thinking  # few lanes need it

    return thinking.own_delimiters(parameters, template)


def models_of(
    strategy: Strategy, parameters: dict[str, Any], models: Mapping[str, Model], callbacks: Callbacks
) -> dict[str, Model]:
    """The models that the strategy uses, by role, with the same rows for the same tokens. Raises Refusal if
    they or the callbacks cannot run it.
    """
    unsuitable = suitability.problem(strategy, parameters, models)
    if problem := unsuitable or callbacks.lacks(strategy.parts(parameters)):
        raise Refusal(problem)
    taken = suitability.taken(strategy, parameters, models)
    roles = (*strategy.needs, *strategy.may_use)
    used = {role: taken[role] for role in roles if role in taken} | {"target": taken["target"]}
    return suitability.with_shared_rows(used)


def check_tokens(prompt: list[int], target: Model) -> None:
    """Raises Refusal if the prompt has a token that the target does not score."""
    vocabulary = target.engine.vocabulary
    for token in {min(prompt, default=0), max(prompt, default=0)}:
        if not 0 <= token < vocabulary:
            raise Refusal(
                f"The prompt has the token {token:,}, and {target.name!r} scores {vocabulary:,} tokens; "
                "change the prompt, or use the tokenizer that belongs to the model."
            )


def context_for(prompt: list[int], models: Mapping[str, Model]) -> int:
    """The tokens that all models can read. Raises Refusal if the prompt leaves no room for one more."""
    role, context = "model", models["target"].context
    for other, model in models.items():
        if model.context < context:
            role, context = f"{other} {model.name!r}", model.context
    if len(prompt) >= context:
        raise Refusal(
            f"The prompt has {len(prompt):,} tokens, but the {role} reads at most {context:,}, and "
            f"one more must fit; shorten the prompt by {len(prompt) - context + 1:,} tokens."
        )
    return context


def forbids(constraint: Constraint, prompt: Sequence[int], given: Sequence[int], eos: frozenset[int]) -> bool:
    """Whether no allowed text begins with the given tokens."""
    tree = Tree([*prompt, *given])
    return States(constraint, tree, len(prompt), eos).at(tree.trunk - 1) is FORBIDDEN
