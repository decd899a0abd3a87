"""What does a hidden state know about later tokens?

A model is trained to predict the next token; a head that guesses further ahead depends on what its state h_t
holds beyond that: the surplus I(h_t; x_{t+k} | x_{t+1}). Two small probes give a lower bound on it, one that
reads only x_{t+1} and one that reads h_t too. How fast does it fall with k, and do guesses succeed where it
is large?
"""

import torch
from torch.nn import functional as F

from decoders.heads import take_taps
from decoders.models.loaded_model import LoadedModel
from explorer.experiments import Chart, Line, Models, Result, progress
from explorer.experiments.asked import prompts
from explorer.experiments.basis import Basis, by_error
from explorer.experiments.reading import rows_of, two
from explorer.experiments.statistics import spearman

PAPERS = ("a-markov-categorical-framework-for-language-modeling",)
HORIZONS, PROMPTS = (2, 3, 4, 5, 8), 6
TEXTS, TOKENS = 24, 64  # after each prompt
CLASSES, FREQUENT = 24, 96  # frequent tokens with a class of their own: as predictions, as inputs
PENALTY, ROUNDS = 0.01, 60
SCALES = (0.3, 0.1, 0.03, 0.01)
Hits = dict[int, torch.Tensor]


@torch.no_grad()
def sampled_texts(models: Models) -> list[torch.Tensor]:
    """Texts [TEXTS, T] that the target wrote at temperature 1 after each prompt."""
    target, texts = models["target"], []
    torch.manual_seed(0)
    for prompt in progress.each(prompts("stories", PROMPTS), until=0.3):
        ids = torch.tensor([target.encode(prompt)] * TEXTS, device=target.model.device)
        texts.append(
            target.model.generate(
                input_ids=ids,
                attention_mask=torch.ones_like(ids),
                do_sample=True,
                top_k=0,
                pad_token_id=0,
                max_new_tokens=TOKENS,
                min_new_tokens=TOKENS,
                eos_token_id=None,
            )
        )
    return texts


def by_frequency(tokens: torch.Tensor, seen: torch.Tensor, count: int) -> torch.Tensor:
    """The rank of each token among the `count` most frequent ones of `seen`; `count` for all others."""
    values, counts = seen.unique(return_counts=True)
    frequent = values[counts.argsort(descending=True, stable=True)[:count]]
    hits = tokens[..., None] == frequent
    return torch.where(hits.any(-1), hits.int().argmax(-1), count)


