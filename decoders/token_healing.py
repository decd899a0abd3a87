"""Token healing: the prompt's last token is taken back, and the model writes one that begins with its text.

A tokenizer cuts the prompt where it ends, so that its last token may be one that never stands there inside a
text: what continues with "://" is not the token ":". transformers' `generate` has it as `token_healing`; the
idea is from Guidance (Lundberg 2023).
"""

import math
from typing import Any

import torch

FAVOUR = 1.0  # what the token itself is given more than those that continue it, as in `generate`
LEVEL = "token_healing"  # of the distribution after the mask


def cut(parameters: dict[str, Any], model: Any, prompt: list[int]) -> tuple[list[int], list[int]]:
    """(prompt, []), or without its last token and the `extensions` of that, if it is to be healed.

    Nothing is healed without the parameter, where no longer token begins with the text of the last one, after
    a special token, and in a prompt of one token.
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
    """Logits [1, V] with nothing left but the tokens `allowed`, of which the first gets FAVOUR."""
    scores = torch.full_like(logits, -math.inf)
    scores[0, allowed] = logits[0, allowed]
    scores[0, allowed[0]] += FAVOUR
    return scores


def sentence(model: Any, last: int, token: int) -> str:
    """What happened, for a person: `token` stands in the place of `last`."""
    was, became = (model.bytes_of(t).decode("utf-8", "replace") for t in (last, token))
    return (
        f"Token healing took the prompt's last token, “{was}”, back and let the model write a token that "
        f"begins with it: “{became}”."
    )
