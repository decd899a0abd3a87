"""Token healing: removes the prompt's last token, and lets the model write one that begins with its text.

The end of a prompt forces a token boundary, so the last token may be one that would not stand there in
running text: "http:" ends in the token ":", but "http://" contains the token "://". transformers' `generate`
has it as `token_healing`; the idea is from Guidance (Lundberg 2023).
"""

import math
from typing import Any

import torch

FAVOUR = 1.0  # added to the logit of the removed token itself, as in `generate`
LEVEL = "token_healing"  # of the distribution after the mask


def cut(parameters: dict[str, Any], model: Any, prompt: list[int]) -> tuple[list[int], list[int]]:
    """(prompt without its last token, `extensions` of that token), or (prompt, []) if nothing is to be
    healed.

    That is the case without the parameter, if no longer token begins with the text of the last one, if the
    last one is a special token, and in a prompt of one token.
    """
    if not parameters.get("token_healing") or len(prompt) < 2:
        return prompt, []
    allowed = extensions(model, prompt[-1])
    return (prompt[:-1], allowed) if len(allowed) > 1 else (prompt, [])


def extensions(model: Any, token: int) -> list[int]:
    """The tokens whose text begins with that of `token`, itself first; none for a special token."""
    text, special = model.bytes_of(token), getattr(model.bytes_of, "special", ())
    if token in special or not text:
        return []
    others = (t for t in range(model.engine.vocabulary) if t != token and t not in special)
    return [token, *(t for t in others if model.bytes_of(t).startswith(text))]


def kept(logits: torch.Tensor, allowed: list[int]) -> torch.Tensor:
    """Logits [1, V] with -inf for all tokens but `allowed`, and FAVOUR added to the first of these."""
    scores = torch.full_like(logits, -math.inf)
    scores[0, allowed] = logits[0, allowed]
    scores[0, allowed[0]] += FAVOUR
    return scores


def healing_note(model: Any, last: int, token: int) -> str:
    """What happened, for the reader: `token` replaced `last`."""
    was, became = (model.bytes_of(t).decode("utf-8", "replace") for t in (last, token))
    return (
        f"Token healing took the prompt's last token, “{was}”, back and let the model write a token that "
        f"begins with it: “{became}”."
    )
