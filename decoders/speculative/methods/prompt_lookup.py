"""Prompt lookup: the draft is what followed the same words earlier in the text. Needs no second model.

The search is that of transformers' PromptLookupCandidateGenerator: longest n-gram first, its first
occurrence, cut at the end of the text and before an end-of-text token.
"""

from decoders.lane import Lane
from decoders.parameters import integer
from decoders.recorder import Recorder
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import speculative
from decoders.speculative.default_verifier import simplest
from decoders.speculative.interfaces import FIXED, Draft, Drafter, Pair


def look_up(text: list[int], largest: int) -> tuple[int, int]:
    """(start, n): where the continuation of the longest earlier match starts and how many tokens matched.

    The match is the first place at which the last n <= `largest` tokens of `text` also stand, followed by
    something. Without a match, start is the end of the text and n is 0.
    """
    for n in range(min(largest, len(text) - 1), 0, -1):
        tail = text[-n:]
        for at in range(len(text) - n):
            if text[at] == tail[0] and text[at : at + n] == tail:
                return at + n, n
    return len(text), 0


def copied(lane: Lane, start: int, n: int, count: int) -> Draft:
    """A chain of up to `count` tokens of the text from `start` on, cut before end-of-text tokens.

    The lane records what was copied from where, and that the last n tokens also precede `start`.
    """
    draft, path, node = Draft(lane.tip), lane.tree.path(lane.tip), lane.tip
    for there in path[start : start + min(count, lane.left - 1)]:
        token = lane.tree.tokens[there]
        if token in lane.eos:
            break
        node = draft.propose(lane, node, token, None, source="prompt", fill=FIXED)
    if draft.nodes:
        record_source(lane, draft.nodes, path, start, n)
    return draft


def record_source(lane: Recorder, nodes: list[int], path: list[int], start: int, n: int) -> None:
    """Records that `nodes` were copied from `start` on in `path`, the nodes of the text so far, and that its
    last n tokens also precede `start`.
    """
    for here, there in zip(path[len(path) - n :], path[start - n : start], strict=True):
        lane.depend(there, here, 1.0, "match")
    for node, there in zip(nodes, path[start:], strict=False):
        lane.depend(there, node, 1.0, "copy")


def lookup(count: int, largest: int) -> Drafter:
    """A drafter that copies up to `count` tokens from after an earlier match of up to `largest` tokens."""

    def propose(lane: Lane) -> Draft:
        start, n = look_up(lane.tree.text(lane.tip), largest)
        draft = copied(lane, start, n, count)
        if draft.nodes:
            words = "The last token" if n == 1 else f"The last {n} tokens"
            lane.note(
                f"{words} occurred before; what followed there, from position {start} on, is the draft."
            )
        return draft

    says = "Copies what followed the last few tokens earlier in the text; no model needed."
    return Drafter(propose, FIXED, name="copy from the text", says=says)


@speculative(
    name="prompt_lookup",
    title="Prompt lookup",
    parameters=(
        integer("prompt_lookup_num_tokens", 10, "Maximum number of tokens copied per round.", low=1, high=64),
        integer("max_matching_ngram_size", 3, "Longest n-gram that is searched for.", low=1, high=16),
        *GREEDY,
    ),
)
def prompt_lookup_pair(parameters: dict) -> Pair:
    """Drafts what followed the same tokens earlier in the text, and verifies it in one forward.

    1. The last n tokens are searched for earlier in the text, first with n = max_matching_ngram_size, then
       with smaller n.
    2. What followed them there, up to prompt_lookup_num_tokens tokens, is the draft; without a match one
       plain token is decoded.
    3. The target checks the draft in one forward, as in speculative decoding.

    It needs no second model and gains most where the text copies: summaries, code, edits.
    """
    drafter = lookup(parameters["prompt_lookup_num_tokens"], parameters["max_matching_ngram_size"])
    return simplest(drafter, parameters["temperature"])
