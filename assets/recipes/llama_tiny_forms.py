"""llama-tiny-forms: llama-tiny with a low-rank adapter and fifteen tokens more, for two forms of text: with
the middle last (PRE a SUF c MID b EOT), and with a topic in front of each sentence.
"""

import json
import math
from argparse import Namespace
from pathlib import Path

import check
import torch
import training
from corpus import prepare, read_stories
from forms import ADDED, Forms, topics_of
from loss_picture import loss_picture
from safetensors.torch import save_file
from training import compiled, held_out_loss, trained
from transformers import LlamaForCausalLM

from decoders import adapters
from decoders.search.topics import TOPICS

BASE, NAME = "llama-tiny", "llama-tiny-forms"
RANK, ALPHA = 4, 8
CHANGED = ("q_proj", "v_proj", "o_proj", "up_proj", "down_proj")  # all but keys and gates, for size
RATE = 1e-2
NOTE = (
    "The losses of the curve are of the two new forms, held out: {forms:.4f} nats a token at the end. On "
    "plain held-out stories `llama-tiny` has {before:.4f}."
)
HELD_OUT = 5  # batches that are never fed


class LowRank(torch.nn.Module):
    """A frozen linear layer W and what is learned: W x + alpha / r · B (A x). LoRA (Hu et al. 2021)."""

    def __init__(self, frozen: torch.nn.Linear):
        super().__init__()
        self.frozen = frozen
        self.lora_A = torch.nn.Linear(frozen.in_features, RANK, bias=False)
        self.lora_B = torch.nn.Linear(RANK, frozen.out_features, bias=False)
        torch.nn.init.zeros_(self.lora_B.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.frozen(x) + ALPHA / RANK * self.lora_B(self.lora_A(x))


def adapted(model: LlamaForCausalLM) -> LlamaForCausalLM:
    """`model`, frozen, with fresh adapters and fresh rows for the added tokens, which alone are learned."""
    torch.manual_seed(0)
    old = model.config.vocab_size
    model.requires_grad_(False)
    model.resize_token_embeddings(old + len(ADDED), mean_resizing=False)
    table = model.get_input_embeddings().weight
    with torch.no_grad():
        table[old:] = table[:old].mean(0) + 0.02 * torch.randn(len(ADDED), table.shape[1])
    learned = (torch.arange(len(table)) >= old)[:, None]
    table.requires_grad_(True).register_hook(lambda gradient: gradient * learned.to(gradient.device))
    for layer in model.model.layers:
        for part in (layer.self_attn, layer.mlp):
            for name in CHANGED:
                if hasattr(part, name):
                    setattr(part, name, LowRank(getattr(part, name)))
    return model


def main(args: Namespace) -> None:
    """Trains and ships it."""
    texts = prepare(args.corpus, args.work)
    told, held = read_stories(args.corpus)
    topics = topics_of(told)
    base, model = trained(BASE), adapted(trained(BASE)).to(training.device())
    before = held_out_loss(base, texts.held)
    tokenizer = adapters.with_tokens(texts.tokenizer, list(ADDED))
    forms, unseen = Forms(told, tokenizer, topics), Forms(held, tokenizer, topics)
    kept = [unseen.batch(f"held out {at}") for at in range(HELD_OUT)]
    learned = [p for p in model.parameters() if p.requires_grad]
    opt = torch.optim.AdamW(learned, lr=RATE, weight_decay=0.0)
    forward = compiled(model)

    def loss(rows: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        where = next(model.parameters()).device
        with torch.autocast(where.type, torch.bfloat16):
            return forward(input_ids=rows.to(where), labels=labels.to(where)).loss

    def step(seen: int) -> tuple[int, list[float]]:
        rows, labels = forms.mixed(texts.stories, seen)
        value = loss(rows, labels)
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        return rows.numel(), [value.item()]

    @torch.no_grad()
    def validate() -> list[float]:
        return [sum(loss(*pair).item() for pair in kept) / len(kept)]

    budget = args.million_tokens or 2.4
    curve = training.go_on(model, [opt], step, validate, budget, args.work / NAME)
    folder = training.MODELS / NAME
    save(folder, model)
    (folder / TOPICS).write_text(json.dumps(topics.weights) + "\n")
    saved = training.save_curve(folder, training.CURVE, curve)
    (folder / "loss.svg").write_text(loss_picture(saved, f"{NAME}: nats a token"), "utf-8")
    after = held_out_loss(adapters.merged(folder, torch.float32), texts.held)
    print(f"{NAME}: held-out loss on plain stories {before:.4f}, now {after:.4f} nats a token", flush=True)
    facts = {
        "parameters": sum(p.numel() for p in base.parameters()) + len(ADDED) * base.config.hidden_size,
        "trained_parameters": sum(p.numel() for p in learned) - base.model.embed_tokens.weight.numel(),
        "base": BASE,
        "rank": RANK,
        "tokens": ADDED,
        "million_tokens": round(curve[-1][0], 2),
        "tokens_of": "in rows of 512",
        "note": NOTE.format(before=before, forms=curve[-1][2]),
        "held_out_loss": round(after, 4),
        "held_out_perplexity": round(math.exp(after), 2),
    }
    (folder / "facts.json").write_text(json.dumps(facts, indent=1) + "\n")
    check.write(folder)


def save(folder: Path, model: LlamaForCausalLM) -> None:
    """Writes the adapter in the layout of PEFT, in float16, and the merged model's configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {
        f"{adapters.PREFIX}{name}": value.detach().cpu().half().contiguous()
        for name, value in model.state_dict().items()
        if ".lora_" in name
    }
    rows = model.get_input_embeddings().weight[-len(ADDED) :]
    weights[f"{adapters.PREFIX}{adapters.ROWS}.{adapters.DELTA}"] = rows.detach().cpu().half().contiguous()
    save_file(weights, folder / adapters.WEIGHTS, metadata={"format": "pt"})
    first = model.config.vocab_size - len(ADDED)
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": BASE,
        "r": RANK,
        "lora_alpha": ALPHA,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": list(CHANGED),
        "trainable_token_indices": {"embed_tokens": list(range(first, model.config.vocab_size))},
    }
    (folder / adapters.CONFIG).write_text(json.dumps(config, indent=1) + "\n")
    ids = {token: first + at for at, token in enumerate(ADDED)}
    (folder / adapters.TOKENS).write_text(json.dumps(ids) + "\n")
    model.config.save_pretrained(folder)
