"""Lookahead decoding: a window of guesses, corrected in every forward, leaves n-grams that are drafts later.

Fu et al. (2024), Break the Sequential Dependency of LLM Inference Using Lookahead Decoding. The window is a
comb: its first row is a chain after the newest token, and below each token of that chain hangs what the model
predicted for it in later forwards. It is scored together with the draft, in the same forward.
"""

from dataclasses import dataclass, field

import torch

from decoders.lane import Lane
from decoders.parameters import integer, switch
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import speculative
from decoders.speculative.default_verifier import simplest
from decoders.speculative.draft_verify_loop import drawn_again
from decoders.speculative.interfaces import FIXED, Draft, Drafter, Pair, Seen, Verification
from decoders.trace.number_format import many
from decoders.waits import DEPENDENCIES, Standing, Waits

NGram = tuple[int, ...]


@dataclass
class Pool:
    """The n-grams found so far: token -> what may follow it, oldest first, at most `max_ngrams` entries per
    token.
    """

    max_ngrams: int
    entries: dict[int, list[NGram]] = field(default_factory=dict)

    def add(self, token: int, rest: NGram) -> None:
        """Adds an n-gram; a known one becomes the newest, and the oldest beyond `max_ngrams` is dropped."""
        known = self.entries.setdefault(token, [])
        if rest in known:
            known.remove(rest)
        known.append(rest)
        del known[: max(0, len(known) - self.max_ngrams)]

    def read(self, text: list[int], n: int, new: int) -> None:
        """Adds the n-grams of `text` that end in one of its last `new` tokens."""
        for end in range(max(n, len(text) - new + 1), len(text) + 1):
            self.add(text[end - n], tuple(text[end - n + 1 : end]))


@dataclass
class Window:
    """`rows[l][i]` is a guess for the place l + i after the newest token, made after `rows[l - 1][i]`.

    `rows[0][0]` stands for the newest token itself. There are up to n - 1 rows; once there are that many, all
    of them have `width` columns.
    """

    n: int
    width: int
    pool: Pool
    from_prompt: bool
    rows: list[list[int]] = field(default_factory=list)
    comb: list[list[int]] = field(default_factory=list)  # the nodes of `rows` in this round
    passes: int = 0
    waits: Waits = field(default_factory=Waits)

    def propose(self, lane: Lane) -> Draft:
        """The n-grams of the pool that begin with the newest token, as a tree; the window beside it."""
        text = lane.tree.text(lane.tip)
        if not self.passes:
            self.rows = [[text[-1], *(any_of(text, lane, i) for i in range(self.width + self.n - 3))]]
            if self.from_prompt:
                self.pool.read(text, self.n, len(text))
        self.rows[0][:1] = text[-1:]
        draft = Draft(lane.tip)
        for rest in self.pool.entries.get(text[-1], []):
            add_chain(lane, draft, rest[: lane.left - 1], "pool")
        draft.beside = self.add_comb(lane)
        return draft

    def add_comb(self, lane: Lane) -> list[int]:
        """Adds the comb below the newest token, as far as there is text left to write; its new nodes."""
        columns = max(0, lane.left - len(self.rows) + 1)
        self.rows = [row[:columns] for row in self.rows]
        trunk = [lane.tip][:columns]
        for token in self.rows[0][1:]:
            trunk.append(lane.tree.add(trunk[-1], token))
        self.comb = [trunk]
        for row in self.rows[1:]:
            self.comb.append([lane.tree.add(above, t) for above, t in zip(self.comb[-1], row, strict=True)])
        return [node for level in self.comb for node in level if node != lane.tip]

    def observe(self, lane: Lane, draft: Draft, verification: Verification, seen: Seen) -> None:
        """Reads the next row off the forward, harvests n-grams, and moves the window on by one token."""
        self.passes += 1
        text = lane.tree.text(lane.tip)
        new_tokens = text[lane.tree.depths[draft.root] + 1 :]
        for position, token in enumerate(new_tokens, len(text) - len(new_tokens)):
            lane.cell(position, self.passes, token, "settled")
        if self.from_prompt:
            self.pool.read(text, self.n, len(new_tokens))
        at = {node: row for row, node in enumerate(seen.nodes)}
        warm = len(self.rows) == self.n - 1
        top = self.comb[-1] if warm else self.comb[-1][1:]
        if not top:
            self.record_waits(lane, new_tokens, verification, {})
            return
        fresh = seen.logits[[at[node] for node in top]].argmax(-1).tolist()
        given = {
            lane.tree.depths[node] + 1: Standing(token, node, likeliest)
            for node, token in zip(top, fresh, strict=True)
        }
        for i, (position, token) in enumerate(zip(given, fresh, strict=True)):
            if token in lane.eos:
                given[position] = Standing(any_of(text, lane, i))
        fresh = [now.token for now in given.values()]
        self.record_guesses(lane, len(text), lane.tree.depths[top[0]] + 1, fresh)
        self.record_waits(lane, new_tokens, verification, given)
        if warm:
            self.harvest(lane, fresh)
            self.rows = [*self.rows[1:], fresh]
        else:
            self.rows = [*(row[1:] for row in self.rows), fresh]

    def harvest(self, lane: Lane, fresh: list[int]) -> None:
        """Each column, from its top to the newest guess, is an n-gram."""
        grams = list(zip(*self.rows, fresh, strict=True))
        for token, *rest in grams:
            self.pool.add(token, tuple(rest))
        held = sum(map(len, self.pool.entries.values()))
        lane.note(
            f"The window left {many(len(grams), 'run')} of {many(self.n, 'token')}; the pool holds {held}."
        )

    def record_waits(
        self, lane: Lane, new_tokens: list[int], verification: Verification, guesses: dict[int, Standing]
    ) -> None:
        """Records what the new tokens waited for, if the lane asks for it. An n-gram of the pool exists
        before the forward that checks it, so its tokens do not wait for each other. guesses: the window's
        newest row.
        """
        if not lane.parameters["dependencies"]:
            return
        end = lane.tree.depths[lane.tip] + 1
        new = range(end - len(new_tokens), end)
        given = {position: now for position, now in guesses.items() if position >= end}
        for position, token in zip(new, new_tokens, strict=True):
            if position < end - 1 or verification.token is None:
                self.waits.guess(position, token)
            else:
                drawn = lane.parameters["temperature"] > 0.0
                node = None if drawn and verification.u is None else lane.tree.parents[lane.tip]
                given[position] = Standing(token, node, drawn_again(lane, verification.u), drawn)
        self.waits.read(lane, given)
        self.waits.settle(lane, new)

    def record_guesses(self, lane: Lane, end: int, first: int, fresh: list[int]) -> None:
        """The new guesses, from position `first` on, as far as they lie after the text of `end` tokens."""
        for position, token in enumerate(fresh, first):
            if position >= end:
                lane.cell(position, self.passes, token, "guess")


