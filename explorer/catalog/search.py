"""Finds methods, draft heads and papers by title, alias, author, mechanism or year, best matches first."""

import re


def matches(words: str, *texts: str) -> tuple[int, int] | None:
    """The rank of a match, (0, 0) best: n if every search word begins a word of the first n + 1 texts, which
    are in order of importance, and how many of the words begin none of the first text, so that the title of a
    paper finds the method that is called like it first. None if one is in none of them. "top-k" also matches
    "top k" and "topk".
    """
    wanted = [re.compile(rf"(?<![^\W_]){joined(word)}", re.IGNORECASE) for word in words.split()]
    missing = 0
    for rank in range(1, len(texts) + 1):
        text = " ".join(texts[:rank]).replace("_", " ")
        found = [one.search(text) or one.search(text.replace("-", "")) for one in wanted]
        missing = found.count(None) if rank == 1 else missing
        if all(found):
            return rank - 1, missing
    return None


def joined(word: str) -> str:
    """A regular expression for a word with or without its hyphens."""
    return r"[\W_]?".join(map(re.escape, re.split("[-‑–_]", word)))


def best(rows: list[dict], words: str, texts) -> list[dict]:
    """The rows that match, best first, ties in their order. `texts(row)`: the texts that are searched."""
    ranks = [(matches(words, *texts(row)), row) for row in rows]
    return [row for rank, row in sorted((r for r in ranks if r[0] is not None), key=lambda r: r[0])]


def of_method(method: dict) -> list[str]:
    """The searched texts of a method: its names; the paper it is from, with authors; the papers it builds on;
    its summary and parts.
    """
    papers = [f"{row['title']} {row['authors']} {row['year']}" for row in method["sources"]]
    parts = [f"{part['kind']} {part['name']}" for part in method["parts"]]
    return [
        " ".join([method["title"], method["name"], *method["aliases"]]),
        " ".join(papers[:1]),
        " ".join(papers[1:]),
        " ".join([method["summary"], method["differs"], *parts]),
    ]


def of_paper(paper: dict) -> list[str]:
    """The searched texts of a paper or a draft head: its names; authors and year."""
    names = [paper.get("name", ""), paper["title"], paper.get("alias", ""), *paper.get("aliases", [])]
    return [" ".join(names), f"{paper['authors']} {paper['year']}"]
