"""Datastores from which drafts are retrieved: tokenized texts with a suffix array.

Retrieval and the choice of prefixes are those of REST (He et al. 2024), section 3. Reads the text files in
assets/stores and those that the environment variable EXPLORER_STORES names.
"""

import os
from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from decoders.packages import assets
from decoders.refusal import Refusal

FOLDER = assets() / "stores"
OWN = "EXPLORER_STORES"  # the environment variable that names the user's own stores
BETWEEN = "<|endoftext|>\n"  # separates two texts of a file
END = -1  # ends each text of a store; not a token of any model
MAX_SUFFIX, MAX_PLACES = 16, 5000  # longest suffix that is looked up; most matches that are read
Prefix = tuple[int, ...]
Followers = dict[Prefix, Counter]  # run of tokens -> what followed it, and how often
_ENCODED: WeakKeyDictionary[Any, dict[str, Prefix]] = WeakKeyDictionary()  # tokenizer -> store -> tokens


def files() -> dict[str, Path]:
    """Name -> file of every store: the shipped ones, then those in the environment variable EXPLORER_STORES,
    a list of text files and folders separated as in PATH. Raises Refusal with one sentence if one of these
    is missing or has the name of another store.
    """
    files_by_name = {path.stem: path for path in sorted(FOLDER.glob("*.txt"))}
    for given in filter(None, os.environ.get(OWN, "").split(os.pathsep)):
        place = Path(given).expanduser()
        own = sorted(place.glob("*.txt")) if place.is_dir() else [place]
        if not own or not own[0].is_file():
            raise Refusal(f"{OWN} names {given}, which is neither a text file nor a folder of .txt files.")
        for path in own:
            if path.stem in files_by_name:
                raise Refusal(f"{OWN}: there is a store called {path.stem} already; rename {path.name}.")
            files_by_name[path.stem] = path
    return files_by_name


def names() -> tuple[str, ...]:
    """The stores that can be chosen."""
    return tuple(files())


def texts(name: str) -> list[str]:
    """The texts of a store."""
    content = files()[name].read_text(encoding="utf-8", errors="replace")
    return [text.strip() for text in content.split(BETWEEN)]


def encoded(name: str, model: Any) -> Prefix:
    """The texts of a store in a model's tokens, END after each; cached as long as the tokenizer lives."""
    kept = _ENCODED.setdefault(model.tokenizer, {}) if hasattr(model, "tokenizer") else {}
    if name not in kept:
        kept[name] = concatenated_texts([model.encode(text) for text in texts(name)])
    return kept[name]


@dataclass(frozen=True)
class Store:
    """The concatenated tokens of texts, END after each, and `order`, their suffix array."""

    tokens: Prefix
    order: tuple[int, ...]

    def places(self, tail: list[int]) -> range:
        """The entries of `order` at which `tail`, of at most MAX_SUFFIX tokens, occurs."""
        wanted, n = tuple(tail), len(tail)

        def run_at(place: int) -> Prefix:
            return self.tokens[place : place + n]

        left = bisect_left(self.order, wanted, key=run_at)
        return range(left, bisect_right(self.order, wanted, key=run_at))

    def after(self, tail: list[int], count: int) -> list[Prefix]:
        """What follows each occurrence of `tail`: up to `count` tokens of the same text."""
        runs = []
        for entry in self.places(tail)[:MAX_PLACES]:
            start = self.order[entry] + len(tail)
            run = self.tokens[start : start + count]
            run = run[: run.index(END)] if END in run else run
            if run:
                runs.append(run)
        return runs


@lru_cache(maxsize=8)
def sorted_store(tokens: Prefix) -> Store:
    """The store of these tokens. Suffixes are compared by their first MAX_SUFFIX tokens: no look-up is
    longer.
    """
    order = sorted(range(len(tokens)), key=lambda place: tokens[place : place + MAX_SUFFIX])
    return Store(tokens, tuple(order))


def concatenated_texts(texts: list[list[int]]) -> Prefix:
    """The texts concatenated, END after each."""
    return tuple(token for text in texts for token in (*text, END))


def retrieve(
    store: Store, text: list[int], longest: int, shortest: int, count: int
) -> tuple[int, list[Prefix]]:
    """(n, continuations): what follows the last n tokens of `text` in the store, for the largest n from
    `longest` down to `shortest` that occurs there; (0, []) if none does. At most `count` tokens each.
    """
    for n in range(min(longest, len(text)), shortest - 1, -1):
        if runs := store.after(text[-n:], count):
            return n, runs
    return 0, []


def frequent(continuations: list[Prefix], budget: int) -> dict[Prefix, int]:
    """The `budget` most frequent prefixes of the continuations with their counts, most frequent first; ties
    go to the shorter prefix, then to the smaller tokens.

    No prefix is rarer than its extensions, so the chosen ones form a tree.
    """
    counts = Counter(run[:end] for run in continuations for end in range(1, len(run) + 1))
    best = sorted(counts, key=lambda prefix: (-counts[prefix], len(prefix), prefix))[:budget]
    return {prefix: counts[prefix] for prefix in best}


@lru_cache(maxsize=8)
def followers(tokens: Prefix, longest: int) -> Followers:
    """For each run of 1 to `longest` tokens in a store, how often each token follows it."""
    followed: Followers = {}
    for i, token in enumerate(tokens):
        for n in range(1, longest + 1):
            run = tokens[max(0, i - n) : i]
            if len(run) < n or END in run or token == END:
                break
            followed.setdefault(run, Counter())[token] += 1
    return followed
