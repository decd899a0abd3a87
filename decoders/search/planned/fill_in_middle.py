"""What self-infilling needs: the tokens that tell a model which part of a text it reads, and the rules for
where a text is cut or discarded.
"""

import zlib
from dataclasses import astuple, dataclass

from decoders.models.token_bytes import by_name

KNOWN = (  # prefix, suffix and middle follow; the middle is complete
    ("<PRE>", "<SUF>", "<MID>", "<EOT>"),  # llama-tiny-forms
    ("<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<|endoftext|>"),  # StarCoder
    ("▁<PRE>", "▁<SUF>", "▁<MID>", "▁<EOT>"),  # Code Llama
    ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|endoftext|>"),  # Qwen
)
# what stands in a prompt -> how a text after it often ends, the first that fits
ENDINGS = (("def ", "return"), ("program for", "\n"), (" json:", ' "pet":'), ("", " From that day"))
NOTHING = "none"
MIN_RATIO = 0.1  # texts that zlib makes smaller than this repeat themselves
MODES = ("vanilla", "extended", "half")


@dataclass(frozen=True)
class Sentinels:
    """Token ids."""

    pre: int
    suf: int
    mid: int
    eot: int


def sentinels(target) -> Sentinels | None:
    """Those of a model; None if it has none that are known."""
    ids = by_name(target)
    known = (Sentinels(*(ids[name] for name in names)) for names in KNOWN if all(n in ids for n in names))
    return next(known, None)


def suits(parameters: dict, target) -> str | None:
    """The message to show for a model that was not trained to infill."""
    if sentinels(target):
        return None
    return (
        f"The model {target.name!r} has no tokens for infilling; choose one that was trained to fill in, "
        "such as llama-tiny-forms."
    )


def suffix_prompt(typed: str, prompt: str) -> str:
    """The text with which a suffix begins: as typed, or as fits the prompt."""
    if typed:
        return "" if typed == NOTHING else typed.replace("\\n", "\n")
    return next(ending for sign, ending in ENDINGS if sign in prompt)


def is_degenerate(text: str, suffix_prompt: str) -> bool:
    """Whether a text is not worth continuing: empty or nearly so, repeating itself, or without the suffix
    prompt.
    """
    bare, raw = text.strip(), text.encode()
    if bare in ("", "pass", "return") or suffix_prompt not in text:
        return True
    return len(zlib.compress(raw)) / len(raw) < MIN_RATIO


def suffix_context(mode: str, text: str, suffix: str, suffix_prompt: str) -> tuple[str, bool]:
    """What stands after the suffix sentinel in the next iteration, and whether it is the whole suffix.

    text: all that was generated, whose end is `suffix`. Without the suffix prompt in it nothing is kept.
    """
    kept = suffix if mode == "vanilla" else latter_half(text)
    if not suffix_prompt or not kept.strip() or suffix_prompt not in kept:
        return suffix_prompt, False
    if mode == "half":
        return kept, True
    return kept[: kept.rindex(suffix_prompt) + len(suffix_prompt)], False


def latter_half(text: str) -> str:
    """The latter half of a text's lines, blank ones not counted."""
    lines = [line for line in text.split("\n") if line.strip()]
    return "\n".join(lines[len(lines) // 2 :])


def before_last(text: str, part: str) -> str:
    """The text before the last `part`; empty if it does not occur."""
    return text[: text.rindex(part)] if part and part in text else ""


def others(form: Sentinels, *allowed: int) -> list[int]:
    """All sentinels but these."""
    return [token for token in astuple(form) if token not in allowed]
