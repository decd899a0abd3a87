"""What every recipe shares: model shapes, optimisers, a resumable training loop, and shipping."""

import csv
import json
import math
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from decoders.models import rounded_change
from decoders.packages import assets
from decoders.refusal import Refusal
from explorer.training import check
from explorer.training.data import Rows
from explorer.training.loss_picture import loss_picture

MODELS = assets() / "models"
SAVE_SECONDS = 180.0
RATES = (6e-3, 3e-3)  # learning rates of Muon and of AdamW
CURVE = ["million_tokens", "training_loss", "held_out_loss"]  # columns of most loss.csv
Curve = list[tuple[float, ...]]  # (million tokens, training losses, held-out losses): mostly one of each


def device() -> str:
    """The device on which models are trained."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def half_precision(where: torch.device) -> torch.autocast:
    """Autocast to bfloat16, except on a processor without support for it: there it is ten times as slow or
    more, and an LSTM cannot run in it at all.
    """
    able = where.type != "cpu" or torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return torch.autocast(where.type, torch.bfloat16, enabled=able)


def trained(name: str) -> LlamaForCausalLM:
    """A model that was shipped before, in float32. Raises Refusal with one sentence if it does not
    exist.
    """
    if not (MODELS / name / "config.json").exists():
        raise Refusal(f"This recipe begins with {name}, which is not trained yet; train {name} first.")
    if rounded_change.is_change(MODELS / name):
        return rounded_change.with_change(MODELS / name, torch.float32).to(device())
    return LlamaForCausalLM.from_pretrained(MODELS / name, dtype=torch.float32).to(device())


def llama(hidden_size: int, layers: int, heads: int, intermediate_size: int) -> LlamaForCausalLM:
    """A fresh Llama of the given shape with the shared vocabulary and tied embeddings."""
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=4096,
            hidden_size=hidden_size,
            intermediate_size=intermediate_size,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            num_key_value_heads=heads,
            max_position_embeddings=512,
            tie_word_embeddings=True,
            rms_norm_eps=1e-5,
            bos_token_id=0,
            eos_token_id=0,
            pad_token_id=1,
        )
    )
    return attending(model)


def attending(model: LlamaForCausalLM) -> LlamaForCausalLM:
    """`model` with the fastest attention for training: compiled, or on a CPU the plain one, which is a
    seventh faster.
    """
    model.set_attn_implementation("sdpa" if torch.cuda.is_available() else "eager")
    return model


def deepened(model: LlamaForCausalLM, layers: int) -> LlamaForCausalLM:
    """A copy with `layers` layers that computes the same: spread over the depth, some layers are followed by
    a copy of themselves whose two output matrices are zero, so that it adds nothing at first.
    """
    old = model.config.num_hidden_layers
    config = LlamaConfig.from_dict({**model.config.to_dict(), "num_hidden_layers": layers})
    deep = attending(LlamaForCausalLM(config))
    weights = {k: v for k, v in model.state_dict().items() if ".layers." not in k}
    added = 0
    for index in range(old):
        copies = (index + 1) * (layers - old) // old - added
        layer = model.model.layers[index].state_dict()
        for copy in range(1 + copies):
            prefix = f"model.layers.{index + added + copy}."
            for name, value in layer.items():
                silent = copy and name in ("self_attn.o_proj.weight", "mlp.down_proj.weight")
                weights[prefix + name] = torch.zeros_like(value) if silent else value.clone()
        added += copies
    deep.load_state_dict(weights)
    return deep


def optimizers(model: torch.nn.Module, rates: tuple[float, float] = RATES) -> list[torch.optim.Optimizer]:
    """Muon for the matrices inside the layers, AdamW for embeddings and norms, if there are any. rates: of
    the two.
    """
    tables = {p for m in model.modules() if isinstance(m, torch.nn.Embedding) for p in m.parameters()}
    tables |= {p for n, p in model.named_parameters() if "embed" in n}
    learned = [p for p in model.parameters() if p.requires_grad]
    matrices = [p for p in learned if p.ndim == 2 and p not in tables]
    rest = [p for p in learned if p.ndim != 2 or p in tables]
    inner = dict(lr=rates[0], weight_decay=0.01, adjust_lr_fn="match_rms_adamw")
    result = [torch.optim.Muon(matrices, **inner)] if matrices else []
    return result + (
        [torch.optim.AdamW(rest, lr=rates[1], betas=(0.9, 0.95), weight_decay=0.0)] if rest else []
    )


def rate(progress: float) -> float:
    """Learning-rate factor: constant, then linear to zero from 40 % of the training on."""
    return min(1.0, max(0.02, (1 - progress) / 0.6))


def compiled(model: torch.nn.Module) -> Callable:
    """`model` compiled, if there is a compiler: a quarter faster or more."""
    return torch.compile(model) if torch.cuda.is_available() or shutil.which("g++") else model


def causal_loss(model: torch.nn.Module) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Next-token cross-entropy of `model`."""
    forward = compiled(model)
    return lambda rows, labels: forward(input_ids=rows, labels=labels).loss


