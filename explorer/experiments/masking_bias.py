"""How far does a mask distort the model's distribution?

Sixteen texts are allowed, half of which begin with the same word. Masked sampling renormalises token by
token, so it samples in proportion to P(text) divided by the mass that the mask kept along it; the
distribution that is wanted is P restricted to the allowed texts. Both are computed exactly, at temperature 2,
and so is the total variation distance between them. ASAp learns from its own texts: the exact distribution of
its next text after 1, 4, 16 and 64 texts, averaged over seeds. Weights repair the same bias without learning:
several masked texts are drawn, and one is chosen in proportion to the mass that the mask kept along it.
"""

import math
from statistics import fmean

import torch

from decoders.constraints.constraint import States
from decoders.constraints.trie import Trie
from decoders.lane import Lane, Limits
from decoders.search.tree_search.asap import Asap
from decoders.search.tree_search.constraints import Gate
from decoders.search.tree_search.program_tree import Programs
from explorer.experiments import Chart, Line, Models, Result, progress
from explorer.experiments.basis import Basis, by_pairs
from explorer.experiments.reading import rows_of, two

PAPERS = ("grammar-aligned-decoding",)
PROMPT = "Once upon a time, there was a"
SAME = (
    " little girl named Bob.",
    " little girl named Ann.",
    " little boy named Sam.",
    " little boy named Eve.",
    " little dog named Lily.",
    " little bear in the sea.",
    " little bird in the house.",
    " little fish in a tree.",
)
OTHERS = (
    " big dog named Max.",
    " big fish in the sea.",
    " big tree in the park.",
    " kind man named Bob.",
    " wise owl in a tree.",
    " brown bear in the wood.",
    " red car in the park.",
    " cat in the house.",
)
TEMPERATURE = 2.0
COUNTS = (1, 4, 16, 64)
SEEDS, DRAWS = 8, 100_000

Text = tuple[int, ...]


def rows_along(models: Models, texts: list[Text]) -> dict[Text, torch.Tensor]:
    """Every prefix of the texts -> the probabilities [V] of the next token, at the temperature."""
    target, rows = models["target"], {}
    before = target.encode(PROMPT)
    for text in texts:
        with torch.inference_mode():
            ids = torch.tensor([[*before, *text]], device=target.model.device)
            probs = (target.model(ids).logits[0].double() / TEMPERATURE).softmax(-1).cpu()
        for length in range(len(text)):
            rows[text[:length]] = probs[len(before) - 1 + length]
    return rows


def distributions(rows: dict[Text, torch.Tensor], texts: list[Text]) -> tuple[dict, dict, dict]:
    """For each text: its probability under masked sampling, its conditional probability among the allowed
    texts, and the product of the mass that the mask keeps along it.
    """
    local, wanted, kept = {}, {}, {}
    for text in texts:
        wanted[text] = math.prod(float(rows[text[:i]][token]) for i, token in enumerate(text))
        masses = []
        for length in range(len(text)):
            follow = {one[length] for one in texts if one[:length] == text[:length]}
            masses.append(float(rows[text[:length]][list(follow)].sum()))
        kept[text] = math.prod(masses)
        local[text] = wanted[text] / kept[text]
    total = sum(wanted.values())
    return local, {text: p / total for text, p in wanted.items()}, kept


def distance(probs: dict[Text, float], other: dict[Text, float]) -> float:
    """Total variation distance, from 0 to 1."""
    return sum(abs(probs[text] - other[text]) for text in probs) / 2


def learned(models: Models, texts: list[Text], rows: dict[Text, torch.Tensor], seed: int) -> list[dict]:
    """The exact distribution of ASAp's next text after each of COUNTS."""
    target = models["target"]
    limits, parameters = Limits(max(map(len, texts))), {"temperature": TEMPERATURE}
    lane = Lane("asap", target.encode(PROMPT), models, parameters, seed, limits)
    endless = [list(text[:-1]) for text in texts]  # the end token is not part of the trie
    trie = Trie(endless, target.engine.vocabulary)
    lane.constraint = States(trie, lane.tree, len(lane.trace.prompt), lane.eos)
    decoder, results = Asap(Programs(lane, Gate(lane)), max(COUNTS) + 1, False), []
    for count in range(1, max(COUNTS) + 1):
        while decoder.number < count:
            decoder.token()
        if count in COUNTS:
            results.append(next_probs(decoder, texts, rows))
    lane.close()
    return results


