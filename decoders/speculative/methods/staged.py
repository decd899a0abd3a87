"""Staged speculative decoding: the draft model is itself decoded speculatively, with an n-gram as its draft.

Spector and Re (2023). The paper draws a table of trigrams from its draft model and publishes no widths; here
the table counts stored texts (or the text so far is looked up), and the tree is a spine with leaves.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import torch

from decoders.datastore import Prefix, encoded, followers, names
from decoders.lane import Lane
from decoders.parameters import choice, integer, integers
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import speculative
from decoders.speculative.default_verifier import simplest
from decoders.speculative.drafters.draft_model import DRAFT_MODEL
from decoders.speculative.drafters.fixed_trees import Guess, skeleton
from decoders.speculative.interfaces import Draft, Pair, Shape, drafted
from decoders.speculative.methods.prompt_lookup import look_up
from decoders.trace.number_format import many, were

LONGEST = 3  # at most this many tokens in a row are looked up in the text so far
ORIGIN = {"table": "trigrams", "text": "prompt"}  # what the trace calls the source of such guesses
Ahead = Callable[[list[int], int], list[int]]  # (text, count) -> up to `count` tokens that may follow


@lru_cache(maxsize=8)
def successors(tokens: Prefix) -> dict[Prefix, int]:
    """The most frequent successor of each token and pair of tokens in a store; the smaller on ties."""
    return {run: min(after, key=lambda t, a=after: (-a[t], t)) for run, after in followers(tokens, 2).items()}


def from_table(table: dict[Prefix, int]) -> Ahead:
    """Guesses the successor of the last two tokens, or of the last one where that pair was never seen."""

    def ahead(text: list[int], count: int) -> list[int]:
        guesses: list[int] = []
        for _ in range(count):
            last = (*text[-2:], *guesses)[-2:]
            token = table.get(last, table.get(last[-1:]))
            if token is None:
                break
            guesses.append(token)
        return guesses

    return ahead


def from_text(text: list[int], count: int) -> list[int]:
    """Guesses what followed the last few tokens earlier in the text."""
    start, _ = look_up(text, LONGEST)
    return text[start : start + count]


def staged(shape: Shape, levels: int, ahead: Callable[[Lane], Ahead], count: int, origin: str) -> Shape:
    """`shape`, whose source reads up to `count` guesses of `ahead` in the same forward as the nodes it is
    asked about. If the shape then drafts a token that was guessed, its scores are known and cost no forward.

    The draft and its distribution are the source's own: a guess is kept if the source chooses the same token,
    which is the exact rule for deterministic guesses. `levels`: the maximum depth of the draft.
    """

    def grow(lane: Lane, draft: Draft, guess: Guess, max_levels: int) -> None:
        depths, last = lane.tree.depths, lane.tree.depths[lane.tip] + min(levels, max_levels) - 1
        read: set[int] = set()
        guessed = forwards = 0

        def known_before(nodes: list[int]) -> torch.Tensor:
            nonlocal guessed, forwards
            if unread := [n for n in nodes if n not in read]:
                for node in unread[:]:
                    tokens = ahead(lane)(lane.tree.text(node), min(count, last - depths[node]))
                    for token in until_end(lane, tokens):
                        parent, node = node, lane.tree.add(node, token)
                        draft.ahead[parent, token] = {"node": node, "source": origin}
                        unread.append(node)
                        guessed += 1
                lane.score(unread, "draft", role="draft")
                read.update(unread)
                forwards += 1
            return guess(nodes)

        shape.grow(lane, draft, known_before, max_levels)
        wrong = [entry["node"] for entry in draft.ahead.values()]
        lane.drop(wrong)
        if guessed:
            lane.note(
                f"Ahead of the draft {were(guessed, 'token')} guessed; the draft chose "
                f"{guessed - len(wrong)} of them itself. For "
                f"{many(len(draft.scores), 'distribution')} it took {many(forwards, 'forward')}."
            )

    says = f"{shape.says} Guesses from {NAMED[origin]} are read with it, so that fewer forwards are needed."
    return replace(shape, grow=grow, name=f"staged {shape.name}", says=says)


NAMED = {"trigrams": "a table of trigrams", "prompt": "the text so far"}


def until_end(lane: Lane, tokens: list[int]) -> list[int]:
    """The tokens before the first end-of-text token."""
    ends = [i for i, token in enumerate(tokens) if token in lane.eos]
    return tokens[: ends[0]] if ends else tokens


def spine(widths: list[int]) -> dict[tuple[int, ...], int]:
    """The form of a tree in which the first node of each level has `widths` children, and others none."""
    return {(0,) * depth: width for depth, width in enumerate(widths)}


@speculative(
    name="staged",
    title="Staged speculative decoding",
    parameters=(
        choice(
            "stage",
            "table",
            "What guesses for the draft: a table, the text so far, or nothing.",
            ("table", "text", "off"),
        ),
        integer("guesses_ahead", 3, "Maximum number of guesses that a draft forward reads.", low=1, high=16),
        integers("widths", [3, 2, 2, 1, 1], "Children of the spine's nodes, level by level.", low=1, high=8),
        choice("store", "stories", "Texts in which the table is counted.", names()),
        *GREEDY,
    ),
    papers=("accelerating-llm-inference-with-staged-speculative-decoding",),
)
def staged_pair(parameters: dict) -> Pair:
    """Speeds up drafting too: n-grams draft for the draft model, which drafts for the target.

    1. A table of the most frequent successors of two tokens (or one), or the text so far, guesses up to
       guesses_ahead tokens without a forward.
    2. One draft forward reads them all. Where the draft itself chooses the guessed token, its next
       distribution is known without another forward.
    3. In this way it drafts a tree that is wide near the root: the first child of each node is continued,
       the others are leaves, which no draft forward reads.
    4. One target forward checks the tree, like any other draft tree.

    The paper counts its trigrams in texts that the draft model wrote, backs off as Katz does, and publishes
    no widths. Here they are counted in stored texts and only the most likely successor is guessed, so the
    guesses have no distribution of their own; the tree is a spine with leaves. The draft chooses the same
    tokens as without the table, from the same distribution, only in fewer forwards; so the text is the
    target's in either case.
    """
    temperature, widths, stage = parameters["temperature"], parameters["widths"], parameters["stage"]
    shape = skeleton(spine(widths), temperature)
    table: list[Ahead] = []

    def ahead(lane: Lane) -> Ahead:
        if not table:
            read, store = stage == "table", parameters["store"]
            table.append(from_table(successors(encoded(store, lane.models["target"]))) if read else from_text)
        return table[0]

    if stage != "off":
        shape = staged(shape, len(widths), ahead, parameters["guesses_ahead"], ORIGIN[stage])
    return simplest(drafted(DRAFT_MODEL, shape), temperature)
