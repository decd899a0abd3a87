"""The cards of the Methods section: every strategy from its declaration, every paper from the index.

A card's picture is a real run that `python -m explorer.catalog.recorded_runs` recorded in
assets/examples/methods/; it is drawn on request.
"""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from decoders.explain import algorithm
from decoders.models.catalog import DRAFT
from decoders.packages import assets
from decoders.refusal import Refusal
from decoders.registry import BADGES, FAMILIES, get, strategies
from decoders.strategy import Strategy
from decoders.trace.trace import Trace, load
from explorer.catalog import origins, papers
from explorer.runs.model_pool import Loader
from explorer.runs.validation import check
from visualizers.registry import titles

FOLDER = assets() / "examples" / "methods"
FLAWS = "llama-tiny-flaws"  # labels flawed lines of programs
FORMS = "llama-tiny-forms"  # fills in the middle
SUMMARIES = "llama-tiny-summaries"  # has plan tags and topics
SHEET = (
    "Mia has a small dog. Tom has a red hat and Mia likes soup. Tom is in the park. Mia plays the drum."
    "\nSummary:"
)
RECORD = "In Cairo lives Max, 98 years old, with a cat. As json:\n"
PLACES = "in the park | in the garden | in the house | at the park | at school | a dog | soup"
PAPER = ("slug", "title", "family", "status", "authors", "year", "link", "alias", "how", "card")
USUAL = {"prompt": "Once upon a time", "max_new_tokens": 10, "parameters": {}}
SETUPS = {  # for methods whose point the usual set-up would not show
    "momentum": {
        "prompt": "Ben has a red ball. Ben has a blue ball. Mia has a",
        "max_new_tokens": 30,
    },
    "fsd": {
        "prompt": "Ben has a red ball. Ben has a blue ball. Mia has a",
        "max_new_tokens": 30,
    },
    "adadec": {
        "prompt": "Lily had a big wish. She wanted to",
        "max_new_tokens": 24,
        "parameters": {"tau": 1.5},
    },
    "autodeco": {"prompt": "Lily had a big wish. She wanted to", "max_new_tokens": 24},
    "label_ban": {
        "prompt": "Task: write c, read d, write c\nProgram:\n",
        "max_new_tokens": 40,
        "models": {"target": FLAWS},
    },
    "ead": {"max_new_tokens": 30, "parameters": {"stay": 3}},
    "aggressive": {
        "prompt": "The king said: I will give my golden ring to the man who can find my lost horse. The man "
        "did not hear it. So the king said: I will give my",
        "parameters": {"source": "whole prompt"},
    },
    "guidance": {
        "prompt": "Anna was a little fish. She lived in the big blue sea.",
        "max_new_tokens": 16,
        "parameters": {"guidance_scale": 3.0},
    },
    "lm_guidance": {
        "prompt": "Anna was a little fish. She lived in the big blue sea.",
        "max_new_tokens": 16,
        "parameters": {"condition_weight": 2.0, "unconditional_weight": 1.5},
    },
    "contrastive_decoding": {
        "prompt": "Ben has a red ball. Ben has a blue ball. Mia has a red ball. Mia has a",
        "max_new_tokens": 16,
    },
    "drax": {
        "prompt": "correct: the cat was so hungry that it eats the cake. =>",
        "max_new_tokens": 16,
        "parameters": {},
    },
    "dola": {"prompt": "Anna was a little fish. She lived in the big blue sea.", "max_new_tokens": 16},
    "scmoe": {
        "prompt": "One day, Lily went to the park.",
        "max_new_tokens": 16,
        "models": {"target": "llama-tiny-moe", "draft": DRAFT},
    },
    "context_aware": {
        "prompt": "The sky in this land is green. The grass is red.\nTom looked up. The color of the sky was",
        "parameters": {"alpha": 2.0},
    },
    "instructive": {
        "prompt": "Once upon a time there was a dog.",
        "max_new_tokens": 16,
        "parameters": {"noise": "none", "epsilon": 0.7},
    },
    "coupling": {"max_new_tokens": 16, "parameters": {"message": "abacad"}},
    "treecoder": {
        "prompt": "program for\n3 1 2 -> 3 3 1 1 2 2\n5 9 -> 5 5 9 9\n0 4 1 -> 0 0 4 4 1 1\nis\n",
        "max_new_tokens": 12,
        "parameters": {"decoder": "sampling", "constraints": "syntax, tests", "population": 6},
    },
    "asap": {
        "prompt": "Anna from Berlin has a mouse and is 42. As json:\n",
        "max_new_tokens": 60,
        "parameters": {"constraints": "json", "samples": 2, "temperature": 1.5},
    },
    "awrs": {
        "prompt": "Ben is 73 years old, lives in Paris and has a bird. As yaml:\n",
        "max_new_tokens": 40,
        "parameters": {
            "population": 4,
            "temperature": 1.8,
            "constraint": "regex",
            "constraint_text": "name: [A-Z][a-z]+\\nage: [0-9]{1,3}\\n"
            "city: [A-Z][a-z]+\\npet: (cat|dog|bird)",
        },
    },
    "trie_search": {
        "prompt": "Tom felt",
        "max_new_tokens": 16,
        "parameters": {
            "labels": "happy|sad|so sad that she cried|angry|a big dog|a big red ball|a dog",
            "answer": "one label",
        },
    },
    "monitor": {
        "prompt": "class Person:\n    name: str\n    nickname: str\n    age: int\n"
        "    def greet(self, other): ...\n\ndef show(p: Person):\n    return p.",
        "max_new_tokens": 24,
    },
    "cfic": {
        "prompt": "Mia has a dog. Sam is in the park. Anna likes soup. Tom is in the garden.\n\n"
        "Question: Where is Tom?\nAnswer:",
        "max_new_tokens": 40,
        "parameters": {"passages": 2},
    },
    "first_finish": {
        "prompt": "The dog was tired. Mom said it was time to sleep.",
        "max_new_tokens": 40,
        "parameters": {"temperature": 0.8},
    },
    "a_star": {
        "prompt": "start 2; +1; -2; +1\n",
        "max_new_tokens": 30,
        "parameters": {"scorer": "arithmetic", "num_samples": 8},
    },
    "cards": {
        "prompt": "One day, Lily went to the park.",
        "max_new_tokens": 24,
        "parameters": {"scorer": "keyword", "keywords": "dog", "max_segment": 8, "max_rejections": 6},
    },
    "best_first": {"prompt": "Lily had a big wish. She wanted to", "max_new_tokens": 4},
    "exact_extract": {
        "prompt": "Lily is in the garden. Tom is in the park.\nQuestion: Where is Tom?\nAnswer:",
    },
    "graph_decoding": {
        "prompt": "Mia has a dog. Sam is in the park. Anna likes soup.\nQuestion: Where is Sam?\nAnswer:",
        "parameters": {"outputs": PLACES},
    },
    "transfer_q": {
        "prompt": "Tom had a big dog.",
        "max_new_tokens": 12,
        "parameters": {
            "scorer": "keyword",
            "keywords": "loved, friend, friends, play, home, kind, happy, family",
            "candidates": 6,
            "guidance": 20.0,
            "rollout_tokens": 12,
        },
    },
    "self_infilling": {
        "prompt": "Once upon a time, there was a little dog",
        "max_new_tokens": 110,
        "models": {"target": FORMS},
    },
    "topic_plan": {
        "prompt": SHEET,
        "max_new_tokens": 60,
        "parameters": {"plan": "t8 t5", "num_beams": 3},
        "models": {"target": SUMMARIES},
    },
    "edu_plans": {"prompt": SHEET, "max_new_tokens": 64, "models": {"target": SUMMARIES}},
    "pg_td": {
        "prompt": "Tom had a big dog.",
        "max_new_tokens": 32,
        "parameters": {"scorer": "keyword", "keywords": "happy, sorry", "rollouts": 12},
    },
    "phi_decoding": {
        "prompt": "Tom had a big dog.",
        "max_new_tokens": 48,
        "parameters": {"num_beams": 2, "num_rollouts": 3, "min_steps": 3},
    },
    "rankgen": {
        "prompt": "Tom had a big dog.",
        "max_new_tokens": 30,
        "parameters": {"num_samples": 3, "num_beams": 2, "block_length": 10},
    },
    "superposed": {"prompt": "Tom had a big dog.", "max_new_tokens": 16, "parameters": {"num_beams": 4}},
    "dba": {
        "prompt": "Tom had a big dog.",
        "max_new_tokens": 16,
        "parameters": {"phrases": "garden, red ball", "num_beams": 5},
    },
    "stochastic_beam": {"prompt": "Tom had a big dog.", "max_new_tokens": 12},
    "value_beam": {
        "prompt": "Tom had a big dog.",
        "max_new_tokens": 16,
        "parameters": {"scorer": "keyword", "keywords": "happy", "num_beams": 3, "candidates": 6},
    },
    "value_mcts": {
        "prompt": "Tom had a big dog.",
        "max_new_tokens": 12,
        "parameters": {"scorer": "keyword", "keywords": "ran", "simulations": 12},
    },
    "lattice": {"max_new_tokens": 8, "parameters": {"ngram": 2, "max_forwards": 40}},
    "lookahead": {"prompt": "They had fun. They had fun. They had", "max_new_tokens": 20},
    "aded": {"max_new_tokens": 20},
    "staged": {"max_new_tokens": 20},
    "specdec_pp": {"max_new_tokens": 24, "parameters": {"stop": 0.6}},
    "specmemo": {"max_new_tokens": 24, "parameters": {"memory_kilobytes": 500}},
    "rasd": {"max_new_tokens": 24},
    "rest": {"max_new_tokens": 24},
    "suffix_decoding": {"prompt": "They had fun. They had fun. They had", "max_new_tokens": 24},
    "sjd": {"prompt": "They had fun. They had fun. They had", "max_new_tokens": 20},
    "fastcot": {"max_new_tokens": 30, "parameters": {"passes": 6, "question": "In the end,"}},
    "rapid": {
        "prompt": "Lily had a red ball. Tom had a brown dog named Max. The sun was hot that day, and the "
        "birds sang in the trees. Mom made some sweet cake with milk and sugar. Lily looked for her red",
        "max_new_tokens": 20,
        "parameters": {"chunks": 1, "chunk_size": 16, "query_tokens": 8},
    },
    "specpv": {
        "prompt": "Lily had a red ball. Tom had a brown dog named Max. The sun was hot that day, and the "
        "birds sang in the trees. Mom made some sweet cake with milk and sugar. Lily looked for her red",
        "max_new_tokens": 24,
        "parameters": {"retrieved_blocks": 2, "refresh": 8},
    },
    "universal": {
        "max_new_tokens": 24,
        "models": {"target": FORMS, "draft": DRAFT},
    },
    "prompt_lookup": {"prompt": "They had fun. They had fun. They had"},
    "pearl": {"max_new_tokens": 24},
    "duodecoding": {"max_new_tokens": 24},
    "specbranch": {"max_new_tokens": 24},
    "easyspec": {"max_new_tokens": 24},
    "kangaroo": {"max_new_tokens": 20, "parameters": {"eta": 0.3}},
    "specdec": {"max_new_tokens": 24},
    "fragments": {"max_new_tokens": 24, "parameters": {"mark": ","}},
    **{name: {"max_new_tokens": 24} for name in ("pass", "ppd", "hidden_transfer", "glide", "dream")},
    "mixture_of_attentions": {"max_new_tokens": 24},
    "lud": {"prompt": RECORD.replace("json", "yaml"), "max_new_tokens": 40},
    "pdt": {
        "prompt": RECORD.replace("json", "yaml"),
        "max_new_tokens": 40,
        "parameters": {"temperature": 1.0},
    },
    "deer": {"prompt": RECORD, "max_new_tokens": 40, "parameters": {"num_assistant_tokens": 16}},
    "learn2pd": {"prompt": RECORD, "max_new_tokens": 40},
    "apd": {"prompt": RECORD, "max_new_tokens": 40, "parameters": {"look_ahead": 12}},
    "swift": {"max_new_tokens": 40, "parameters": {"context": 12}},
    "clasp": {"max_new_tokens": 24},
    "m2r2": {"max_new_tokens": 20, "parameters": {"eta": 0.3}},
    "spectr": {"parameters": {"temperature": 1.0}},
    "dyspec": {"parameters": {"temperature": 1.0}},
    "rsd_s": {"parameters": {"temperature": 1.0}},
    "sequoia": {"parameters": {"temperature": 1.0}},
    "specinfer": {"parameters": {"temperature": 1.0}},
    "lenient": {"parameters": {"temperature": 1.0}},
    "typical_acceptance": {"parameters": {"temperature": 1.0}},
    "fuzzy": {"parameters": {"temperature": 1.0}},
    "lantern": {"parameters": {"temperature": 1.0}},
    "judge": {"max_new_tokens": 24},
    "token_recycling": {"prompt": "They had fun. They had fun. They had"},
    "speculative": {"parameters": {"temperature": 1.0}},
    "speculative_tree": {"parameters": {"temperature": 1.0}},
}


