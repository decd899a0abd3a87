"""The memories that a lane can have, as declarations: what of the keys and values of a text is kept, and how.

Knows names and parameters alone and imports no torch: the page opens with them. What each does is a file of
decoders/memory/.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

from decoders.parameters import Parameter

GROUP = "Memory"
NONE = "none"
ROLES = ("target", "draft")
VIEW = "memory"


@dataclass(frozen=True)
class Memory:
    """One policy. `module`: the file whose `make` gives it."""

    name: str
    title: str
    papers: tuple[str, ...]
    summary: str
    parameters: tuple[Parameter, ...]

    @property
    def module(self) -> str:
        """`decoders.memory.lm_infinite`."""
        return f"decoders.memory.{self.name.replace('-', '_')}"


def number(name: str, default: float, help: str, low: float, high: float | None = None) -> Parameter:
    """A whole number or a share of the fold Memory."""
    kind = "int" if isinstance(default, int) else "float"
    return Parameter(f"memory_{name}", kind, default, help, low=low, high=high, group=GROUP)


def choice(name: str, choices: tuple[str, ...], help: str) -> Parameter:
    """One of several ways, the first unless another is chosen."""
    return Parameter(f"memory_{name}", "choice", choices[0], help, choices=choices, group=GROUP)


SINK = number("sink", 4, "First tokens that are never touched.", low=0, high=1024)
MEMORIES = (
    Memory(
        "lm-infinite",
        "LM-Infinite",
        ("lm-infinite",),
        "Every token sees the nearest tokens and a few first ones, no distance beyond those of training.",
        (
            number("local", 256, "L: how many of the nearest tokens are seen.", low=1, high=16384),
            number(
                "global", 10, "G: how many of the first tokens are seen from everywhere.", low=0, high=1024
            ),
            choice(
                "cap", ("L - 1", "L"), "The distance at which first tokens are seen; training knows L − 1."
            ),
        ),
    ),
    Memory(
        "gear",
        "GEAR",
        ("gear",),
        "Numbers in few bits, with outliers kept exactly and the rest of the error as a low-rank matrix.",
        (
            number("bits", 2, "Bits per number; 16: unchanged.", low=1, high=16),
            number(
                "group", 64, "Numbers that share a scale; 0: all of a channel (K), of a token (V).", low=0
            ),
            number("outliers", 0.02, "Share of numbers that are stored exactly.", low=0.0, high=0.5),
            number(
                "rank", 4, "Rank of the stored error in the prompt; half in what is written.", low=0, high=64
            ),
            number("buffer", 20, "The newest tokens stay exact until there are this many.", low=1, high=1024),
        ),
    ),
    Memory(
        "subgen",
        "SubGen",
        ("subgen",),
        "Clusters of keys: one key with its count stands for many.",
        (
            choice(
                "form",
                ("practical", "streaming"),
                "Newest tokens exactly and centres of clusters, or the paper's samples of values and keys.",
            ),
            number(
                "budget", 64, "Practical: places per head, half of them the newest tokens.", low=2, high=8192
            ),
            number("values", 32, "Streaming: samples of values per head.", low=1, high=1024),
            number("samples", 4, "Streaming: samples of keys per cluster.", low=1, high=64),
            number(
                "radius", 0.2, "Streaming: a cluster's radius, a quantile of distances.", low=0.0, high=1.0
            ),
            number("seed", 0, "Streaming: of the samples.", low=0),
        ),
    ),
    Memory(
        "leank",
        "LeanK",
        ("leank",),
        "Key channels that a fixed, learned mask leaves out, except in first and newest tokens.",
        (
            SINK,
            number("recent", 32, "Newest tokens whose keys stay whole.", low=1, high=4096),
            number("block", 8, "Tokens that lose their channels together.", low=1, high=1024),
            number("prune", 0.5, "Share of channels below the threshold.", low=0.0, high=1.0),
            number("align", 4, "A head keeps a multiple of this many channels.", low=1, high=128),
            choice(
                "mask",
                ("learned", "learned, times alpha", "magnitude", "random"),
                "Learned for the model (llama-tiny), its kept channels as they are or times alpha as in "
                "training; by the mean size of keys; or at random.",
            ),
        ),
    ),
    Memory(
        "kv-svd",
        "KV-head SVD",
        ("effectively-compress-kv-heads-for-llm",),
        "Several KV heads share one, in the subspace that holds most of their keys and values.",
        (
            number("heads", 0, "KV heads that are kept; 0: half of them.", low=0, high=256),
            choice("route", ("post", "pre"), "Whether keys are projected after their rotation or before."),
        ),
    ),
    Memory(
        "flowcut",
        "FlowCut",
        ("flowcut",),
        "Prompt tokens from which the last one takes least leave layer after layer.",
        (
            SINK,
            number("keep", 0.5, "Share of the prompt that is left in the end.", low=0.0, high=1.0),
            number("until", 0.5, "Share of the layers after which no more leave.", low=0.1, high=1.0),
        ),
    ),
    Memory(
        "mustdrop",
        "MustDrop",
        ("multi-stage-vision-token-dropping",),
        "Prompt tokens leave to which the question attends little in total and nowhere much.",
        (
            SINK,
            number("question", 8, "Last prompt tokens that ask; all others are what they ask about.", low=1),
            number(
                "total", 1.0, "Least total attention, in means over the context's tokens.", low=0.0, high=1e6
            ),
            number("single", 0.02, "Least attention of one question token.", low=0.0, high=1.0),
        ),
    ),
)
KIND = Parameter(
    "memory",
    "choice",
    NONE,
    "What is kept of the keys and values of the committed text; drafts stay exact.",
    choices=(NONE, *(one.name for one in MEMORIES)),
    group=GROUP,
)
COMMON = (
    choice("of", ROLES, "Whose keys and values: the target's, or those of the draft model."),
    Parameter(
        "memory_drift",
        "bool",
        True,
        "Measure at every token how far the model with its full cache is: one more forward, counted apart.",
        group=GROUP,
    ),
)


def memories() -> dict[str, Memory]:
    """All memories by name."""
    return {one.name: one for one in MEMORIES}


def parameters_of(name: str) -> tuple[Parameter, ...]:
    """The parameters that a lane with this memory has beside its strategy's."""
    return () if name == NONE else (KIND, *COMMON, *memories()[name].parameters)


