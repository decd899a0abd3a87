"""EQSPEC and EXSPEC: batched speculative decoding that handles ragged rows correctly (EQSPEC) or avoids them
(EXSPEC).

Zhang et al. (2025), Batch Speculative Decoding Done Right. Both run transformers' own forward on a padded
batch, target and draft alike; see padded_batch.py.
"""

from collections.abc import Callable, Iterator
from typing import Any

from decoders.engine.engine import Engine
from decoders.lane import Lane
from decoders.parameters import choice, integer
from decoders.registry import strategy
from decoders.sampling.sampling_parameters import MODEL_DEFAULTS
from decoders.speculative.batched.padded_batch import BY_COLUMN, PADDING_KEPT, Rectangle
from decoders.speculative.batched.shared_batch import (
    PROMPTS,
    Text,
    batch_rounds,
    chains,
    draft_chains,
    too_long,
    too_many,
)
from decoders.speculative.interfaces import Draft, Verification, Verifier, VerifierInput, badge, described
from decoders.speculative.verifiers.greedy_match import GREEDY_MATCH
from decoders.trace.reasons import Code, Reason
from decoders.trace.scores import ScoreName

NONE, MISMATCH = "none", "first mismatch kept"
MISTAKES = (NONE, BY_COLUMN, PADDING_KEPT, MISMATCH)
GUESSES = integer("num_assistant_tokens", 5, "Guesses per text and round.", low=1, high=32)


def keeps_the_mismatch(inputs: VerifierInput) -> Verification:
    """Greedy match with a mistake: the first rejected guess is kept as well."""
    verification = GREEDY_MATCH.verify(inputs)
    wrong = [test for test in verification.tests if not test.accepted]
    if wrong and wrong[0].node in inputs.p:
        verification.path.append(wrong[0].node)
        wrong[0].accepted, wrong[0].reasons = True, (Reason(Code.KEPT_BY_MISTAKE),)
        verification.token = int(inputs.p[wrong[0].node].argmax())
    return verification


def verifier_of(mistake: str) -> Verifier:
    """Greedy match, or what a mistake makes of it."""
    if mistake != MISMATCH:
        return GREEDY_MATCH
    summary = "As greedy match, but the first guess that fails is kept, too: a mistake."
    return Verifier(keeps_the_mismatch, frozenset(), draws=False, uses_q=False, name=MISMATCH, says=summary)


def unpadded(parameters: dict, target: Any) -> str | None:
    """The message to show if the target's texts are not padded but a mistake in padding is asked for, or if
    one of them is too long.
    """
    mistaken = parameters.get("mistake") in (BY_COLUMN, PADDING_KEPT)
    if mistaken and hasattr(target.engine, "model") and type(target.engine) is not Engine:
        return (
            f"Only a cache of keys and values is padded, and {target.name!r} keeps something else; choose "
            f"mistake {NONE}."
        )
    return too_long(parameters, target)


def fixed(parameters: dict) -> str:
    """The length of the chains, in words."""
    return f"Each round drafts {parameters['num_assistant_tokens']} tokens per text."


def decode(
    lane: Lane, mistake: str, choose: Callable[[list[Text]], list[Text]] = lambda texts: texts
) -> Iterator[None]:
    """Rounds over padded rectangles, for models that keep nothing but keys and values; others read each text
    as it stands.
    """
    for role, model in lane.models.items():
        if type(model.engine) is Engine:
            lane.scorers[role].close()
            lane.scorers[role] = Rectangle(model.engine.model, lane.tree, mistake)
    target, count = lane.scorers["target"], lane.parameters["num_assistant_tokens"]

    def propose(texts: list[Text]) -> list[Draft]:
        lane.record_measure(lane.tip, ScoreName.DRAFT_LENGTH, count)
        return draft_chains(texts, [count] * len(texts))

    def observe(texts: list[Text], drafts: list[Draft], verifications: list[Verification]) -> None:
        if isinstance(target, Rectangle):
            for text, row in zip(texts, target.rows.values(), strict=True):
                widths = {"moved": row.moved, "width": target.width}
                lane.record_measure(
                    lane.tip, ScoreName.PADDING, row.padding, level=f"text {text.number}", **widths
                )

    yield from batch_rounds(lane, propose, verifier_of(mistake), observe, choose)


