"""What people search by finds what they mean: the names of papers, of authors and of other libraries."""

import pytest

from explorer.catalog import method_cards, papers, search

METHODS = method_cards.listing()["methods"]
MEANT = {
    "nucleus": "sample",
    "top-p": "sample",
    "top-k": "sample",
    "top k": "sample",
    "min-p": "sample",
    "watermark": "sample",
    "argmax": "greedy",
    "beam search": "beam",
    "num_beams": "beam",
    "best first": "best_first",
    "A*": "a_star",
    "MCTS": "value_mcts",
    "Monte-Carlo": "value_mcts",
    "PPL-MCTS": "value_mcts",
    "MBR": "mbr",
    "best-of-n": "mbr",
    "best of n": "mbr",
    "self-consistency": "mbr",
    "majority": "mbr",
    "contrastive": "contrastive_decoding",
    "contrastive search": "contrastive_search",
    "penalty_alpha": "contrastive_search",
    "DoLa": "dola",
    "CFG": "guidance",
    "CAD": "context_aware",
    "Gumbel": "stochastic_beam",
    "grammar": "asap",
    "JSON": "asap",
    "infilling": "self_infilling",
    "steganography": "coupling",
    "Leviathan": "speculative",
    "Chen 2023": "speculative",
    "assisted generation": "speculative",
    "speculative sampling": "speculative",
    "draft model": "speculative",
    "block verification": "speculation",
    "EAGLE": "eagle",
    "EAGLE-2": "eagle2",
    "EAGLE-3": "eagle3",
    "d2t": "eagle3",
    "Medusa": "medusa",
    "Medusa: Simple LLM Inference Acceleration Framework with Multiple Decoding Heads": "medusa",
    "draft heads": "medusa",
    "tree attention": "specinfer",
    "token tree": "specinfer",
    "multi-candidate": "speculative_tree",
    "MCSD": "speculative_tree",
    "optimal transport": "spectr",
    "self-speculative": "layerskip",
    "self speculative": "layerskip",
    "early exit": "layerskip",
    "layer skipping": "swift",
    "RAG drafting": "rapid",
    "PLD": "prompt_lookup",
    "LLMA": "prompt_lookup",
    "n-gram": "prompt_lookup",
    "datastore": "rest",
    "lookahead": "lookahead",
    "fixed point": "jacobi",
    "Santilli": "jacobi",
    "Spec-Drafter": "specdec",
    "goodput": "smartspec",
}


def found(words: str) -> list[dict]:
    return search.best(METHODS, words, search.of_method)


def meant(words: str) -> list[str]:
    """The names of all methods that fit the words as well as the best does: by their own names, say."""
    ranks = [(search.matches(words, *search.of_method(method)), method["name"]) for method in METHODS]
    best = min((rank for rank, _ in ranks if rank is not None), default=None)
    return [name for rank, name in ranks if rank == best and rank is not None]


@pytest.mark.parametrize("words", MEANT)
def test_a_name_that_people_know_finds_the_method(words):
    """Among the first, and few enough that it is seen without scrolling far."""
    names = meant(words)
    assert MEANT[words] in names and len(names) <= 9, names
    assert found(words)[: len(names)] == [method for method in METHODS if method["name"] in names]


def test_the_title_of_a_paper_finds_the_method_that_is_called_like_it_first():
    title = "Medusa: Simple LLM Inference Acceleration Framework with Multiple Decoding Heads"
    names = [method["name"] for method in found(title)]
    assert names[0] == "medusa" and "fragments" in names


def test_papers_are_found_by_author_year_and_short_name():
    rows = papers.papers()
    for words, title in (
        ("Leviathan 2022", "Fast Inference"),
        ("DBS", "Diverse Beam"),
        ("Ebrahimi", "Minimum"),
    ):
        assert search.best(rows, words, search.of_paper)[0]["title"].startswith(title), words
    assert search.best(rows, "no such paper", search.of_paper) == []


def test_a_hyphen_may_be_left_out_and_a_word_is_not_found_in_the_middle_of_another():
    assert search.matches("topk", "top-k") == search.matches("top-k", "top k") == (0, 0)
    assert search.matches("ram", "n-gram") is None
    assert search.matches("gram", "n-gram") == (0, 0)
