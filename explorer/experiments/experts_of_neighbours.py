"""Do neighbouring tokens need the same experts?

A mixture of experts reads few weights per token; a forward that verifies many drafted tokens reads the
experts of all of them. BlockFFN trains neighbouring tokens to choose the same experts, by two losses on its
routers. Small mixtures that learned the target's own text without these losses, with them, and with ten times
their weight (since this training is far shorter than the authors'), and the shipped Mixtral, read what the
target and its draft really verified, greedily. What was drafted and accepted depends on those two models, not
on the mixtures.
"""

from dataclasses import dataclass

import torch
from torch.nn import functional as F

from decoders.models.loading import load
from decoders.trace.events import Commit, Propose
from decoders.trace.trace import Trace
from explorer.experiments import Chart, Line, Models, Result, progress
from explorer.experiments.asked import decoded, prompts
from explorer.experiments.basis import FAR_ABOVE, Basis
from explorer.experiments.block_ffn import (
    Reader,
    Steered,
    block_reader,
    chunk_loss,
    locality_loss,
    mixtral_reader,
    mixture,
    scores,
    unused,
)
from explorer.experiments.measures import tokens_per_forward
from explorer.experiments.models.small import fit, held_out_loss, own_text, words
from explorer.experiments.pictures import TokenMap
from explorer.experiments.reading import percent, rows_of

PAPERS = ("blockffn",)
MIXTRAL = "llama-tiny-moe"
STRENGTHS = {"without the losses": 0.0, "with the losses": 1.0, "with ten times the losses": 10.0}
WIDTH, LAYERS, EXPERTS, SIZE = 96, 4, 16, 48
ROWS, HELD_OUT, LENGTH, STEPS, RATE = 1024, 128, 64, 300, 3e-3
CHUNK, LOCALITY, SPARSITY, STABLE, EVERY = 8, 2e-3, 5e-2, 100, 20
IN_A_ROW = (1, 2, 4, 8, 16)
PROMPTS, TOKENS = 4, 48
SHOWN = 32  # tokens in the picture
WAYS = {
    "greedy": ("greedy", {}),
    "chain of 1": ("speculative", {"num_assistant_tokens": 1, "temperature": 0.0}),
    "chain of 4": ("speculative", {"num_assistant_tokens": 4, "temperature": 0.0}),
    "chain of 8": ("speculative", {"num_assistant_tokens": 8, "temperature": 0.0}),
    "Sequoia's tree of 16": ("sequoia", {"budget": 16, "temperature": 0.0}),
    "Sequoia's tree of 32": ("sequoia", {"budget": 32, "temperature": 0.0}),
}


@dataclass
class Read:
    """A mixture: the reader of its experts, and the bytes of one expert in half precision."""

    name: str
    read: Reader
    expert_bytes: int


@dataclass
class Verified:
    """The tokens of one target forward: the text up to each leaf of its tree; the tree begins at `first`."""

    first: int
    leaves: list[list[int]]

    @property
    def count(self) -> int:
        """The number of distinct tokens."""
        return len({tuple(x[: end + 1]) for x in self.leaves for end in range(self.first, len(x))})


def verified(trace: Trace) -> list[Verified]:
    """One tree per step: the last token of the text, and the drafted tokens below it."""
    drafts, text, batches = trace.costs.drafted_nodes, list(trace.prompt), []
    for step in trace.steps:
        made = step.of(Propose)
        drafted, paths = [one for one in made if one.node in drafts], {}
        for one in drafted:
            paths[one.node] = [*paths.get(one.parent, text), one.token]
        inner = {one.parent for one in drafted}
        leaves = [path for node, path in paths.items() if node not in inner]
        batches.append(Verified(len(text) - 1, leaves or [text]))
        tokens = {one.node: one.token for one in made}
        text = [*text, *(tokens[node] for commit in step.of(Commit) for node in commit.nodes)]
    return batches


def needed(read: Reader, one: Verified) -> torch.Tensor:
    """The experts that one forward has to read [L, E]."""
    longest = max(map(len, one.leaves))
    ids = torch.tensor([leaf + [0] * (longest - len(leaf)) for leaf in one.leaves])
    inside = torch.tensor([[one.first <= at < len(leaf) for at in range(longest)] for leaf in one.leaves])
    return (read(ids) & inside[..., None]).flatten(1, 2).any(1)


def trained(rows: torch.Tensor, vocabulary: int, strength: float) -> torch.nn.Module:
    """A mixture trained on the rows, with `strength` times the two losses on its routers."""
    torch.manual_seed(0)
    model, sparsity = mixture(vocabulary, WIDTH, LAYERS, EXPERTS, SIZE), Steered(SPARSITY, STABLE, EVERY)

    def loss(some: torch.Tensor) -> torch.Tensor:
        logits = model(some).logits
        plain = F.cross_entropy(logits[:, :-1].flatten(0, 1), some[:, 1:].flatten())
        if strength == 0.0:
            return plain
        chunk = chunk_loss(scores(model), CHUNK)
        sparsity.update(chunk.item())
        return plain + strength * (LOCALITY * locality_loss(scores(model)) + sparsity.weight * chunk)

    fit(model.parameters(), loss, rows, STEPS, rate=RATE)
    return model.eval().requires_grad_(False)


@torch.inference_mode()
def skipped(model: torch.nn.Module, rows: torch.Tensor) -> float:
    """The largest change of a logit when inactive experts are not computed."""
    whole = model(rows).logits
    for layer in model.model.layers:
        layer.mlp.forward = layer.mlp.skipping
    apart = float((model(rows).logits - whole).abs().max())
    for layer in model.model.layers:
        del layer.mlp.forward
    return apart


