"""What recipes share whose models are a low-rank change of a shipped one plus rows for added tokens: the
trained layers, and the shipped files. LoRA (Hu et al. 2021).
"""

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import LlamaForCausalLM

from decoders.models import lora
from explorer.training import check, loop
from explorer.training.loop import Curve, compiled, descend, half_precision, held_out_loss

CHANGED = ("q_proj", "v_proj", "o_proj", "up_proj", "down_proj")  # all but keys and gates, for size
SCALE = 2  # alpha / rank
Labelled = tuple[torch.Tensor, torch.Tensor]  # rows and labels [B, T] of a batch


class LowRank(torch.nn.Module):
    """A frozen linear layer W with a trained update: W x + alpha / r · B (A x)."""

    def __init__(self, frozen: torch.nn.Linear, rank: int):
        super().__init__()
        self.frozen = frozen
        self.lora_A = torch.nn.Linear(frozen.in_features, rank, bias=False)
        self.lora_B = torch.nn.Linear(rank, frozen.out_features, bias=False)
        torch.nn.init.zeros_(self.lora_B.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.frozen(x) + SCALE * self.lora_B(self.lora_A(x))


def adapted(model: LlamaForCausalLM, tokens: Sequence[str], rank: int) -> LlamaForCausalLM:
    """`model`, frozen, with fresh adapters and fresh rows for the added tokens; only these are trained."""
    torch.manual_seed(0)
    old = model.config.vocab_size
    model.requires_grad_(False)
    model.resize_token_embeddings(old + len(tokens), mean_resizing=False)
    table = model.get_input_embeddings().weight
    with torch.no_grad():
        table[old:] = table[:old].mean(0) + 0.02 * torch.randn(len(tokens), table.shape[1])
    learned = (torch.arange(len(table)) >= old)[:, None]
    table.requires_grad_(True).register_hook(lambda gradient: gradient * learned.to(gradient.device))
    for layer in model.model.layers:
        for part in (layer.self_attn, layer.mlp):
            for name in CHANGED:
                if hasattr(part, name):
                    setattr(part, name, LowRank(getattr(part, name), rank))
    return model


def learned_of(model: LlamaForCausalLM) -> list[torch.nn.Parameter]:
    """The trained parameters of an adapted model; of the embedding table only the last rows."""
    return [p for p in model.parameters() if p.requires_grad]


def fit_labelled(
    model: LlamaForCausalLM,
    batch: Callable[[int], Labelled],
    kept: Sequence[Labelled],
    rate: float,
    budget: float,
    work: Path,
) -> Curve:
    """Trains an adapted model on rows and labels [B, T] that `batch` makes, given the number of tokens fed so
    far; `kept` are held out. budget: million tokens; work: the folder of checkpoints.
    """
    opt = torch.optim.AdamW(learned_of(model), lr=rate, weight_decay=0.0)
    forward = compiled(model)

    def loss(rows: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        where = next(model.parameters()).device
        with half_precision(where):
            return forward(input_ids=rows.to(where), labels=labels.to(where)).loss

    def step(seen: int) -> tuple[int, list[float]]:
        rows, labels = batch(seen)
        return rows.numel(), [descend(loss(rows, labels), model)]

    @torch.no_grad()
    def validate() -> list[float]:
        return [sum(loss(*pair).item() for pair in kept) / len(kept)]

    return loop.run_steps(model, [opt], step, validate, budget, work)


def ship(
    name: str,
    model: LlamaForCausalLM,
    base: str,
    tokens: Sequence[str],
    rank: int,
    curve: Curve,
    held: torch.Tensor,
    facts: dict,
    files: dict[str, str],
) -> None:
    """Writes an adapted `base` to its own folder: adapter, loss curve with picture, facts, and `files`. held:
    rows of plain stories, whose loss shows what was forgotten.
    """
    folder = loop.MODELS / name
    save(folder, model, base, tokens, rank)
    for file, text in files.items():
        (folder / file).write_text(text, "utf-8")
    rows, width = model.get_input_embeddings().weight.shape
    learned = sum(p.numel() for p in learned_of(model)) - (rows - len(tokens)) * width
    merged = lora.with_low_rank_change(folder, torch.float32)
    after = held_out_loss(merged, held)
    facts = {
        "trained_parameters": learned,
        "base": base,
        "rank": rank,
        "tokens": tokens,
        **facts,
        "held_out_loss": round(after, 4),
        "held_out_perplexity": round(math.exp(after), 2),
    }
    loop.write_training(folder, merged, curve, "token", facts)
    check.write(folder)


def save(folder: Path, model: LlamaForCausalLM, base: str, tokens: Sequence[str], rank: int) -> None:
    """Writes the adapter in the layout of PEFT, in float16, and the merged model's configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {
        f"{lora.PREFIX}{name}": value.detach().cpu().half().contiguous()
        for name, value in model.state_dict().items()
        if ".lora_" in name
    }
    rows = model.get_input_embeddings().weight[-len(tokens) :]
    weights[f"{lora.PREFIX}{lora.ROWS}.{lora.DELTA}"] = rows.detach().cpu().half().contiguous()
    save_file(weights, folder / lora.WEIGHTS, metadata={"format": "pt"})
    first = model.config.vocab_size - len(tokens)
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base,
        "r": rank,
        "lora_alpha": SCALE * rank,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": list(CHANGED),
        "trainable_token_indices": {"embed_tokens": list(range(first, model.config.vocab_size))},
    }
    loop.write_json(folder / lora.CONFIG, config)
    ids = {token: first + at for at, token in enumerate(tokens)}
    (folder / lora.TOKENS).write_text(json.dumps(ids) + "\n", "utf-8")
    model.config.save_pretrained(folder)