def exits_loss(
    model: LlamaForCausalLM, exits: tuple[int, ...], weight: float
) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """The same, plus `weight` times the loss of one exit, which depends on the batch: the states after this
    many layers, through the model's own last norm and head (LayerSkip, Elhoushi et al. 2024, section 4.1).
    """
    forward = compiled(model)

    def loss(rows: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        out = forward(input_ids=rows, labels=labels, output_hidden_states=True)
        states = out.hidden_states[exits[int(rows.sum()) % len(exits)]]
        counted = labels[:, 1:] != -100
        logits = model.lm_head(model.model.norm(states[:, :-1][counted]))
        return out.loss + weight * torch.nn.functional.cross_entropy(logits.float(), labels[:, 1:][counted])

    return loss


@torch.no_grad()
def held_out_loss(model: torch.nn.Module, rows: torch.Tensor) -> float:
    """Mean negative log-likelihood in nats per token over `rows` [rows, T]."""
    model.eval()
    where, total = next(model.parameters()).device, 0.0
    for some in rows.to(where).split(16):
        with half_precision(where):
            logits = model(input_ids=some).logits[:, :-1]
        total += torch.nn.functional.cross_entropy(
            logits.flatten(0, 1).float(), some[:, 1:].flatten(), reduction="sum"
        ).item()
    model.train()
    return total / rows[:, 1:].numel()


def train(
    model: torch.nn.Module,
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    feed: Callable[[int], Rows],
    validate: Callable[[], float],
    million_tokens: float,
    work: Path,
    before: float = 0.0,
    rates: tuple[float, float] = RATES,
) -> Curve:
    """Trains `model` in place on `loss(rows, labels)` of the rows that `feed(tokens seen)` gives. Resumes
    from `work/checkpoint.pt` if it exists, and writes it every three minutes. before: millions of tokens that
    earlier stages have read, which count in the curve and in what is fed.
    """
    where = next(model.parameters()).device

    def step(seen: int) -> tuple[int, list[float]]:
        rows, labels = (part.to(where) for part in feed(int(before * 1e6) + seen))
        with half_precision(where):
            value = loss(rows, labels)
        return rows.numel(), [descend(value, model)]

    return run_steps(
        model, optimizers(model, rates), step, lambda: [validate()], million_tokens, work, before
    )


def descend(loss: torch.Tensor, model: torch.nn.Module) -> float:
    """Leaves the gradients of a loss in the weights of `model`, clipped to norm 1; returns the loss."""
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    return loss.item()


def run_steps(
    model: torch.nn.Module,
    opts: list[torch.optim.Optimizer],
    step: Callable[[int], tuple[int, list[float]]],
    validate: Callable[[], list[float]],
    million_tokens: float,
    work: Path,
    before: float = 0.0,
    schedule: Callable[[float], float] = rate,
    every: int = 100,
) -> Curve:
    """The resumable loop: `step(tokens seen)` leaves gradients and returns how many tokens it read and the
    losses. schedule: from progress to a factor of the learning rates. every: steps
    between two points of the curve.
    """
    work.mkdir(parents=True, exist_ok=True)
    checkpoint = work / "checkpoint.pt"
    base = [group["lr"] for opt in opts for group in opt.param_groups]
    seen, curve = 0, []
    if checkpoint.exists():
        where = next(model.parameters()).device
        state = torch.load(checkpoint, weights_only=True, map_location=where)
        model.load_state_dict(state["model"])
        for opt, saved in zip(opts, state["optimizers"], strict=True):
            opt.load_state_dict(saved)
        seen, curve = state["seen"], [tuple(row) for row in state["curve"]]
    groups = [group for opt in opts for group in opt.param_groups]  # loading replaces them
    budget = int(million_tokens * 1e6)
    model.train()
    started, saved_at, running, since = time.time(), time.time(), [], seen
    while seen < budget:
        for group, lr in zip(groups, base, strict=True):
            group["lr"] = lr * schedule(seen / budget)
        read, losses = step(seen)
        for opt in opts:
            opt.step()
            opt.zero_grad(set_to_none=True)
        seen += read
        running.append(losses)
        if len(running) == every or seen >= budget:
            means = [sum(column) / len(running) for column in zip(*running, strict=True)]
            curve.append((before + seen / 1e6, *means, *validate()))
            report(curve[-1], (seen - since) / (time.time() - started), budget - seen)
            running = []
        if time.time() - saved_at > SAVE_SECONDS or seen >= budget:
            state = {"model": model.state_dict(), "optimizers": [o.state_dict() for o in opts]}
            torch.save({**state, "seen": seen, "curve": curve}, checkpoint)
            saved_at = time.time()
    return curve


def report(point: tuple[float, ...], speed: float, left: int) -> None:
    """Prints one line of progress."""
    half = len(point) // 2
    losses = [" ".join(f"{loss:.3f}" for loss in part) for part in (point[1 : half + 1], point[half + 1 :])]
    print(
        f"{point[0]:6.2f} M tokens  loss {losses[0]}  held-out {losses[1]}  "
        f"{speed:,.0f} tokens/s  {left / speed / 60:.0f} min left",
        flush=True,
    )


def ship(
    model: torch.nn.Module,
    tokenizer: PreTrainedTokenizerFast,
    name: str,
    curve: Curve,
    held_out_loss: float,
    **facts: Any,
) -> Path:
    """Writes config, bfloat16 safetensors, tokenizer, loss curve with its picture, and facts to
    assets/models/NAME, and returns this folder. held_out_loss: in nats per token.
    """
    folder = MODELS / name
    folder.mkdir(parents=True, exist_ok=True)
    model.to("cpu", torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    words = folder / "tokenizer.json"  # without indents: with them it is two and a half times as large
    words.write_text(
        json.dumps(json.loads(words.read_text("utf-8")), separators=(",", ":"), ensure_ascii=False), "utf-8"
    )
    loss = round(held_out_loss, 4)
    facts = {"held_out_loss": loss, **facts, "held_out_perplexity": round(math.exp(loss), 2)}
    write_training(folder, model, curve, "token", facts)
    check.write(folder)
    return folder


def write_training(folder: Path, model: torch.nn.Module, curve: Curve, unit: str, facts: dict) -> None:
    """Writes a loss curve, its picture (in nats per `unit`), and facts: size and budget, then those given."""
    saved = save_curve(folder, CURVE, curve)
    (folder / "loss.svg").write_text(loss_picture(saved, f"{folder.name}: nats per {unit}"), "utf-8")
    size, read = sum(p.numel() for p in model.parameters()), round(curve[-1][0], 2)
    write_json(folder / "facts.json", {"parameters": size, "million_tokens": read, **facts})


def write_json(path: Path, content: dict) -> None:
    """Writes what is stored beside weights."""
    path.write_text(json.dumps(content, indent=1) + "\n", "utf-8")


def save_curve(folder: Path, columns: list[str], curve: Curve) -> Curve:
    """Writes the losses of a training to `folder/loss.csv`; returns them as written, with four decimals."""
    with (folder / "loss.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows([f"{x:.4f}" for x in row] for row in curve)
    return [tuple(round(x, 4) for x in row) for row in curve]
