"""Can a state-space model verify a draft tree?

STree (2025) in miniature: a target with three state-space layers of Mamba-2's kind and one layer of
attention, and a draft with two of them, both trained here on text that the shipped target wrote. A layer has
one state, not one for each position; a tree scan computes all nodes' outputs from the state in front of the
tree. Greedy text is written plainly, with a drafted chain and with a drafted tree of beams: how many tokens
does a target forward yield, and is the text the same? The alternative to the scan is timed too: a state for
every branch. The chart shows how much of a token's input is left in the state of each head this many tokens
later.
"""

from dataclasses import dataclass
from statistics import fmean
from time import perf_counter

import torch
from torch.nn import functional as F

from explorer.experiments import Chart, Line, Models, Result, progress
from explorer.experiments.basis import FAR_ABOVE, Basis, by_pairs
from explorer.experiments.models.hybrid import Hybrid, Known
from explorer.experiments.models.small import fit, own_text
from explorer.experiments.models.state_space import Memory, StateSpace
from explorer.experiments.reading import rows_of, two
from explorer.timing import in_turn

PAPERS = ("stree",)
ROWS, LENGTH, STEPS = 768, 96, 700  # training texts, tokens of each, training steps
TEXTS, BEGUN, TOKENS = 8, 12, 48  # texts that are continued, tokens of their prompts, tokens written
SHAPES = {"plain": (0, 0), "chain of 4": (1, 4), "tree, 3 beams of 4": (3, 4)}  # beams, depth
BACK = 16  # maximum distance in the chart, in tokens


@dataclass
class Written:
    """A generated text and its cost."""

    tokens: list[int]
    forwards: int
    nodes: int
    seconds: float


