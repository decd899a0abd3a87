"""Finds methods, draft heads and papers by title, alias, author, mechanism or year, best matches first.

Knows the listing of method_cards, nothing of the page.
"""

import re


def matches(words: str, *texts: str) -> int | None:
    """How well texts fit the words, 0 best: all words begin words of the first text or of the first few, of
    which the later say less; None if one word is nowhere. "top-k" is also "top k" and "topk".
    """
    wanted = [re.compile(rf"(?<![^\W_]){joined(word)}", re.IGNORECASE) for word in words.split()]
    for rank in range(1, len(texts) + 1):
        text = " ".join(texts[:rank]).replace("_", " ")
        if all(one.search(text) or one.search(text.replace("-", "")) for one in wanted):
            return rank - 1
    return None


def joined(word: str) -> str:
    """A pattern for a word with or without its hyphens."""
    return r"[\W_]?".join(map(re.escape, re.split("[-‑–_]", word)))


def best(rows: list[dict], words: str, texts) -> list[dict]:
    """The rows that fit the words, the best first, else in their order. `texts(row)`: what it is found by."""
    ranks = [(matches(words, *texts(row)), row) for row in rows]
    return [row for rank, row in sorted((r for r in ranks if r[0] is not None), key=lambda r: r[0])]


def of_method(method: dict) -> list[str]:
    """What a method is found by: its names, then authors and papers, then its parts and what it says."""
    papers = [f"{row['title']} {row['authors']} {row['year']}" for row in method["sources"]]
    parts = [f"{part['kind']} {part['name']}" for part in method["parts"]]
    return [
        " ".join([method["title"], method["name"], *method["aliases"]]),
        " ".join(papers),
        " ".join([method["summary"], method["differs"], *parts]),
    ]


def of_paper(paper: dict) -> list[str]:
    """What a paper or a draft head is found by: its names, then authors and year."""
    names = [paper.get("name", ""), paper["title"], paper.get("alias", ""), *paper.get("aliases", [])]
    return [" ".join(names), f"{paper['authors']} {paper['year']}"]
