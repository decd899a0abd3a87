"""Where methods come from: every strategy names its source, and years, links and parents fit each other."""

import re

import pytest

from decoders.registry import strategies
from explorer.catalog import method_cards, origins, papers

LINK = re.compile(r"(https://arxiv\.org/abs/\d{4}\.\d{4,5}|https?://(?!arxiv)[\w.-]+/\S*)")
ROWS = [*papers.papers(), *(row for row in origins.table("sources") if row["title"])]


def test_papers_have_authors_years_and_links_that_fit_each_other():
    for row in ROWS:
        assert not row["year"] or 2016 <= int(row["year"]) <= 2026, row
        assert not row["link"] or LINK.fullmatch(row["link"]), row
        if found := re.search(
            r"arxiv\.org/abs/(\d\d)", row["link"]
        ):  # printed no earlier than it was sent in
            assert 0 <= int(row["year"]) - 2000 - int(found[1]) <= 2, row
    assert sum(bool(row["authors"]) for row in papers.papers()) >= 170
    known = [row["link"] for row in papers.papers() if row["link"]]
    assert len(known) == len(set(known)) >= 180


@pytest.mark.parametrize(
    "row", [r for r in papers.papers() if r["status"] == "works"], ids=lambda r: r["slug"]
)
def test_a_paper_that_works_here_is_cited_in_full(row):
    assert row["authors"] and row["year"] and row["link"]


def test_every_strategy_says_where_it_is_from():
    cards = {card["name"]: card for card in method_cards.listing()["methods"]}
    for name, strategy in strategies().items():
        assert cards[name]["sources"], name
        titles = {row["title"] for row in cards[name]["sources"]}
        assert {paper["title"] for paper in cards[name]["papers"]} <= titles
        assert len(cards[name]["sources"]) >= len(strategy.papers)
    assert any(row["authors"] == "Chen et al." for row in cards["speculative"]["sources"])
    assert set(origins.lineage()) == set(strategies())
    assert {row["name"] for row in origins.table("sources")} <= set(strategies())


def test_no_method_is_older_than_what_it_grew_from():
    known = {name: origins.first_year(origins.sources(name, s.papers)) for name, s in strategies().items()}
    for name, row in origins.lineage().items():
        assert row["differs"] and row["aliases"][0]
        if row["parent"]:
            assert known[row["parent"]] <= known[name], (row["parent"], name)


def test_what_is_different_continues_a_sentence():
    """ "Unlike Medusa, it lets each head ...": each begins with a verb of the third person."""
    for name, row in origins.lineage().items():
        assert re.match(r"[a-z]+(-[a-z]+)?s\b", row["differs"]), (name, row["differs"])


def test_a_citation_leaves_out_what_is_not_known():
    row = {"title": "A title", "authors": "", "year": "2024", "link": ""}
    assert origins.cited(row) == "2024. A title"
    assert origins.cited(row | {"authors": "Li et al."}) == "Li et al., 2024. A title"
