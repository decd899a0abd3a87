"""The former names of views: links, saved runs, requests, command lines and strategies may still use them."""

FORMER = {  # former name -> name
    "against_entropy": "value_against_entropy",
    "beads": "topics",
    "draft_round": "one_round",
    "draft_tree": "draft_rounds",
    "gauges": "values_per_token",
    "heap": "open_slots",
    "physical_order": "reading_order",
    "pieces": "segments",
    "plans": "content_plans",
    "samples_trie": "sample_trie",
    "shortlist": "target_top_tokens",
    "states": "constraint_automaton",
    "sum_parts": "score_terms",
    "zones": "writing_order",
}


def current(name: str) -> str:
    """The name of a view today; any other text stays as it is."""
    return FORMER.get(name, name)