def listing() -> dict:
    """Cards of all strategies, all papers with their status, both's families, and a sentence of counts."""
    rows = papers.papers()
    titles_of = {row["slug"]: row["title"] for row in rows}
    return {
        "families": FAMILIES,
        "methods": [card(strategy, titles_of) for strategy in strategies().values()],
        "paper_families": papers.FAMILIES,
        "papers": [{k: row[k] for k in PAPER} for row in rows],
        "summary": papers.summary(rows),
    }


def card(strategy: Strategy, titles_of: dict[str, str]) -> dict:
    """The content of a strategy's card; badge and parts are those of its default parameters."""
    usual = {parameter.name: parameter.default for parameter in strategy.parameters}
    badge = strategy.badge(usual)
    return {
        **strategy.declaration(),
        "how": paragraphs(strategy),
        "badge": badge,
        "promise": BADGES.get(badge, ""),
        "parts": [vars(part) for part in strategy.parts(usual)],
        "papers": [{"slug": slug, "title": titles_of[slug]} for slug in strategy.papers],
        "sources": origins.sources(strategy.name, strategy.papers),
        **origin(strategy.name),
        "gain": origins.gain(strategy.name),
        "picture": picture_facts(strategy.name),
        "runs_code": any("tests" in p.choices or p.name == "constraints" for p in strategy.parameters),
    }