def add_chain(lane: Lane, draft: Draft, tokens: NGram, source: str) -> None:
    """Adds a chain below the root of the draft, sharing the prefix that the tree already has."""
    node = draft.root
    for token in tokens:
        below = {lane.tree.tokens[child]: child for child in draft.children.get(node, [])}
        node = below.get(token) or draft.propose(lane, node, token, None, source=source, fill=FIXED)
        if token in lane.eos:
            break


def likeliest(logits: torch.Tensor, node: int) -> int:
    """The window's guess from logits [1, V]."""
    return int(logits[0].argmax())


def any_of(text: list[int], lane: Lane, place: int) -> int:
    """Any token of the prompt, for lack of a better guess; not an end-of-text token if it has others."""
    prompt = text[: lane.tree.trunk]
    prompt = [token for token in prompt if token not in lane.eos] or prompt
    return prompt[lane.chooser.categorical(torch.ones(len(prompt)), ("guess", lane.written, place)).value]


def windowed(n: int, width: int, max_ngrams: int, from_prompt: bool) -> Drafter:
    """A drafter that draws its n-grams from a window of its own."""
    window = Window(n, width, Pool(max_ngrams), from_prompt)
    says = "Runs of tokens that a window of guesses left in earlier forwards, if they begin with this token."
    return Drafter(window.propose, FIXED, observe=window.observe, name="n-gram pool", says=says)


@speculative(
    name="lookahead",
    title="Lookahead",
    parameters=(
        integer("ngram_size", 4, "Tokens per run in the pool, including the first.", low=2, high=16),
        integer("window_size", 5, "Positions that are guessed ahead at a time.", low=1, high=64),
        integer("pool_size", 5, "Runs kept per token; 0 keeps none.", low=0, high=64),
        switch("prompt_ngrams", False, "Also add runs from the prompt and the text to the pool."),
        switch("dependencies", False, DEPENDENCIES.help),
        *GREEDY,
    ),
    papers=("break-the-sequential-dependency-of-llm-inference",),
)
def lookahead_pair(parameters: dict) -> Pair:
    """The model drafts for itself: a window of guesses yields n-grams that are verified in one forward.

    1. A window of guesses stands after the newest token. Each forward gives the model's most likely token
       after every guess; these are its next row.
    2. Each column of the window, from its top to the newest row, is a run of ngram_size tokens. It goes into
       a pool, indexed by its first token.
    3. In the same forward the target checks the runs of the pool that begin with the newest token, and
       follows them as far as they hold.
    4. The window moves on by one position.

    It needs no second model, but evaluates `(ngram_size - 1) (window_size + runs)` tokens in a forward: this
    pays off where a forward over many tokens takes no longer than one over few.

    With dependencies, lens forwards find out what each position waited for: the earlier tokens in the window
    are put back one by one, and where that brings back the old guess, the position had waited for them. A run
    from the pool existed before its forward, so its tokens do not wait for each other.
    """
    sizes = (parameters["ngram_size"], parameters["window_size"], parameters["pool_size"])
    return simplest(windowed(*sizes, parameters["prompt_ngrams"]), parameters["temperature"])
