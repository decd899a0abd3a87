"""Declares the memories that a lane can have: policies for which keys and values of a text are kept, and how.

Imports no torch, since the page shows these before torch is loaded. Each policy is implemented by a file of
decoders/memory/.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

from decoders import packages
from decoders.parameters import Parameter, choice, integer, real, switch

GROUP = "Memory"
NONE = "none"
ROLES = ("target", "draft")
VIEW = "memory"


@dataclass(frozen=True)
class Memory:
    """One policy. `module`: the file whose `make` builds it."""

    name: str
    title: str
    papers: tuple[str, ...]
    summary: str
    parameters: tuple[Parameter, ...]

    @property
    def module(self) -> str:
        """Such as `decoders.memory.lm_infinite`."""
        return packages.full(f"decoders.memory.{self.name.replace('-', '_')}")


def number(name: str, default: float, help: str, low: float, high: float | None = None) -> Parameter:
    """An int or float parameter in the fold Memory, after the type of its default."""
    make = integer if isinstance(default, int) else real
    return make(f"memory_{name}", default, help, low=low, high=high, group=GROUP)


def one_of(name: str, choices: tuple[str, ...], help: str) -> Parameter:
    """A choice in the fold Memory; the first is the default."""
    return choice(f"memory_{name}", choices[0], help, choices, GROUP)


SINK = number("sink", 4, "Number of first tokens that are never compressed.", low=0, high=1024)
MEMORIES = (
    Memory(
        "lm-infinite",
        "LM-Infinite",
        ("lm-infinite",),
        "Every token sees the nearest tokens and the first few, at no distance beyond those of training.",
        (
            number("local", 256, "Number of nearest tokens that are seen (L).", low=1, high=16384),
            number(
                "global", 10, "Number of first tokens that are seen from everywhere (G).", low=0, high=1024
            ),
            one_of(
                "cap",
                ("L - 1", "L"),
                "The distance at which the first tokens are seen; training covers distances up to L − 1.",
            ),
        ),
    ),
    Memory(
        "gear",
        "GEAR",
        ("gear",),
        "Keys and values in few bits, with exact outliers and the rest of the error as a low-rank matrix.",
        (
            number("bits", 2, "Bits per number; 16: unchanged.", low=1, high=16),
            number(
                "group",
                64,
                "Numbers that share a scale; 0: a whole channel of the keys, or a token's whole value.",
                low=0,
            ),
            number(
                "outliers",
                0.02,
                "Share of numbers that are stored exactly: the largest and smallest of each key channel of a "
                "block, and of each token's values. Counts are rounded: 0.02 keeps none of the keys in a "
                "block of up to 50 tokens.",
                low=0.0,
                high=0.5,
            ),
            number(
                "rank",
                4,
                "Rank of the stored error for the prompt; half of it for new tokens.",
                low=0,
                high=64,
            ),
            number(
                "buffer", 20, "New tokens stay exact until there are this many of them.", low=1, high=1024
            ),
        ),
    ),
    Memory(
        "subgen",
        "SubGen",
        ("subgen",),
        "Clusters keys: one key with its count stands for many.",
        (
            one_of(
                "form",
                ("practical", "streaming"),
                "The newest tokens exactly and cluster centres, or the paper's samples of values and keys.",
            ),
            number(
                "budget",
                64,
                "Practical: number of slots per head, half of them for the newest tokens.",
                low=2,
                high=8192,
            ),
            number("values", 32, "Streaming: number of sampled values per head.", low=1, high=1024),
            number("samples", 4, "Streaming: number of sampled keys per cluster.", low=1, high=64),
            number(
                "radius",
                0.2,
                "Streaming: radius of a cluster, as a quantile of the distances between keys.",
                low=0.0,
                high=1.0,
            ),
            number("seed", 0, "Streaming: seed for the samples.", low=0),
        ),
    ),
    Memory(
        "leank",
        "LeanK",
        ("leank",),
        "Drops the key channels that a fixed, learned mask names, except in the first and newest tokens.",
        (
            SINK,
            number("recent", 32, "Number of newest tokens whose keys stay complete.", low=1, high=4096),
            number("block", 8, "Number of tokens that lose their channels together.", low=1, high=1024),
            number("prune", 0.5, "Share of channels below the threshold.", low=0.0, high=1.0),
            number(
                "align", 4, "The number of channels that a head keeps is a multiple of this.", low=1, high=128
            ),
            one_of(
                "mask",
                ("learned", "learned, times alpha", "magnitude", "random"),
                "Learned for the model (llama-tiny), with kept channels unchanged or times alpha as in "
                "training; by the keys' mean magnitude; or at random.",
            ),
        ),
    ),
    Memory(
        "kv-svd",
        "KV-head SVD",
        ("effectively-compress-kv-heads-for-llm",),
        "Several KV heads share one, in the subspace that captures most of their keys and values.",
        (
            number("heads", 0, "Number of KV heads that are kept; 0: half of them.", low=0, high=256),
            one_of("route", ("post", "pre"), "Whether keys are projected after rotation or before it."),
        ),
    ),
    Memory(
        "flowcut",
        "FlowCut",
        ("flowcut",),
        "Layer by layer, drops the prompt tokens that contribute least to the last one.",
        (
            SINK,
            number("keep", 0.5, "Share of the prompt that is left at the end.", low=0.0, high=1.0),
            number(
                "until", 0.5, "Share of the layers after which no more tokens are dropped.", low=0.1, high=1.0
            ),
        ),
    ),
    Memory(
        "mustdrop",
        "MustDrop",
        ("multi-stage-vision-token-dropping",),
        "Drops the prompt tokens that get little of the question's attention in total and from every token.",
        (
            SINK,
            number(
                "question",
                8,
                "Number of last prompt tokens that are the question; all others are its context.",
                low=1,
            ),
            number(
                "total",
                1.0,
                "Drop context tokens with less total attention than this multiple of their mean.",
                low=0.0,
                high=1e6,
            ),
            number(
                "single",
                0.02,
                "But keep those to which some question token attends with at least this weight.",
                low=0.0,
                high=1.0,
            ),
        ),
    ),
)
KIND = choice(
    "memory",
    NONE,
    "What is kept of the keys and values of the committed text; drafts stay exact.",
    (NONE, *(one.name for one in MEMORIES)),
    GROUP,
)
COMMON = (
    one_of("of", ROLES, "Whose keys and values: the target's, or those of the draft model."),
    switch(
        "memory_drift",
        True,
        "Measure at every token how far the distribution is from that with the full cache: one more "
        "forward, counted separately.",
        group=GROUP,
    ),
)


def memories() -> dict[str, Memory]:
    """All memories by name."""
    return {one.name: one for one in MEMORIES}


def parameters_of(name: str) -> tuple[Parameter, ...]:
    """The parameters that this memory adds to those of a lane's strategy."""
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


def split_memory(given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(`given` without the memory's parameters, the memory's parameters)."""
    known = all_parameters()
    own = {name: value for name, value in given.items() if name in known}
    return {name: value for name, value in given.items() if name not in own}, own


def check_memory(given: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a lane's memory with defaults filled in; empty without a memory. Settings of other
    memories, which the page keeps, are left out. Raises Refusal with one sentence on an unusable value.
    """
    known = all_parameters()
    values = {name: known[name].parse(value) for name, value in given.items()}
    return {p.name: values.get(p.name, p.default) for p in parameters_of(values.get("memory", NONE))}


def page_fields() -> dict:
    """What the page builds its fields from: the public form of all parameters, and which memory has which."""
    public = [
        {k: v for k, v in vars(p).items() if v is not None and v != ()} for p in all_parameters().values()
    ]
    own = {one.name: [p.name for p in parameters_of(one.name)] for one in MEMORIES}
    return {"parameters": public, "of": {NONE: [KIND.name], **own}}
