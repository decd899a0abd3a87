"""The lenses that there are, by name: a lens is a function of a model and a text, declared in a file of its
own. These files import no torch, since the page opens with them; the code that computes is imported when a
lens runs.

The page, the command line and the list of papers are made from the declarations alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from decoders import packages
from decoders.engine.capabilities import Capability
from decoders.lenses.frame import LensFrame
from decoders.refusal import Refusal
from decoders.strategy import Parameter, shortened

NAMES = ("logit", "tuned", "decoder", "flow", "kl_trace")  # of the lenses and their files, the simplest first
MAX_TOKENS = 512  # of a text that a lens reads


@dataclass(frozen=True)
class Lens:
    """`look(model, tokens, options)` reads a text and gives a LensFrame. `parameters` are its options,
    `shows` those of its pictures, which need no further forward.
    """

    name: str
    title: str
    summary: str
    explains: str  # how it works, as Markdown
    look: Callable[[Any, list[int], dict[str, Any]], LensFrame]
    papers: tuple[str, ...] = ()
    needs: tuple[Capability, ...] = (Capability.HIDDEN_STATES,)  # of the model's engine
    reads: str = "causal"  # the kind of model: "causal", or "seq2seq", whose text is the encoder's source
    parameters: tuple[Parameter, ...] = ()
    shows: tuple[Parameter, ...] = ()
    limit: int = MAX_TOKENS
    figures: tuple[str, ...] = ("grid",)  # functions of visualizers/figures/lenses.py that draw it
    suits: Callable[[Any], str | None] = lambda model: None  # a sentence if the model lacks more

    def check(self, given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Its options and those of its pictures: defaults filled in, values parsed. Raises Refusal with one
        sentence.
        """
        known = {p.name: p for p in (*self.parameters, *self.shows)}
        for name in given:
            if name not in known:
                offer = ", ".join(known) or "none"
                raise Refusal(f"{self.title} has no option {shortened(name)}; it has: {offer}.")
        values = {name: p.parse(given[name]) if name in given else p.default for name, p in known.items()}
        own = {p.name for p in self.parameters}
        read = {name: value for name, value in values.items() if name in own}
        return read, {name: value for name, value in values.items() if name not in own}

    def reader(self, model: Any) -> Any:
        """The model that it looks into: this one, or the encoder-decoder that has its tokens. Raises Refusal
        with one sentence if there is none, or if it gives too little.
        """
        if self.reads == "seq2seq" and model.model_kind != self.reads:
            model, name = model.companion(self.reads), model.name
            if model is None:
                raise Refusal(
                    f"{self.title} reads an encoder-decoder, and none is shipped with the tokens of "
                    f"{name!r}; choose llama-tiny."
                )
        if problem := self.problem(model):
            raise Refusal(problem)
        return model

    def problem(self, model: Any) -> str | None:
        """Why it cannot look into a model, as a sentence; None if it can."""
        if self.reads != "causal":
            return None
        engine = model.engine
        for capability in self.needs:
            if not engine.gives(capability):
                return (
                    f"{self.title} reads {capability} of the target, which {engine.kind} does not give; "
                    f"choose {engine.remedy}."
                )
        return self.suits(model)


_LENSES: dict[str, Lens] = {}


def lens(**declaration: Any) -> Callable[[Callable], Callable]:
    """Decorator: registers the function below it. Its docstring is what people read of it: the first line is
    the summary, the rest says how it works.
    """

    def register(look: Callable) -> Callable:
        summary, _, explains = (look.__doc__ or "").strip().partition("\n")
        made = Lens(look=look, summary=summary, explains=explains.strip(), **declaration)
        _LENSES[made.name] = made
        return look

    return register


@cache
def lenses() -> dict[str, Lens]:
    """All lenses by name, the simplest first."""
    for name in NAMES:
        packages.module(f"decoders.lenses.{name}")
    return {name: _LENSES[name] for name in NAMES}


def find(name: str) -> Lens:
    """The lens called `name`. Raises Refusal with one sentence if there is none."""
    if name not in lenses():
        raise Refusal(f"There is no lens {shortened(name)}; choose one of: {', '.join(lenses())}.")
    return _LENSES[name]


def look(name: str, model: Any, tokens: list[int], given: dict[str, Any] | None = None) -> LensFrame:
    """What a lens sees in a text of T >= 1 tokens. Raises Refusal with one sentence for an unknown lens or
    option, a model that it cannot read, or a text that is too long.
    """
    chosen = find(name)
    options, _ = chosen.check(given or {})
    model = chosen.reader(model)
    limit = min(chosen.limit, model.context) if chosen.reads == "causal" else chosen.limit
    if not 1 <= len(tokens) <= limit:
        raise Refusal(f"A lens reads 1 to {limit:,} tokens of this model, not {len(tokens):,}.")
    frame = chosen.look(model, list(tokens), options)
    frame.words = {t: model.bytes_of(t).decode("utf-8", "replace") for t in sorted(frame.named_tokens)}
    return frame
