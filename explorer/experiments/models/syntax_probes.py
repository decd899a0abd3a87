"""Training of syntax probes (AST-Probe, 2022) on the states of a frozen model, and their scores."""

from collections import Counter
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import torch

from decoders.heads import take_taps
from decoders.heads.scorers.syntax_probe import RANK, SyntaxProbe
from decoders.lenses.binary_trees import Node, Sequences, items, scores, sequences, tree_of
from decoders.lenses.leaf_states import leaf_means, leaf_tokens
from decoders.lenses.python_trees import parse
from explorer.experiments import progress

RATE, SLOWER = 5e-3, 0.5  # 1e-3 and 0.1 in the paper, which has sixteen times as many functions
BATCH, PATIENCE = 16, 5
NO_LABEL = -100


@dataclass(frozen=True)
class Text:
    """A function: its tree, its sequences, its tokens and which of them each leaf has."""

    tree: Node
    truth: Sequences
    tokens: list[int]
    groups: list[list[int]]


def read_text(model: Any, code: str) -> Text:
    """A function in the form on which a probe is trained."""
    parsed = parse(code)
    return Text(parsed.tree, sequences(parsed.tree), *leaf_tokens(model, code, parsed.spans))


def states_of(model: torch.nn.Module, texts: list[Text], levels: tuple[int, ...]) -> list[list[torch.Tensor]]:
    """For each level the states [n, d] of every text's leaves after this many layers."""
    result: list[list[torch.Tensor | None]] = [[None] * len(texts) for _ in levels]
    order = sorted(range(len(texts)), key=lambda at: len(texts[at].tokens))
    for some in progress.each([order[at : at + BATCH] for at in range(0, len(order), BATCH)]):
        longest = max(len(texts[at].tokens) for at in some)
        rows = [texts[at].tokens + [0] * (longest - len(texts[at].tokens)) for at in some]
        taps = take_taps(model, torch.tensor(rows, device=model.device), levels)
        for number, level in enumerate(levels):
            for row, at in enumerate(some):
                result[number][at] = leaf_means(taps.states[level][row].cpu(), texts[at].groups)
    return result


def untrained(model: torch.nn.Module) -> torch.nn.Module:
    """A model with the same embeddings and fresh layers: the baseline."""
    torch.manual_seed(0)
    fresh = type(model)(model.config).to(model.dtype).eval().requires_grad_(False)
    fresh.get_input_embeddings().weight.copy_(model.get_input_embeddings().weight)
    return fresh


def names_of(texts: list[Text]) -> tuple[list[str], list[str]]:
    """All labels of gaps and all unary labels, most frequent first."""
    labels = Counter(name for text in texts for name in text.truth.labels)
    unary = Counter(name for text in texts for name in text.truth.unary)
    return [name for name, _ in labels.most_common()], [name for name, _ in unary.most_common()]


Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


def batch_of(probe: SyntaxProbe, texts: list[Text], states: list[torch.Tensor]) -> Batch:
    """The inputs of the probe's loss, padded: states [B, n, d], heights, labels, unary labels."""
    longest = max(len(text.groups) for text in texts)
    words = torch.stack([pad(one, longest, 0.0) for one in states])
    heights = torch.stack([pad(torch.tensor(t.truth.heights), longest - 1, 0) for t in texts])
    labels = [numbers(t.truth.labels, probe.names, longest - 1) for t in texts]
    unary = [numbers(t.truth.unary, probe.unary_names, longest) for t in texts]
    return words, heights, torch.stack(labels), torch.stack(unary)


def pad(values: torch.Tensor, size: int, filling: float) -> torch.Tensor:
    """Values [n, ...] as [size, ...]."""
    rest = values.new_full((size - len(values), *values.shape[1:]), filling)
    return torch.cat([values, rest])


def numbers(names: list[str], known: list[str], size: int) -> torch.Tensor:
    """Names as numbers; unknown and padded ones do not count."""
    at = [known.index(name) if name in known else NO_LABEL for name in names]
    return pad(torch.tensor(at, dtype=torch.long), size, NO_LABEL)


def fit_probe(
    texts: list[Text],
    states: list[torch.Tensor],
    held: int,
    epochs: int,
    names: tuple[list[str], list[str]],
    rank: int = RANK,
) -> SyntaxProbe:
    """Trains a probe of one depth, on states [n, d] of each text. Adam; the rate falls to a tenth after an
    epoch without a lower loss on the last `held` texts, and five such epochs in a row end the training.
    """
    torch.manual_seed(0)
    probe = SyntaxProbe(states[0].shape[-1], *names, rank=min(rank, states[0].shape[-1]))
    probe.scale.fill_(float(torch.cat(states).square().mean(-1).sqrt().median()))
    order = sorted(range(len(texts) - held), key=lambda at: len(texts[at].groups))
    batches = [order[at : at + BATCH] for at in range(0, len(order), BATCH)]
    made = [batch_of(probe, [texts[i] for i in some], [states[i] for i in some]) for some in batches]
    kept = batch_of(probe, texts[-held:], states[-held:])
    optimizer = torch.optim.Adam(probe.parameters(), RATE)
    generator, best, waited = torch.Generator().manual_seed(0), float("inf"), 0
    for _ in range(epochs):
        for at in torch.randperm(len(made), generator=generator).tolist():
            loss = probe.loss(*made[at])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            value = probe.loss(*kept).item()
        waited = 0 if value < best else waited + 1
        best = min(best, value)
        if waited:
            for group in optimizer.param_groups:
                group["lr"] *= SLOWER
        if waited == PATIENCE:
            break
    return probe.requires_grad_(False)


def recovered(probe: SyntaxProbe, text: Text, states: torch.Tensor) -> Node | str:
    """The tree that a probe reads from the states [n, d] of a text."""
    return tree_of(*probe.predict(states), text.truth.leaves)


@dataclass(frozen=True)
class Measured:
    """Means over texts: precision, recall and F1 of (label, span); recall of where nodes open, (label,
    first leaf), and of where they close, (label, last leaf).
    """

    precision: float
    recall: float
    f1: float
    opens: float
    closes: float


def measured(probe: SyntaxProbe, texts: list[Text], states: list[torch.Tensor]) -> Measured:
    """How well a probe recovers trees that it was not trained on."""
    rows = []
    for text, own in zip(texts, states, strict=True):
        recovered_tree = recovered(probe, text, own)
        edges = [recovered_share(recovered_tree, text.tree, end) for end in (1, 2)]
        rows.append((*scores(recovered_tree, text.tree), *edges))
    return Measured(*map(fmean, zip(*rows, strict=True)))


def recovered_share(recovered_tree: Node | str, true: Node | str, end: int) -> float:
    """Share of true nodes whose label and one end of whose span (1: the first leaf, 2: the last) are
    found.
    """
    ours, theirs = (Counter((item[0], item[end]) for item in items(tree)) for tree in (recovered_tree, true))
    return (ours & theirs).total() / theirs.total()
