"""What ends a text besides the model's end-of-text token: other tokens, stop strings and a maximum length."""

from typing import Any

from decoders.logits import token_constraints
from decoders.refusal import Refusal
from decoders.trace.endings import (
    CONTEXT_FULL,
    END_OF_TEXT,
    MAX_LENGTH,
    MAX_NEW_TOKENS,
    NOTHING_FOLLOWS,
    STOP_STRING,
)


def eos_of(parameters: dict[str, Any], model: Any) -> frozenset[int]:
    """The tokens that end a text: those of the parameter eos_token_id, else the model's own."""
    wanted = parameters.get("eos_token_id", "")
    if not wanted:
        return model.eos
    return frozenset(token_constraints.tokens("eos_token_id", wanted, model.cut, model.engine.vocabulary))


def stop_strings_of(parameters: dict[str, Any]) -> tuple[bytes, ...]:
    r"""The stop strings in the parameter stop_strings; quotes keep spaces and commas, \n is a line break."""
    wanted = parameters.get("stop_strings", "")
    if not wanted:
        return ()
    strings = []
    for piece in token_constraints.pieces("stop_strings", wanted):
        exact = len(piece) > 2 and piece[0] == piece[-1] == '"'
        strings.append((piece[1:-1] if exact else piece).replace("\\n", "\n").encode())
    return tuple(strings)


def room_of(parameters: dict[str, Any], prompt: int, room: int) -> int:
    """How many tokens fit after a prompt of `prompt` tokens: at most `room`, less if max_length says so.

    Raises Refusal with one sentence if max_length leaves none.
    """
    whole = parameters.get("max_length", 0)
    if whole and whole <= prompt:
        raise Refusal(
            f"max_length is {whole}, but the prompt has {prompt:,} tokens; allow at least {prompt + 1:,}."
        )
    return min(room, whole - prompt) if whole else room


def stopped(tree: Any, bytes_of: Any, stops: tuple[bytes, ...], node: int) -> bool:
    """Whether a stop string ends inside this node's token or at its end, as in `generate`."""
    if not stops:
        return False
    last = bytes_of(tree.tokens[node])
    text, wanted = last, len(last) + max(map(len, stops))
    above = tree.parents[node]
    while above >= 0 and len(text) < wanted:
        text, above = bytes_of(tree.tokens[above]) + text, tree.parents[above]
    before = len(text) - len(last)
    return any(text.find(stop, max(0, before - len(stop) + 1)) >= 0 for stop in stops)


def reason_of_length(parameters: dict[str, Any], new: int, max_new: int, whole: int) -> str:
    """Which limit ended a text of `new` tokens, as one sentence. `max_new`: new tokens that were asked for;
    `whole`: tokens of prompt and text together.
    """
    if new == max_new:
        return MAX_NEW_TOKENS.format(max_new)
    if whole == parameters.get("max_length"):
        return MAX_LENGTH.format(whole)
    return CONTEXT_FULL.format(whole)


def reason(lane: Any) -> str:
    """Why a lane has ended although its strategy did not end it, as one sentence."""
    if lane.text_ended and not lane.written:
        return "The text was ended by hand."
    if lane.text_ended and lane.constraint is not None and lane.constraint.over(lane.tip):
        return NOTHING_FOLLOWS
    if lane.text_ended:
        own = lane.tree.tokens[lane.tip] in lane.eos
        return END_OF_TEXT if own else STOP_STRING
    new, whole = lane.budget + lane.given, lane.tree.trunk + lane.budget
    return reason_of_length(lane.parameters, new, lane.limits.max_new_tokens, whole)