def origin(name: str) -> dict:
    """`{parent, differs, aliases}`: the title of the strategy's parent, and how it differs from it."""
    known = origins.lineage().get(name, {"parent": "", "differs": "", "aliases": []})
    return known | {"parent": get(known["parent"]).title if known["parent"] else ""}


def paragraphs(strategy: Strategy) -> list[dict]:
    """The docstring after its first paragraph: `{steps: [...]}` for a numbered list, `{text}` for prose."""
    result = []
    for paragraph in algorithm.paragraphs_of(strategy.algorithm)[1:]:
        prose, steps = algorithm.prose_and_steps(paragraph)
        if prose:
            result.append({"text": prose})
        if steps:
            result.append({"steps": steps})
    return result


# ---- pictures ----------------------------------------------------------------------------------------------


def file_of(name: str) -> Path:
    """The path of a strategy's recorded run."""
    return FOLDER / f"{name}.json.gz"


def picture_facts(name: str) -> dict | None:
    """`{prompt, tokens, parameters, view, models}` of a strategy's picture (models: None for the usual ones);
    None if no run was recorded.
    """
    if not file_of(name).exists():
        return None
    setup = USUAL | SETUPS.get(name, {})
    return {
        "prompt": setup["prompt"],
        "tokens": setup["max_new_tokens"],
        "parameters": setup["parameters"],
        "view": titles()[get(name).views[0]],
        "models": setup.get("models"),
    }


