"""Aggressive decoding: the draft is the input itself, for tasks whose output mostly repeats it.

Ge, Xia, Sun, Chen and Wei (2022), Lossless Acceleration for Seq2seq Generation with Aggressive Decoding: its
input-guided half (IAD), on a causal model whose input is in the prompt.
"""

from collections.abc import Iterator

from decoders.lane import Lane
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import simplest
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.interfaces import FIXED, Draft, Drafter, Verifier
from decoders.speculative.methods.prompt_lookup import copied
from decoders.strategy import Parameter

LONGEST = 3  # at most this many tokens of the output are looked up in the input
WHOLE, BEHIND_COLON = "whole prompt", "behind the last colon"


def rejoin(source: list[int], output: list[int]) -> tuple[int, int] | None:
    """(start, n): where in `source` the output continues if it keeps copying, and the n tokens that match.

    They are the shortest suffix of the output, of up to LONGEST tokens, that occurs exactly once in the
    source. None if there is no such suffix; (0, 0), the whole source, while there is no output.
    """
    if not output:
        return 0, 0
    for n in range(1, min(LONGEST, len(output)) + 1):
        tail = output[-n:]
        places = [at + n for at in range(len(source) - n + 1) if source[at : at + n] == tail]
        if len(places) == 1:
            return places[0], n
        if not places:
            return None
    return None


def source_start(lane: Lane, where: str) -> int:
    """Where in the prompt the input begins: at its start, or after the last token with a colon in it."""
    prompt, vocabulary = lane.trace.prompt, lane.trace.vocabulary
    colons = [at for at, token in enumerate(prompt) if b":" in vocabulary[token]]
    return colons[-1] + 1 if where == BEHIND_COLON and colons else 0


def copied_input(where: str, count: int) -> Drafter:
    """A drafter that copies up to `count` tokens of the input from where the output joins it."""

    def propose(lane: Lane) -> Draft:
        prompt, text = lane.trace.prompt, lane.tree.text(lane.tip)
        begin = source_start(lane, where)
        rejoined = rejoin(prompt[begin:], text[len(prompt) :])
        if rejoined is None:
            return Draft(lane.tip)
        start, n = rejoined
        draft = copied(lane, begin + start, n, min(count, len(prompt) - begin - start))
        if draft.nodes and n:
            words = "the last token" if n == 1 else f"the last {n} tokens"
            lane.note(f"The output joins the input again: {words} of it occurred there.")
        return draft

    says = "Copies the input from where the output last agreed with it; no model needed."
    return Drafter(propose, FIXED, source="prompt", name="copy from the input", says=says)


def aggressive_pair(parameters: dict) -> tuple[Drafter, Verifier, float]:
    """The copied input; greedy match at temperature 0, else node sampling."""
    return simplest(
        copied_input(parameters["source"], parameters["num_assistant_tokens"]), parameters["temperature"]
    )


@draft_and_verify(
    aggressive_pair,
    name="aggressive",
    title="Aggressive decoding",
    parameters=(
        Parameter(
            "source",
            "choice",
            BEHIND_COLON,
            "What counts as the input; without a colon it is the whole prompt.",
            choices=(BEHIND_COLON, WHOLE),
        ),
        Parameter(
            "num_assistant_tokens", "int", 64, "Maximum number of tokens copied per round.", low=1, high=512
        ),
        *GREEDY,
    ),
    papers=("lossless-acceleration-for-seq2seq-generation-with-aggressive",),
)
def aggressive(lane: Lane) -> Iterator[None]:
    """Drafts by copying the input: in corrections and copies, most of it is accepted at once.

    1. The first draft is the whole input. The target checks it in one forward and writes its own token where
       it first disagrees.
    2. From there it decodes token by token, until the newest tokens of the output, one to three of them,
       occur in the input exactly once: the output has rejoined the input.
    3. What follows them in the input is the next draft.

    The paper has an encoder for the input; here it is part of the prompt. Prompt lookup searches for the
    longest suffix of the text first and takes its first occurrence; this takes the shortest suffix that
    occurs exactly once.
    """
    drafter, verifier, _ = aggressive_pair(lane.parameters)
    yield from rounds(lane, drafter, verifier)
