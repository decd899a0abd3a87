"""Parses names of edited models: `llama-tiny:wanda=0.5:bits=4`, `llama-tiny:drop=a3.m5.7`, and sums of
low-rank modules, `llama-tiny+0.5*llama-tiny-verilog+0.5*llama-tiny-summaries`.

Edits are applied from left to right. Knows names, no weights; imports no torch.
"""

import re
from dataclasses import dataclass

from decoders.refusal import Refusal

FORM = (
    "magnitude=0.5 or wanda=0.5 (share of weights that become zero; 2of4 keeps two of every four), bits=4, "
    "rank=0.5 (share of the rank), drop=a3.m5.7 (attention of layer 3, MLP of layer 5, all of layer 7)"
)
EDIT = re.compile(r":([a-z]+)=([^:+]*)")
TERM = re.compile(r"\+(-?[0-9.]+)\*([^:+*]+)")
TAIL = re.compile(r"(?P<terms>(?:\+-?[0-9.]+\*[^:+*]+)*)(?P<edits>(?::[a-z]+=[^:+]*)*)$")


@dataclass(frozen=True)
class Blocks:
    """Attention and MLP blocks that are dropped, by layer, counted from 0."""

    attention: frozenset[int]
    mlp: frozenset[int]

    def __str__(self) -> str:
        """In the form of `drop=`, with layers counted from 1."""
        whole = self.attention & self.mlp
        parts = [(layer, "") for layer in whole]
        parts += [(layer, "a") for layer in self.attention - whole]
        parts += [(layer, "m") for layer in self.mlp - whole]
        return ".".join(f"{kind}{layer + 1}" for layer, kind in sorted(parts))


@dataclass(frozen=True)
class Edited:
    """A parsed name: (weight, module) of the modules to add, then (edit, value) of the edits."""

    base: str
    terms: tuple[tuple[float, str], ...]
    edits: tuple[tuple[str, str], ...]


def edits_of(name: str) -> Edited | None:
    """The edits in a name, None if it has none. Raises Refusal with one sentence."""
    if name.startswith(("http://", "https://", "vllm:")):
        return None
    tail = TAIL.search(name)
    if tail is None or not tail.group() or not tail.start():
        return None
    edits = tuple(EDIT.findall(tail["edits"]))
    for key, value in edits:
        check_edit(key, value)
    terms = tuple((weight(x), module) for x, module in TERM.findall(tail["terms"]))
    return Edited(name[: tail.start()], terms, edits)


def base_of(name: str) -> str:
    """The name of the model that is edited."""
    edited = edits_of(name)
    return edited.base if edited else name


def weight(text: str) -> float:
    """The weight of a module. Raises Refusal with one sentence if it is not a number."""
    try:
        return float(text)
    except ValueError:
        raise Refusal(f"{text!r} is not a weight of a low-rank module; write a number such as 0.5.") from None


def check_edit(key: str, value: str) -> None:
    """Raises Refusal with one sentence unless `key=value` is an edit."""
    known = {
        "magnitude": share_or_pattern,
        "wanda": share_or_pattern,
        "bits": bits,
        "rank": share,
        "drop": blocks,
    }
    if key not in known:
        raise Refusal(f"There is no edit {key!r} of a model; use {FORM}.")
    known[key](value)


def share(text: str) -> float:
    """A share from 0 to 1. Raises Refusal with one sentence."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise Refusal(f"{text[:20]!r} is not a share of a model; write a number from 0 to 1.")
    return value


def share_or_pattern(text: str) -> float | tuple[int, int]:
    """A share, or (2, 4) for `2of4`. Raises Refusal with one sentence."""
    match = re.fullmatch(r"(\d{1,3})of(\d{1,3})", text)
    if match is None:
        return share(text)
    n, m = int(match[1]), int(match[2])
    if not 0 < n <= m:
        raise Refusal(f"{text!r} keeps no weights; write a pattern such as 2of4.")
    return n, m


def bits(text: str) -> int:
    """A number of bits from 2 to 16. Raises Refusal with one sentence."""
    if not text.isdecimal() or not 2 <= int(text) <= 16:
        raise Refusal(f"{text[:20]!r} is not a number of bits; write one from 2 to 16.")
    return int(text)


def blocks(text: str) -> Blocks:
    """The blocks that `drop=` drops. Raises Refusal with one sentence."""
    attention, mlp = set(), set()
    for one in filter(None, text.split(".")):
        match = re.fullmatch(r"([am]?)([1-9]\d{0,3})", one)
        if match is None:
            raise Refusal(f"{one[:20]!r} names no block; write a3, m3 or 3, with dots between them.")
        layer = int(match[2]) - 1
        attention |= {layer} if match[1] in ("a", "") else set()
        mlp |= {layer} if match[1] in ("m", "") else set()
    return Blocks(frozenset(attention), frozenset(mlp))
