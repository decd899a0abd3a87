"""Where strategies come from and what each changed: the tables beside the papers in assets/.

methods.csv has a strategy's parent, what it changed, and other names that people search it by; sources.csv
papers and libraries outside the 193. Only what is known stands there: an empty cell is one that nobody could
confirm. Knows no declarations.
"""

from functools import cache

from explorer.catalog.papers import table

START = ("greedy", "sample", "beam", "speculative", "speculative_tree", "jacobi")  # what to try first
FIELDS = ("title", "authors", "year", "link")


@cache
def lineage() -> dict[str, dict]:
    """Strategy -> `{parent, differs, aliases}`; `differs` continues "Unlike PARENT, it"."""
    return {
        row["name"]: {
            "parent": row["parent"],
            "differs": row["differs"],
            "aliases": [word.strip() for word in row["aliases"].split(";")],
        }
        for row in table("methods")
    }


def sources(name: str, slugs: tuple[str, ...] = ()) -> list[dict[str, str]]:
    """`{title, authors, year, link}` of the papers with `slugs`, then of its other sources."""
    listed = {row["slug"]: row for row in table("papers")}
    rows = [listed[slug] for slug in slugs]
    rows += [listed.get(row["slug"], row) for row in table("sources") if row["name"] == name]
    return [{field: row[field] for field in FIELDS} for row in rows]


def first_year(rows: list[dict[str, str]]) -> str:
    """The earliest year of these sources, "" if none is known."""
    return min((row["year"] for row in rows if row["year"]), default="")


def cited(row: dict[str, str]) -> str:
    """A source as a line of text: "Chen et al., 2023. Title.", with as much of it as is known."""
    who = ", ".join(row[part] for part in ("authors", "year") if row[part])
    return f"{who}. {row['title']}" if who else row["title"]
