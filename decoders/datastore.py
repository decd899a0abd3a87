"""Texts that drafts are looked up in: runs of tokens, found by their beginning with a suffix array.

Knows tokens and text files, those in assets/stores and those that the environment variable EXPLORER_STORES
names; nothing of lanes or drafts. The look-up and the choice of
prefixes are those of REST (He et al. 2024), section 3.
"""

import os
from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

FOLDER = Path(__file__).resolve().parents[1] / "assets" / "stores"
OWN = "EXPLORER_STORES"  # the environment variable with stores of one's own
BETWEEN = "<|endoftext|>\n"  # between two texts of a file
END = -1  # between two texts of a store; no token of any model
MAX_SUFFIX, MAX_PLACES = 16, 5000  # tokens that are looked for, and places that are looked at, at most
Prefix = tuple[int, ...]
Followers = dict[Prefix, Counter]  # run of tokens -> what followed it, and how often
_ENCODED: WeakKeyDictionary[Any, dict[str, Prefix]] = WeakKeyDictionary()  # tokenizer -> store -> tokens


def files() -> dict[str, Path]:
    """Name -> file of every store: the shipped ones, then those of the environment variable EXPLORER_STORES,
    which holds text files or folders of such, separated as in PATH. Raises ValueError with one sentence if
    one of these is not there, or is called as another store is.
    """
    files_by_name = {path.stem: path for path in sorted(FOLDER.glob("*.txt"))}
    for given in filter(None, os.environ.get(OWN, "").split(os.pathsep)):
        place = Path(given).expanduser()
        own = sorted(place.glob("*.txt")) if place.is_dir() else [place]
        if not own or not own[0].is_file():
            raise ValueError(f"{OWN} names {given}, which is neither a text file nor a folder of .txt files.")
        for path in own:
            if path.stem in files_by_name:
                raise ValueError(f"{OWN}: there is a store called {path.stem} already; rename {path.name}.")
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
    """The tokens of a store as a model cuts its texts, END after each; kept as long as its tokenizer is."""
    kept = _ENCODED.setdefault(model.tokenizer, {}) if hasattr(model, "tokenizer") else {}
    if name not in kept:
        kept[name] = joined([model.encode(text) for text in texts(name)])
    return kept[name]


@dataclass(frozen=True)
class Store:
    """Tokens of texts one after the other, END after each; `order`: their places, sorted by what is there."""

    tokens: Prefix
    order: tuple[int, ...]

    def places(self, tail: list[int]) -> range:
        """Which entries of `order` are places of `tail`, at most LONGEST tokens."""
        wanted, n = tuple(tail), len(tail)

        def here(place: int) -> Prefix:
            return self.tokens[place : place + n]

        return range(bisect_left(self.order, wanted, key=here), bisect_right(self.order, wanted, key=here))

    def after(self, tail: list[int], count: int) -> list[Prefix]:
        """What follows `tail` at its places, up to `count` tokens of the same text each."""
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
    """The store of these tokens. Sorting compares LONGEST tokens, as no more are ever looked for."""
    order = sorted(range(len(tokens)), key=lambda place: tokens[place : place + MAX_SUFFIX])
    return Store(tokens, tuple(order))


def joined(texts: list[list[int]]) -> Prefix:
    """The tokens of texts in one run, END after each."""
    return tuple(token for text in texts for token in (*text, END))


def retrieve(
    store: Store, text: list[int], longest: int, shortest: int, count: int
) -> tuple[int, list[Prefix]]:
    """(n, continuations): what follows the last n tokens of `text` in the store, for the largest such n."""
    for n in range(min(longest, len(text)), shortest - 1, -1):
        if runs := store.after(text[-n:], count):
            return n, runs
    return 0, []


def frequent(continuations: list[Prefix], budget: int) -> dict[Prefix, int]:
    """The `budget` prefixes that most continuations begin with, and how many do, most frequent first.

    A prefix is never rarer than what begins with it, and of equals the shorter comes first, so they are a
    tree; then the smaller tokens come first.
    """
    counts = Counter(run[:end] for run in continuations for end in range(1, len(run) + 1))
    best = sorted(counts, key=lambda prefix: (-counts[prefix], len(prefix), prefix))[:budget]
    return {prefix: counts[prefix] for prefix in best}


@lru_cache(maxsize=8)
def followers(tokens: Prefix, longest: int) -> Followers:
    """What follows each run of 1 to `longest` tokens in a store."""
    followed: Followers = {}
    for i, token in enumerate(tokens):
        for n in range(1, longest + 1):
            run = tokens[max(0, i - n) : i]
            if len(run) < n or END in run or token == END:
                break
            followed.setdefault(run, Counter())[token] += 1
    return followed