def fitted(read: torch.Tensor, wanted: torch.Tensor, classes: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights [D, C] and bias [C] of a linear probe that predicts `wanted` [N] from `read` [N, D]."""
    weight = torch.zeros(read.shape[1], classes, requires_grad=True)
    bias = torch.zeros(classes, requires_grad=True)
    search = torch.optim.LBFGS([weight, bias], max_iter=ROUNDS, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        search.zero_grad()
        value = F.cross_entropy(read @ weight + bias, wanted) + PENALTY * weight.square().sum() / 2
        value.backward()
        return value

    search.step(loss)
    return weight.detach(), bias.detach()


def parted(count: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Masks [count] of the texts for fitting probes, for choosing the scale of states, and for testing."""
    at = torch.arange(count) % 4
    return at < 2, at == 2, at == 3


def surpluses(states: torch.Tensor, tokens: torch.Tensor, k: int) -> torch.Tensor:
    """The surplus in nats [B // 4, T - k] at positions t of the test texts. states [B, T, d], tokens [B, T]:
    row t of the states has read token t. Scaling a state down regularises the probe's use of it; the scale is
    chosen on separate texts, and at the smallest scale nothing is left of the state.
    """
    fit, choose, held = parted(len(tokens))
    following = by_frequency(tokens[:, 1 : tokens.shape[1] - k + 1], tokens[fit], FREQUENT)
    wanted = by_frequency(tokens[:, k:], tokens[fit], CLASSES)
    token = F.one_hot(following, FREQUENT + 1).float()
    state = states[:, : tokens.shape[1] - k].float()
    flat = state[fit].flatten(0, 1)
    state = (state - flat.mean(0)) / (flat.std(0) + 1e-6)

    def entropy(read: torch.Tensor) -> torch.Tensor:
        """Log-probabilities [B, T - k] of the actual tokens, by a probe with this input."""
        weight, bias = fitted(read[fit].flatten(0, 1), wanted[fit].flatten(), CLASSES + 1)
        return (read @ weight + bias).log_softmax(-1).gather(-1, wanted[..., None])[..., 0]

    probes = [entropy(torch.cat([token, scale * state], -1)) for scale in SCALES]
    best = max(probes, key=lambda probe: float(probe[choose].mean()))
    return (best - entropy(token))[held]


def observed(target: LoadedModel, texts: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor, Hits]:
    """For text that the target wrote: its states [B, T, d], the tokens [B, T], and for each horizon k whether
    the Medusa head for it predicts x_{t+k} right [B, T - k], if there is one.
    """
    medusa = target.heads.get("medusa")
    states, tokens, hits = [], [], {}
    for some in texts:
        taps, first = take_taps(target.model, some), some.shape[1] - TOKENS - 1
        states.append(taps.hidden[:, first:].cpu())
        tokens.append(some[:, first:].cpu())
        guesses = medusa.along(taps, min(max(HORIZONS) - 1, medusa.settings["depth"])) if medusa else []
        for k, logits in enumerate(guesses, 2):
            hits.setdefault(k, []).append((logits.argmax(-1) == some[:, k:])[:, first:].cpu())
    return torch.cat(states), torch.cat(tokens), {k: torch.cat(parts) for k, parts in hits.items()}


def run(models: Models) -> Result:
    """The surplus for each horizon, with the share of right guesses of its head."""
    states, tokens, hits = observed(models["target"], sampled_texts(models))
    rows = []
    for k in progress.each(HORIZONS):
        gained = surpluses(states, tokens, k)
        error = float(gained.std() / gained.numel() ** 0.5)
        hit = hits.get(k)
        share = None if hit is None else float(hit.float().mean())
        right = None if hit is None else hit[parted(len(tokens))[2]].flatten().tolist()
        related = None if right is None else spearman(gained.flatten().tolist(), right)
        rows.append([k, float(gained.mean()), error, share, related])
    first, last = rows[0], rows[-1]
    says = [
        f"A state holds at least {first[1]:.2f} nats about the token {first[0]} positions ahead, beyond what "
        f"the next token says about it, and {last[1]:.2f} about the one {last[0]} positions ahead.",
        "The probes are linear, distinguish few tokens and are tested on texts that they were not fitted "
        "on, so the states may hold more.",
    ]
    if any(row[4] is not None for row in rows):
        says.append(
            "Where the surplus is larger, the Medusa head guesses right more often: the rank correlation "
            f"is {', '.join(f'{row[4]:.2f} for k = {row[0]}' for row in rows if row[4] is not None)}."
        )
    columns = ["k", "surplus", "standard error", "guesses right", "rank correlation"]
    lines = [Line("surplus in nats", [[row[0], row[1]] for row in rows])]
    if hits:
        lines.append(Line("guesses right", [[row[0], row[3]] for row in rows if row[3] is not None]))
    return Result(columns, rows, says, Chart("What a state knows of later tokens", "k", "nats, share", lines))


def finding(answer: dict) -> str:
    """The surplus at the nearest and at the farthest horizon."""
    near, far = rows_of(answer)[0], rows_of(answer)[-1]
    return (
        f"Beyond what the next token tells, a hidden state holds at least {two(near['surplus'])} nats about "
        f"the token {near['k']} positions ahead, and {two(far['surplus'])} about the one {far['k']} "
        "positions ahead."
    )


def stands(answer: dict) -> Basis:
    """Texts; the standard errors are those of the table."""
    compared = [
        by_error(f"surplus at {row['k']} positions against none", row["surplus"], row["standard error"])
        for row in (rows_of(answer)[0], rows_of(answer)[-1])
    ]
    return Basis({"texts": TEXTS * PROMPTS}, compared=compared)