def mixtures(models: Models, small: dict[str, torch.nn.Module]) -> list[Read]:
    """The trained mixtures, and the shipped Mixtral if it shares the target's vocabulary."""
    readers = [Read(name, block_reader(model), 2 * 2 * WIDTH * SIZE) for name, model in small.items()]
    shipped = load(MIXTRAL, "cpu")
    if shipped.tokenizer.get_vocab() == models["target"].tokenizer.get_vocab():
        config = shipped.model.config
        size = 2 * 3 * config.hidden_size * config.intermediate_size
        name = f"{MIXTRAL}, {config.num_experts_per_tok} of {config.num_local_experts}"
        readers.append(Read(name, mixtral_reader(shipped.model), size))
    return readers


def asked_of(one: Read, held: torch.Tensor, traces: dict[str, list[Trace]]) -> tuple[list[list], Line, str]:
    """A mixture's rows, its curve, and the sentences about it."""
    active, rows = one.read(held), []
    for count in IN_A_ROW:
        rows.append([one.name, "the text, in a row", float(count), 1 - unused(active, count), None, None])
    for way, some in traces.items():
        rounds = [each for trace in some for each in verified(trace)]
        experts = torch.stack([needed(one.read, each) for each in rounds]).float()
        many = sum(each.count for each in rounds) / len(rounds)
        new, share = tokens_per_forward(some), float(experts.mean())
        kilobytes = share * experts[0].numel() * one.expert_bytes / 1000 / new
        rows.append([one.name, way, many, share, new, kilobytes])
    first, *_, last = ways = rows[len(IN_A_ROW) :]
    idle = 1.0 - float(active.flatten(1, 2).any(1).float().mean())
    summary = (
        f"{one.name}: a token leaves {unused(active, 1):.0%} of the experts unused (TLS), 8 in a row leave "
        f"{unused(active, 8):.0%} (CLS_8), all of the held-out text {idle:.0%}; {last[1]} needs "
        f"{last[3]:.0%} per forward where {first[1]} needs {first[3]:.0%}, and a new token costs "
        f"{last[5]:.0f} KB of experts instead of {first[5]:.0f}."
    )
    return rows, Line(one.name, sorted(row[2:4] for row in ways)), summary


def drawn(one: Read, row: torch.Tensor, tokens: list[str]) -> TokenMap:
    """Which experts read each of the first tokens [T] of a text, grouped by layer."""
    active = one.read(row[None])[:, 0]  # [L, T, E]
    layers, _, experts = active.shape
    names = [f"layer {at // experts + 1}" if at % experts == 0 else "" for at in range(layers * experts)]
    values = active.transpose(1, 2).flatten(0, 1).float().tolist()
    chunks = f"1: the expert read the token; lines every {CHUNK} tokens"
    return TokenMap(f"Experts of each token, {one.name}", chunks, tokens, names, values, every=CHUNK)


def run(models: Models) -> Result:
    """Rows for each mixture: consecutive tokens, then what was verified; curves of the latter."""
    with progress.part(0.1):
        rows, held = own_text(models, ROWS + HELD_OUT, LENGTH).split([ROWS, HELD_OUT])
    vocabulary = models["target"].engine.vocabulary
    strengths = progress.each(STRENGTHS.items(), until=0.7)
    small = {name: trained(rows, vocabulary, strength) for name, strength in strengths}
    traces = {
        way: [decoded(models, name, p, TOKENS, **settings) for p in prompts("stories", PROMPTS)]
        for way, (name, settings) in progress.each(WAYS.items(), until=0.6)
    }
    readers = mixtures(models, small)
    results = [asked_of(one, held, traces) for one in progress.each(readers)]
    maps = [drawn(one, held[0, :SHOWN], words(models, held[0, :SHOWN])) for one in readers]
    losses = ", ".join(f"{held_out_loss(model, held):.3f} {name}" for name, model in small.items())
    lasts = ", ".join(f"{made[-1][3]:.0%} ({made[-1][0]})" for made, *_ in results)
    apart = max(skipped(model, held[:16]) for model in small.values())
    says = [
        f"A forward over {results[0][0][-1][1]} needs this share of all experts: {lasts}.",
        f"Held-out text in nats per token: {losses}, all trained equally long on the same rows; "
        f"{held_out_loss(models['target'].model, held):.3f} for the target that wrote it.",
        *(summary for *_, summary in results),
        "The authors report TLS above 80% and CLS_8 above 70%. Experts that all of the text leaves unused "
        "are dead: where they are many, neighbours share the rest for want of a choice.",
        f"Not computing inactive experts moved no logit by more than {apart:.0e}.",
    ]
    columns = [
        "mixture",
        "tokens",
        "how many",
        "experts used",
        "new tokens per forward",
        "KB of experts per token",
    ]
    lines = [line for _, line, _ in results]
    chart = Chart("Experts that a forward needs", "tokens verified", "share of all experts", lines, log=True)
    return Result(columns, [row for some, *_ in results for row in some], says, chart, pictures=maps)


def finding(answer: dict) -> str:
    """The largest tree, read by the mixture trained without the two losses and by the one trained with
    them.
    """
    rows = rows_of(answer)
    largest = rows[-1]["tokens"]
    plain, taught = [row for row in rows if row["tokens"] == largest][:2]
    return (
        f"Verifying {largest} in one forward needs {percent(plain['experts used'])} of the experts of a "
        f"plain mixture, and {percent(taught['experts used'])} where neighbours were trained to choose the "
        "same ones."
    )


STANDS = Basis({"prompts": PROMPTS, "held-out texts": HELD_OUT}, trained=1, unfinished=FAR_ABOVE)
