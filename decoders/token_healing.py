"""Token healing: the prompt's last token is taken back, and the model writes one that begins with its text.

A tokenizer cuts the prompt where it ends, so that its last token may be one that never stands there inside a
text: what goes on with "://" is no token ":". transformers' `generate` has it as `token_healing`; the idea is
from Guidance (Lundberg 2023).
"""

import math
from typing import TYPE_CHECKING, Any

import torch

from decoders.trace import Commit

if TYPE_CHECKING:
    from decoders.lane import Lane

FAVOUR = 1.0  # what the token itself is given more than those that go on from it, as in `generate`
LEVEL = "token_healing"  # of the distribution after the mask


def cut(parameters: dict[str, Any], model: Any, prompt: list[int]) -> tuple[list[int], int | None]:
    """(prompt, None), or without its last token and that token, if it is to be healed.

    Nothing is healed without the parameter, where no longer token begins with the text of the last one, after
    a special token, and in a prompt of one token.
    """
    if not parameters.get("token_healing") or len(prompt) < 2 or not extensions(model, prompt[-1])[1:]:
        return prompt, None
    return prompt[:-1], prompt[-1]


def extensions(model: Any, token: int) -> list[int]:
    """The tokens whose text begins with that of `token`, itself first; none for a special token."""
    text, special = model.bytes_of(token), getattr(model.bytes_of, "special", ())
    if token in special or not text:
        return []
    others = (t for t in range(model.engine.vocabulary) if t != token and t not in special)
    return [token, *(t for t in others if model.bytes_of(t).startswith(text))]


def heal(lane: "Lane", last: int) -> None:
    """The first step of a lane whose prompt lost its token `last`: writes the target's likeliest token among
    its `extensions`. To the strategy that looks like more prompt, which its models then read anew.
    """
    target, tree, node = lane.models["target"], lane.tree, lane.tip
    logits = lane.score([node])  # [1, V]
    logprobs = lane.distribution([node], logits)
    scores, kept = torch.full_like(logits, -math.inf), extensions(target, last)
    scores[0, kept] = logits[0, kept]
    scores[0, last] += FAVOUR
    lane.distribution([node], scores, "processed", LEVEL)
    token = int(scores[0].argmax())
    logprob = float(logprobs[0, token])
    lane.note(sentence(*(target.bytes_of(t).decode("utf-8", "replace") for t in (last, token))))
    lane.tip = lane.propose(node, token, logprob)
    lane._events.append(Commit([lane.tip], [logprob]))
    tree.trunk, lane.given, lane.budget = tree.trunk + 1, 1, lane.budget - 1
    for role, model in lane.models.items():
        lane.scorers[role].close()
        lane.scorers[role] = model.engine.attach(tree)
    lane._have_read.clear()


def sentence(last: str, token: str) -> str:
    """What happened, for a person."""
    return (
        f"Token healing took the prompt's last token, “{last}”, back and let the model write a token that "
        f"begins with it: “{token}”."
    )
