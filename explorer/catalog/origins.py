"""Where strategies come from and what each one changed, from two tables in assets/.

methods.csv has each strategy's parent, where a branch of the map of decoding begins, how the strategy differs
from its parent, and other names that people search for; sources.csv has papers and libraries outside the 193;
head_gains.csv has what trained drafters gain. An empty cell is a fact that could not be confirmed.
"""

from functools import cache

from explorer.catalog.papers import INDEX, table

GAINS = INDEX.with_name("head_gains.csv")  # what trained drafters gain, see publish_head_gains.py
START = ("greedy", "sample", "beam", "speculative", "speculative_tree", "jacobi")  # suggested first
FIELDS = ("title", "authors", "year", "link")


@cache
def lineage() -> dict[str, dict]:
    """Strategy -> `{parent, branch, differs, aliases}`; `branch`: the mechanism with which it begins a branch
    of the map of decoding, "" if it belongs to that of its parent; `differs` continues "Unlike PARENT, it".
    """
    return {
        row["name"]: {
            "parent": row["parent"],
            "branch": row["branch"],
            "differs": row["differs"],
            "aliases": [word.strip() for word in row["aliases"].split(";")],
        }
        for row in table("methods")
    }


def sources(name: str, slugs: tuple[str, ...] = ()) -> list[dict[str, str]]:
    """`{title, authors, year, link}` of the papers in `slugs`, then of the strategy's other sources."""
    listed = {row["slug"]: row for row in table("papers")}
    rows = [listed[slug] for slug in slugs]
    rows += [listed.get(row["slug"], row) for row in table("sources") if row["name"] == name]
    return [{field: row[field] for field in FIELDS} for row in rows]


@cache
def gains() -> dict[str, dict[str, str]]:
    """Drafter -> its row of head_gains.csv."""
    return {row["drafter"]: row for row in table(GAINS.stem)}


def gain(name: str) -> str:
    """What a strategy with a trained drafter gained with the shipped target, as a sentence; "" for others."""
    if (row := gains().get(name)) is None:
        return ""
    speed, tokens = float(row["against_greedy"]), float(row["on_stories"])
    return (
        f"Measured with the shipped target on a CPU: {speed:.2f} times the speed of greedy decoding, and "
        f"{tokens:.1f} tokens per target forward on stories. “On another machine” in Microscope estimates "
        "from your own run where it would pay off."
    )


def first_year(rows: list[dict[str, str]]) -> str:
    """The earliest year of these sources, "" if none is known."""
    return min((row["year"] for row in rows if row["year"]), default="")


def cited(row: dict[str, str]) -> str:
    """A source as a line of text, "Chen et al., 2023. Title.", without what is unknown."""
    who = ", ".join(row[part] for part in ("authors", "year") if row[part])
    return f"{who}. {row['title']}" if who else row["title"]