def next_probs(decoder: Asap, texts: list[Text], rows: dict[Text, torch.Tensor]) -> dict[Text, float]:
    """For each text, the probability that it is drawn next."""
    probs = {}
    for text in texts:
        probability, node = 1.0, decoder.programs.root
        for length, token in enumerate(text):
            if node in decoder.futures.probs:
                weights = decoder.futures.weights(node)
            else:
                follow = {one[length] for one in texts if one[:length] == text[:length]}
                weights = torch.zeros_like(rows[text[:length]])
                weights[list(follow)] = rows[text[:length]][list(follow)]
            probability *= float(weights[token] / weights.sum())
            node = decoder.below.get((node, token), -1)
        probs[text] = probability
    return probs


def weighted(local: dict[Text, float], kept: dict[Text, float], count: int) -> dict[Text, float]:
    """The distribution of one of `count` masked texts, chosen in proportion to the kept mass; simulated."""
    texts, draws = list(local), torch.Generator().manual_seed(count)
    probs = torch.tensor([local[text] for text in texts], dtype=torch.float64)
    weights = torch.tensor([kept[text] for text in texts], dtype=torch.float64)
    groups = torch.multinomial(probs, DRAWS * count, True, generator=draws).view(DRAWS, count)
    chosen = torch.multinomial(weights[groups], 1, generator=draws)
    seen = groups.gather(1, chosen)[:, 0].bincount(minlength=len(texts)).double() / DRAWS
    return dict(zip(texts, seen.tolist(), strict=True))


def run(models: Models) -> Result:
    """One row per way and number of texts."""
    target = models["target"]
    end = min(target.eos)
    before = target.encode(PROMPT)
    texts = [(*target.encode_after(before, text), end) for text in (*SAME, *OTHERS)]
    rows = rows_along(models, texts)
    local, wanted, kept = distributions(rows, texts)
    masked = distance(local, wanted)
    ways = {"ASAp": [], "weights": []}
    runs = [learned(models, texts, rows, seed) for seed in progress.each(range(SEEDS))]
    for at, count in enumerate(COUNTS):
        ways["ASAp"].append(fmean(distance(one[at], wanted) for one in runs))
        ways["weights"].append(distance(weighted(local, kept, count), wanted))
    table = [["masked sampling", 1, masked]]
    table += [
        [way, count, far] for way, some in ways.items() for count, far in zip(COUNTS, some, strict=True)
    ]
    shares = [sum(probs[text] for text in texts[: len(SAME)]) for probs in (local, wanted)]
    bent = max(texts, key=lambda text: local[text] / wanted[text])
    says = [
        f"Masked sampling begins with “{SAME[0].split()[0]}” {shares[0]:.0%} of the time; among the allowed "
        f"texts the model itself would {shares[1]:.0%} of the time.",
        f"Most over-represented is “{target.tokenizer.decode(bent[:-1]).strip()}”: {local[bent]:.3f} instead "
        f"of {wanted[bent]:.3f}.",
    ]
    lines = [Line(way, [[c, far] for c, far in zip(COUNTS, some, strict=True)]) for way, some in ways.items()]
    lines.append(Line("masked sampling", [[count, masked] for count in COUNTS]))
    chart = Chart(
        "Distance from the model's allowed texts", "texts drawn", "total variation", lines, log=True
    )
    nearer = [distance(one[-1], wanted) - masked for one in runs]
    compared = [by_pairs(f"total variation, {COUNTS[-1]} texts of ASAp against a mask alone", nearer)]
    return Result(["way", "texts", "total variation"], table, says, chart, compared=compared)


def finding(answer: dict) -> str:
    """The distortion by the mask, and what each correction leaves of it."""
    rows = rows_of(answer)
    masked = rows[0]["total variation"]
    last = {row["way"]: row for row in rows[1:]}
    return (
        f"A mask alone is {two(masked)} away from what the model itself would write among the allowed texts; "
        f"{last['ASAp']['texts']} texts of ASAp bring it to {two(last['ASAp']['total variation'])}."
    )


STANDS = Basis({"prompts": 1, "seeds of ASAp": SEEDS})