@lru_cache(maxsize=400)
def thumbnail(name: str, look: str) -> str:
    """A strategy's first view of its recorded run as a small SVG without words. look: "light" or "dark".

    Raises Refusal with one sentence if no run was recorded.
    """
    from visualizers.figures import thumbnail  # imported on demand: plotly is slow to import

    return thumbnail.thumbnail(recorded(name), look)


@lru_cache(maxsize=50)
def picture(name: str, look: str) -> str:
    """The same view as a whole figure, with its words."""
    from visualizers.figures.svg import svg

    return svg(recorded(name).figure(look=look))


def recorded(name: str) -> Trace:
    """The recorded run of a strategy. Raises Refusal with one sentence if there is none."""
    if not file_of(name).exists():
        title = get(name).title
        raise Refusal(f"No run is stored for {title}; python -m explorer.catalog.recorded_runs records one.")
    return load(file_of(name))


def record(loader: Loader, names: Sequence[str] = ()) -> None:
    """Decodes and saves a short run of each strategy (or of `names`) that the loaded models allow."""
    from decoders import suitability  # on demand: imports torch
    from explorer.runs.lane_factory import lane_maker

    make = lane_maker(loader)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, strategy in strategies().items():
        if names and name not in names:
            continue
        setup = USUAL | SETUPS.get(name, {})
        parameters = strategy.check(setup["parameters"])
        if any(role not in loader.models for role in strategy.needs):
            continue
        if "models" not in setup and suitability.problem(strategy, parameters, loader.models):
            continue
        lane = {"strategy": name, "parameters": setup["parameters"], "seed": 0}
        request = check({**setup, "lanes": [lane]})
        loader.open(request.models)
        make(request)[0].run().save(file_of(name))
