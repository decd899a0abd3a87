"""Writes what implements which papers to assets/claims.csv, when it is run as a program."""

import csv

from explorer.catalog import papers


def publish(claims: list[papers.Claim]) -> None:
    """Writes the file: a line for each implementation that declares papers."""
    with papers.CLAIMS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(papers.Claim._fields)
        writer.writerows(one._replace(papers=" ".join(one.papers)) for one in claims)


if __name__ == "__main__":
    publish(papers.claims())