@cache
def all_parameters() -> dict[str, Parameter]:
    """Every parameter of every memory by name, each once."""
    every = (KIND, *COMMON, *(p for one in MEMORIES for p in one.parameters))
    return {parameter.name: parameter for parameter in every}


def has(parameters: dict[str, Any]) -> bool:
    """Whether a lane with these parameters has a memory."""
    return parameters.get("memory", NONE) != NONE


def views(parameters: dict[str, Any]) -> tuple[str, ...]:
    """The views that a lane's memory adds to those of its strategy."""
    return (VIEW,) if has(parameters) else ()


def split(given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """`given` without the memory's parameters, and these alone."""
    known = all_parameters()
    own = {name: value for name, value in given.items() if name in known}
    return {name: value for name, value in given.items() if name not in own}, own


def check(given: dict[str, Any]) -> dict[str, Any]:
    """What a lane's memory is set to, defaults filled in; empty without one. Settings of other memories are
    left out, as a page keeps them. Raises ValueError with one sentence.
    """
    known = all_parameters()
    values = {name: known[name].parse(value) for name, value in given.items()}
    return {p.name: values.get(p.name, p.default) for p in parameters_of(values.get("memory", NONE))}


def page_fields() -> dict:
    """What the page makes its fold of: the parameters in their public form, and which of them each memory
    has.
    """
    public = [
        {k: v for k, v in vars(p).items() if v is not None and v != ()} for p in all_parameters().values()
    ]
    own = {one.name: [p.name for p in parameters_of(one.name)] for one in MEMORIES}
    return {"parameters": public, "of": {NONE: [KIND.name], **own}, "view": VIEW}
