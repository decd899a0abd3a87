"""See how a language model decodes: `import decoding_explorer as dx`. What users need, under one name.

Torch, transformers and the pictures are imported when they are first used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from decoders import packages, registry, watch
from decoders.models.catalog import TARGET
from decoders.models.shared_tokens import default_draft
from decoders.refusal import Refusal
from decoders.registry import include, strategies, strategy
from decoders.trace.trace import Trace, show
from decoders.trace.trace import load as open  # a trace file: `trace.save` writes one

if TYPE_CHECKING:
    from decoders.lane import Lane, Limits
    from decoders.models.loaded_model import LoadedModel
    from explorer.doctor.examining import Examination
    from visualizers.analysis.twin import Twin

__version__ = "0.2.0"
__all__ = [
    "Lane",
    "Limits",
    "Refusal",
    "Trace",
    "compare",
    "decode",
    "doctor",
    "include",
    "load",
    "open",
    "show",
]
__all__ += ["strategies", "strategy", "testing", "twin", "view", "watch"]


def load(name: str, device: str = "auto", dtype: str = "auto") -> LoadedModel:
    """A model by its shipped name, Hub id or folder. Raises Refusal with one sentence if there is none."""
    from decoders.models.loading import load as loaded

    return loaded(name, device, dtype)


_kept = lru_cache(maxsize=4)(load)  # models that `decode` was given by name: the next call has them


def decode(
    strategy: str,
    prompt: str | list[int],
    model: str | LoadedModel = TARGET,
    draft: str | LoadedModel | None = None,
    *,
    max_new_tokens: int = 64,
    seed: int = 0,
    **parameters: Any,
) -> Trace:
    """Decodes a prompt to its end and returns the trace: `decode("beam", "Once upon a time", num_beams=4)`.

    `model` and `draft` are names or loaded models; `draft` may also name a folder of draft heads. Without a
    draft, a strategy that needs one takes the shipped one if it has the target's tokens. Raises Refusal with
    one sentence, such as for an unknown parameter, or for a draft by a name that the strategy does not use.
    """
    from decoders.lane import Lane, Limits
    from decoders.models import named_heads

    known = registry.get(strategy)
    if draft is None and isinstance(model, str) and "draft" in known.needs:
        draft = default_draft(model)
    given = {role: one for role, one in {"target": model, "draft": draft}.items() if one}
    names, heads = named_heads.without_heads({r: one for r, one in given.items() if isinstance(one, str)})
    named_heads.check_drafts_used(names, (*known.needs, *known.may_use))
    models: dict[str, LoadedModel] = {
        role: _kept(names[role]) if isinstance(one, str) else one
        for role, one in given.items()
        if one not in heads
    }
    if heads:
        from decoders.models.loaded_model import LoadedModel
        from decoders.models.model_heads import add_heads

        plain = models["target"]  # the one that is kept stays without these heads
        models["target"] = LoadedModel(plain.name, plain.model, plain.tokenizer)
        add_heads(models, heads)
    tokens = models["target"].encode(prompt) if isinstance(prompt, str) else prompt
    trace = Lane(strategy, tokens, models, parameters, seed, Limits(max_new_tokens)).run()
    named_heads.check_heads_used(models if heads else {})
    return trace


def compare(traces: list[Trace]) -> dict:
    """What two to four traces have in common, where they diverge, and what each cost."""
    return packages.module("visualizers.analysis.comparison").compare(traces)


def twin(text: str | Trace, a: str | LoadedModel | Trace, b: str | LoadedModel | Trace) -> Twin:
    """One text scored by two engines: `twin("Once upon a time", "gpt2", "gpt2,dtype=bfloat16")`. An engine is
    a model, its name with options as the command `twin` takes them, a trace whose log-probabilities were
    recorded, or the name of a file of such. Raises Refusal with one sentence.
    """
    comparing = packages.module("explorer.twin.comparing")
    return comparing.compared(text, *packages.module("explorer.twin.sides").sides(a, b))


def doctor(
    target: LoadedModel | str,
    draft: str,
    prompts: Sequence[str] = (),
    num_assistant_tokens: int | None = None,
) -> Examination:
    """What is wrong with a draft of a target, as the command `doctor` says it: `dx.doctor("llama-tiny",
    "eagle").findings` is empty for a healthy one. draft: a model, or a strategy that drafts with heads.
    Raises Refusal with one sentence.
    """
    examining = packages.module("explorer.doctor.examining")
    prompt = packages.module("explorer.acceptance.prompts").Prompt
    drafter = packages.module("explorer.acceptance.drafters").drafter
    own = _kept(target) if isinstance(target, str) else target
    settings = examining.Settings(num_assistant_tokens)
    one = drafter(draft, own, own.model.device.type)
    *_, found = examining.in_pieces(own, one, list(map(prompt, prompts)), settings)
    return found


def view(name: str, title: str) -> Callable[[type], type]:
    """Class decorator that registers a view of your own, shown to people as `title`."""
    return packages.module("visualizers.scene.marks").view(name, title)


def __getattr__(name: str) -> Any:
    """`Lane`, `Limits` and `testing`, which import torch."""
    if name in ("Lane", "Limits"):
        return getattr(packages.module("decoders.lane"), name)
    if name == "testing":
        return import_module(f"{__name__}.testing")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