@strategy(
    name="eqspec",
    title="EQSPEC",
    family="speculative",
    needs=("target", "draft"),
    takes_memory=False,
    parameters=(
        PROMPTS,
        GUESSES,
        choice("mistake", NONE, "A deliberate mistake, to see what it costs.", MISTAKES),
        MODEL_DEFAULTS,
    ),
    papers=("batch-speculative-decoding-done-right",),
    view="batch",
    badge=lambda parameters: (
        "relaxed" if parameters["mistake"] != NONE else badge(chains(0.0, ""), GREEDY_MATCH, 0.0)
    ),
    parts=lambda parameters: described(chains(0.0, fixed(parameters)), verifier_of(parameters["mistake"])),
    together=too_many,
    suits=unpadded,
)
def eqspec(lane: Lane) -> Iterator[None]:
    """A padded batch that stays correct although each text accepts a different number of tokens.

    1. The texts stand in a rectangle, padded on the left; a mask hides the padding, and positions count only
       the tokens of a text.
    2. The draft writes num_assistant_tokens guesses for every text, with one batched forward per guess.
    3. One batched target forward checks them. A text keeps its guesses up to the first that is not the
       target's most likely token, and gets the target's own.
    4. Now the rows differ in length. Each is unpadded, its accepted tokens are appended, and all are
       padded again: cache entries move to other columns and must stay aligned with their tokens.

    Greedy only. The published code drops the target's extra token when all guesses match; here it is kept.
    Three mistakes found in other implementations can be switched on. The lane's prompt is the first text.
    """
    yield from decode(lane, lane.parameters["mistake"])


@strategy(
    name="exspec",
    title="EXSPEC",
    family="speculative",
    needs=("target", "draft"),
    takes_memory=False,
    parameters=(
        PROMPTS,
        GUESSES,
        integer("batch_size", 2, "Number of texts that share a forward.", low=1, high=16),
        integer("window", 4, "Number of texts from which a batch is chosen.", low=1, high=16),
        MODEL_DEFAULTS,
    ),
    papers=("batch-speculative-decoding-done-right",),
    view="batch",
    badge=lambda parameters: badge(chains(0.0, ""), GREEDY_MATCH, 0.0),
    parts=lambda parameters: described(chains(0.0, fixed(parameters)), GREEDY_MATCH),
    together=too_many,
    suits=unpadded,
)
def exspec(lane: Lane) -> Iterator[None]:
    """Texts of equal length in a window share the next forward: no padding, no repair.

    1. All unfinished texts are sorted once by their initial lengths; the first `window` of them are open.
    2. The first batch_size open texts of one length run together, without any padding.
    3. If no length occurs that often, the first batch_size open texts run, padded as in EQSPEC.
    4. Each text keeps its own cache while it waits. A finished text makes room in the window.

    Greedy only. Every text is the same as if it were decoded alone, whatever the window and the batch size.
    The lane's prompt is the first text.
    """
    size, window = lane.parameters["batch_size"], lane.parameters["window"]
    order: list[int] = []  # the texts' numbers, shortest first

    def choose(texts: list[Text]) -> list[Text]:
        if not order:
            order.extend(text.number for text in sorted(texts, key=lambda text: text.length))
        return of_one_length(sorted(texts, key=lambda text: order.index(text.number))[:window], size)

    yield from decode(lane, NONE, choose)


def of_one_length(texts: list[Text], size: int) -> list[Text]:
    """The first `size` texts of one length, both with a cache or both without; the first `size` if no length
    has this many.
    """
    groups: dict[tuple[int, bool], list[Text]] = {}
    for text in texts:
        group = groups.setdefault((text.length, text.started), [])
        group.append(text)
        if len(group) == size:
            return group
    return texts[:size]
