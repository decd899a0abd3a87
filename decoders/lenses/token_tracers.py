"""KL-tracing's arithmetic: change one token of a text, predict again, and see how far each predicted
distribution moves.

Taming generative video models for zero-shot optical flow extraction (2025), which perturbs one patch of a
video. The port to text is ours: the direction KL(clean || perturbed), the tokens that are put in,
and the unigram distribution that they are drawn from.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from decoders.engine.tree import Tree

NODES = 256  # tokens of changed copies that are read in one forward
Tracers = Sequence[Sequence[int | torch.Tensor]]  # place -> tokens, or embeddings [d], put in there


def kl(clean: torch.Tensor, perturbed: torch.Tensor) -> torch.Tensor:
    """KL(p || p') in nats [...] of logits [..., V]; a token that p rules out counts nothing."""
    logp, logq = clean.double().log_softmax(-1), perturbed.double().log_softmax(-1)
    p = logp.exp()
    return torch.where(p > 0, p * (logp - logq), 0.0).sum(-1).clamp(min=0.0)


def swaps(weights: torch.Tensor, tokens: Sequence[int], copies: int, seed: int) -> list[list[int]]:
    """For each place of a text, `copies` tokens drawn by weights [V], never the one that stands there."""
    generator = torch.Generator().manual_seed(seed)
    drawn = []
    for token in tokens:
        others = weights.double().cpu().clone()
        others[token] = 0.0
        if not others.sum() > 0:
            others[:] = 1.0
            others[token] = 0.0
        drawn.append(torch.multinomial(others, copies, replacement=True, generator=generator).tolist())
    return drawn


def unigrams(logits: torch.Tensor) -> torch.Tensor:
    """A unigram distribution [V] of a model that comes without counts: the mean of what it predicts in a
    text, from logits [T, V].
    """
    return logits.double().softmax(-1).mean(0)


def noisy_embeddings(embedding: torch.Tensor, copies: int, sigma: float, seed: int) -> list[torch.Tensor]:
    """`copies` of an input embedding [d], each moved by `sigma` times its norm in a random direction."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn(copies, len(embedding), generator=generator).to(embedding)
    return list(embedding + sigma * embedding.norm() * drawn / drawn.norm(dim=-1, keepdim=True))


def predicted(scorer: Any, nodes: list[int]) -> torch.Tensor:
    """Logits [N, V] after each node, in double precision."""
    return scorer.score(nodes).double()


def text_trace(
    engine: Any,
    tokens: list[int],
    tracers: Callable[[torch.Tensor], Tracers],
    between: Callable[[], None] = lambda: None,
) -> tuple[torch.Tensor, int, int]:
    """(D [T, T], forwards, tokens read): D[i, j] = mean over copies of KL(p_j || p_j^(i,m)), where p_j
    predicts the token after place j and the copy (i, m) of the text has a tracer in place i. 0 for j < i.

    `tracers` gets the clean logits [T, V]. The engine's tree holds the text as its trunk; each copy is a
    branch that leaves it before place i, so nothing before i is read again. Several places share a forward.
    """
    tree = Tree(tokens)
    scorer = engine.attach(tree)
    try:
        clean = predicted(scorer, list(range(len(tokens))))
        read, forwards = len(tokens), 1
        result = torch.zeros(len(tokens), len(tokens), dtype=torch.float64)
        waiting: list[tuple[int, int, list[int]]] = []  # (place, its copies, nodes of a copy)
        put_in = tracers(clean)
        for place, changes in enumerate(put_in):
            for change in changes:
                waiting.append((place, len(changes), branch(tree, scorer, place, change)))
            size = sum(len(nodes) for _, _, nodes in waiting)
            if size < NODES and place + 1 < len(tokens):
                continue
            scored = predicted(scorer, [node for _, _, nodes in waiting for node in nodes])
            for (at, copies, nodes), rows in zip(
                waiting, scored.split([len(nodes) for _, _, nodes in waiting]), strict=True
            ):
                result[at, at:] += kl(clean[at:], rows).cpu() / copies
                scorer.release(nodes)
            read, forwards, waiting = read + size, forwards + 1, []
            between()
        return result, forwards, read
    finally:
        scorer.close()


def branch(tree: Tree, scorer: Any, place: int, change: int | torch.Tensor) -> list[int]:
    """The nodes of a copy of the trunk from `place` on, with a token or an embedding [d] put in there."""
    swapped = not torch.is_tensor(change)
    nodes = [tree.add(place - 1, int(change) if swapped else tree.tokens[place])]
    if not swapped:
        scorer.mixed[nodes[0]] = change
    for token in tree.tokens[place + 1 : tree.trunk]:
        nodes.append(tree.add(nodes[-1], token))
    return nodes


def peaks(differences: torch.Tensor, guard: int = 0) -> list[int | None]:
    """For each place i of D [T, T] the j > i + guard at which the prediction moves most; None if there is
    none or nothing moves.
    """
    result: list[int | None] = []
    for place, row in enumerate(differences):
        behind = row[place + guard + 1 :]
        moves = len(behind) and bool(behind.max() > 0)
        result.append(place + guard + 1 + int(behind.argmax()) if moves else None)
    return result


def hidden_places(length: int, share: float, draws: int, seed: int) -> list[list[int]]:
    """`draws` random sets of places that are masked, `share` of a text each, at least one."""
    generator = torch.Generator().manual_seed(seed)
    size = min(max(1, round(share * length)), length - 1)
    return [sorted(torch.randperm(length, generator=generator)[:size].tolist()) for _ in range(draws)]


def canvas_trace(
    denoiser: Any,
    mask: int,
    tokens: list[int],
    sets: list[list[int]],
    put_in: Sequence[Sequence[int]],
    between: Callable[[], None] = lambda: None,
) -> tuple[torch.Tensor, int, int]:
    """(D [T, T], forwards, tokens read) of a masked-diffusion model: all but a set of places are revealed,
    one revealed token i is changed, and KL is read at every masked place j, before and after it.

    D[i, j] is the mean over copies and over those of `sets` that reveal i and mask j; NaN where none does.
    """
    size = len(tokens)
    total, count = torch.zeros(size, size, dtype=torch.float64), torch.zeros(size, size)
    read = forwards = 0
    for hidden in sets:
        shown = [place for place in range(size) if place not in hidden]
        canvas = [mask if place in hidden else token for place, token in enumerate(tokens)]
        copies = [(place, changed(canvas, place, token)) for place in shown for token in put_in[place]]
        clean = denoiser.denoise([canvas], 0, size)[0, hidden]  # [R, V]
        read, forwards = read + size, forwards + 1
        for some in parted(copies, max(1, NODES // size)):
            moved = denoiser.denoise([one for _, one in some], 0, size)[:, hidden]  # [K, R, V]
            read, forwards = read + size * len(some), forwards + 1
            for (place, _), rows in zip(some, moved, strict=True):
                total[place, hidden] += kl(clean, rows).cpu() / len(put_in[place])
            between()
        for place in shown:
            count[place, hidden] += 1
    return torch.where(count > 0, total / count, math.nan), forwards, read


def changed(canvas: list[int], place: int, token: int) -> list[int]:
    """A canvas with another token in one place."""
    return [*canvas[:place], token, *canvas[place + 1 :]]


def parted(items: list, size: int) -> list[list]:
    """A list in pieces of up to `size`."""
    return [items[at : at + size] for at in range(0, len(items), size)]