def trained(models: Models) -> tuple[Hybrid, Hybrid, torch.Tensor]:
    """(target, draft distilled from it, texts that neither has read)."""
    with progress.part(0.1):
        train, held = own_text(models, ROWS + TEXTS, LENGTH).split([ROWS, TEXTS])
    vocabulary = models["target"].engine.vocabulary
    torch.manual_seed(0)
    target, draft = Hybrid(vocabulary), Hybrid(vocabulary, width=48, layers=2, attends=-1)

    def next_token(some: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(target(some[:, :-1]).flatten(0, 1), some[:, 1:].flatten())

    def as_the_target(some: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            probs = target(some).softmax(-1)
        return F.cross_entropy(draft(some).flatten(0, 1), probs.flatten(0, 1))

    with progress.part(0.6):
        fit(target.parameters(), next_token, train, STEPS)
    fit(draft.parameters(), as_the_target, train, STEPS)
    return target.requires_grad_(False), draft.requires_grad_(False), held


def beams(draft: Hybrid, known: Known, token: int, width: int, depth: int) -> tuple[list[int], list[int]]:
    """(tokens, parents) of a tree: the pending token, and below it, level by level, the `width` most likely
    continuations of the level before.
    """
    tokens, parents, scores, level = [token], [-1], [0.0], [0]
    for _ in range(depth):
        logprobs = draft.read(torch.tensor([tokens]), parents, known).logits[0, level].log_softmax(-1)
        total = torch.tensor([scores[node] for node in level])[:, None] + logprobs
        best = [divmod(at, logprobs.shape[1]) for at in total.flatten().topk(width).indices.tolist()]
        tokens += [one for _, one in best]
        parents += [level[above] for above, _ in best]
        scores += [float(total[above, one]) for above, one in best]
        level = list(range(len(tokens) - width, len(tokens)))
    return tokens, parents


def accepted(tokens: list[int], parents: list[int], wants: list[int]) -> list[int]:
    """The path of nodes, starting at the pending one, that the target accepts greedily. wants: the target's
    next token at each node.
    """
    path = [0]
    while True:
        below = [n for n, parent in enumerate(parents) if parent == path[-1] and tokens[n] == wants[path[-1]]]
        if not below:
            return path
        path.append(below[0])


@torch.inference_mode()
def write(target: Hybrid, draft: Hybrid, begun: list[int], width: int, depth: int) -> Written:
    """Writes TOKENS tokens after a text, greedily, with trees of `width` beams and `depth` levels."""
    start = perf_counter()
    (known, last), (seen, _) = target.read_text(begun), draft.read_text(begun)
    written, forwards, nodes = [int(last.argmax())], 0, 0
    while len(written) < TOKENS:
        tokens, parents = beams(draft, seen, written[-1], width, depth)
        left = target.read(torch.tensor([tokens]), parents, known)
        wants = left.logits[0].argmax(-1).tolist()
        path = accepted(tokens, parents, wants)
        written += [tokens[node] for node in path[1:]] + [wants[path[-1]]]
        known, forwards, nodes = target.after(known, left, path), forwards + 1, nodes + len(tokens)
        text = [tokens[node] for node in path]
        seen = along(draft, seen, text)
    return Written(written[:TOKENS], forwards, nodes, perf_counter() - start)


def along(model: Hybrid, known: Known, tokens: list[int]) -> Known:
    """A model's state after reading some more tokens."""
    left = model.read(torch.tensor([tokens]), list(range(-1, len(tokens) - 1)), known)
    return model.after(known, left, list(range(len(tokens))))


def branches(known: Known, count: int) -> Known:
    """The same state `count` times: one per branch."""
    layers = [
        Memory(part.h.repeat(count, 1, 1, 1), part.tail.repeat(count, 1, 1))
        if isinstance(part, Memory)
        else tuple(one.repeat(count, 1, 1, 1) for one in part)
        for part in known.layers
    ]
    return Known(known.length, tuple(layers))


@torch.inference_mode()
def left_over(target: Hybrid, text: torch.Tensor) -> list[Line]:
    """For each head of the first layer: the mean of exp(L_v - L_w) against v - w along texts [B, T]."""
    layer = target.layers[0]
    assert isinstance(layer, StateSpace)
    chain = list(range(-1, text.shape[1] - 1))
    dt = target.read(text, chain, target.empty(len(text))).layers[0].dt  # [B, H, T]
    fall = (-layer.rate.exp()[:, None] * dt).cumsum(-1)
    lines = []
    for head in range(layer.heads):
        points = [[0, 1.0]]
        for back in range(1, min(BACK, text.shape[1] - 1) + 1):
            points.append([back, float((fall[:, head, back:] - fall[:, head, :-back]).exp().mean())])
        lines.append(Line(f"head {head + 1}", points))
    return lines


def run(models: Models) -> Result:
    """One row per way to write."""
    with progress.part(0.8):
        target, draft, held = trained(models)
    texts = [row[:BEGUN].tolist() for row in held]
    plain = [write(target, draft, text, 0, 0) for text in progress.each(texts, until=0.25)]
    table, each = [], {}
    for name, (width, depth) in progress.each(SHAPES.items()):
        wrote = [write(target, draft, text, width, depth) for text in progress.each(texts)]
        each[name] = [(TOKENS - 1) / one.forwards for one in wrote]
        same = sum(a.tokens == b.tokens for a, b in zip(wrote, plain, strict=True))
        forwards = sum(one.forwards for one in wrote)
        brought = (TOKENS - 1) * len(texts) / forwards
        ratio = sum(one.seconds for one in wrote) / sum(one.seconds for one in plain)
        table.append(
            [name, brought, sum(one.nodes for one in wrote) / forwards, f"{same} of {len(texts)}", ratio]
        )
    width, depth = SHAPES["tree, 3 beams of 4"]
    with torch.inference_mode():
        known, _ = target.read_text(texts[0])
        tokens, parents = beams(draft, draft.read_text(texts[0])[0], texts[0][-1], width, depth)
        many, rows = branches(known, width), torch.tensor([tokens[: depth + 1]] * width)
        chain = list(range(-1, depth))
        scan, apart = in_turn(
            [
                lambda: target.read(torch.tensor([tokens]), parents, known),
                lambda: target.read(rows, chain, many),
            ],
            times=20,
        )
    held_out = fmean(float(F.cross_entropy(target(row[None, :-1])[0], row[1:])) for row in held)
    says = [
        f"All ways write the same text: {', '.join(str(row[3]) for row in table)} texts. A forward yields "
        f"{table[1][1]:.2f} tokens with a chain and {table[2][1]:.2f} with a tree.",
        f"The target's states hold {known.size:,} numbers, however long the text; a state for each of the "
        f"{len(tokens)} nodes would hold {len(tokens) * known.size:,}. After each round the state is brought "
        "up along the accepted tokens.",
        f"Reading the tree by the scan took {scan / apart:.2f} of the time of reading its {width} branches "
        "side by side, each with a state of its own.",
        f"The target has a held-out loss of {held_out:.2f} nats on text that the shipped target wrote.",
    ]
    columns = [
        "way",
        "tokens per target forward",
        "nodes per forward",
        "equal to plain",
        "time against plain",
    ]
    chart = Chart("What is left of an input", "tokens later", "share", left_over(target, held))
    _, chain, tree = each.values()
    gains = [b - a for a, b in zip(chain, tree, strict=True)]
    compared = [by_pairs("tokens per forward, tree against chain", gains)]
    return Result(columns, table, says, chart, compared=compared)


def finding(answer: dict) -> str:
    """Chain and tree, and whether their texts equal the plain ones."""
    _, chain, tree = rows_of(answer)
    return (
        f"A hybrid of state space and attention layers writes {two(tree['tokens per target forward'])} "
        f"tokens per forward when it verifies trees and {two(chain['tokens per target forward'])} with "
        f"chains; {tree['equal to plain']} texts equal plain decoding."
    )


STANDS = Basis({"texts": TEXTS}, trained=1, unfinished=FAR_ABOVE)
