"""PEARL (Liu et al. 2024): target and draft never wait for each other.

The draft continues while the target reads what it wrote before. concurrent_forward.py runs the forwards at
the same time.
"""

from collections.abc import Iterator

from decoders.lane import Lane
from decoders.parameters import integer, switch
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.asynchronous.overlapped_rounds import drafted_chain, overlapped
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import simplest
from decoders.speculative.forward_times import tokens_per_target_forward
from decoders.speculative.interfaces import FIXED, SAMPLED, Draft, Drafter, Pair
from decoders.strategy import Part

MAX_WINDOW = 32  # tokens of a window
CONCURRENT = switch(
    "concurrent", True, "Target and draft compute at the same time; the tokens are the same either way."
)


def pearl_pair(parameters: dict) -> Pair:
    """A chain that is continued without end; greedy match at temperature 0, else token rejection."""
    temperature = parameters["temperature"]
    drafter = Drafter(
        propose=lambda lane: Draft(lane.tip),
        fill=FIXED if temperature == 0.0 else SAMPLED,
        name="endless chain from a draft model",
        says="A second, smaller model keeps drafting while the target reads what it wrote in the "
        "previous round.",
        roles=("draft",),
    )
    return simplest(drafter, temperature)


def schedule(parameters: dict) -> Part:
    """How the two models take turns, as a part of the strategy."""
    if parameters["concurrent"]:
        return Part("schedule", "overlapped", "Both models compute at the same time, in threads or streams.")
    return Part("schedule", "overlapped, run in turn", "One model after the other, with the same tokens.")


def measured_window(lane: Lane) -> int:
    """How many tokens the draft writes in the time of one target forward."""
    count = tokens_per_target_forward(lane, MAX_WINDOW)
    lane.note(f"Windows of {count} token{'s' * (count > 1)}.")
    return count


@draft_and_verify(
    pearl_pair,
    name="pearl",
    title="PEARL",
    parameters=(
        integer(
            "num_assistant_tokens",
            4,
            "Tokens that the draft writes per round; 0: as many as it "
            "writes in the time of one target forward, measured here.",
            low=0,
            high=MAX_WINDOW,
        ),
        switch(
            "pre_verify",
            True,
            "The target tests the first token of a window while the draft writes "
            "the rest; without it, the target waits for the window.",
        ),
        switch(
            "post_verify",
            True,
            "The draft writes the next window while the target tests this one; "
            "without it, the draft waits, and a window that passes is followed by the target's own token.",
        ),
        CONCURRENT,
        *GREEDY,
    ),
    papers=("parallel-speculative-decoding-with-adaptive-draft-length",),
    view="timeline",
    further_part=schedule,
)
def pearl(lane: Lane) -> Iterator[None]:
    """The draft writes ahead while the target verifies its previous tokens: neither waits for the other.

    1. Pre-verify: nothing is pending. The draft writes a window of num_assistant_tokens; meanwhile the target
       reads the last token of the text, which is enough to test the window's first token.
    2. Post-verify: that token passed. The target reads the rest of the window; meanwhile the draft writes
       the next window. The rest of the window and the first token of the next are tested.
    3. While all pass, step 2 repeats: drafts have no fixed length. At the first token that fails, the target
       draws its own, everything after it is discarded, and step 1 follows.

    A token passes as in speculative decoding: `u q(x) < p(x)`. There is no bonus token: in its position the
    draft's next token is tested. A round takes as long as the slower of the two models, so drafting a window
    should take as long as one target forward. With num_assistant_tokens at 0, both models are timed when the
    lane starts, and the ratio of their times is used; it may differ from run to run, and sampled text with
    it. Without pre_verify or post_verify this is the paper's ablation; without both, drafting and testing
    alternate.
    """
    _, verifier = pearl_pair(lane.parameters)
    count = lane.parameters["num_assistant_tokens"] or measured_window(lane)

    def write(draft: Draft, end: int, begun: list[int], room: int) -> list[list[int]]:
        return [drafted_chain(lane, draft, end, min(count, room))]

    modes = {name: lane.parameters[name] for name in ("pre_verify", "post_verify")}
    yield from overlapped(lane, verifier, write, **modes)
