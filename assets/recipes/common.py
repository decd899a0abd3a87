"""What every recipe shares: corpus reading, the tokenizer, packing, the training loop and saving.

Knows PyTorch and transformers' model classes; knows nothing of decoding. A recipe is one small file that
names a model's shape, its mix of texts and its token budget, and calls `train` below. Training is resumable:
a checkpoint is written every few minutes and picked up by the next call.
"""

import argparse
import csv
import json
import math
import random
import time
from pathlib import Path

import numpy as np
import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

MODELS = Path(__file__).resolve().parent.parent / "models"
END = "<|endoftext|>"
PAD = "<|pad|>"
VOCABULARY = 4096
CONTEXT = 512
ROW = 256  # tokens a training row
HELD_OUT = 100  # every 100th story is kept for validation

# Share of each file's stories that goes into the mix: simple stories whole, the harder ones in part.
STORY_MIX = {
    "tinystories_sample": 1.0,
    "tinyfabulist_fables": 1.0,
    "snakes_child": 1.0,
    "snakes_summarised_stories": 1.0,
    "snakes_stories": 1.0,
    "snakes_slice_of_life": 1.0,
    "african_storybook_en": 1.0,
    "pratham_storyweaver_en": 1.0,
    "snakes_bedtime": 0.1,
    "snakes_campfire": 0.1,
}


def arguments(description: str) -> argparse.Namespace:
    """The command line that all recipes share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--corpus", type=Path, required=True, help="folder with stories/*.txt")
    parser.add_argument(
        "--work", type=Path, default=Path("training"), help="folder for checkpoints (not shipped)"
    )
    parser.add_argument(
        "--million-tokens", type=float, help="token budget, in millions (default: the recipe's own)"
    )
    return parser.parse_args()


def read_stories(corpus: Path, mix: dict[str, float] = STORY_MIX) -> tuple[list[str], list[str]]:
    """Returns (training stories, held-out stories) of the files in `mix`, shuffled with a fixed seed."""
    train, held = [], []
    for name, share in mix.items():
        stories = [s.strip() for s in (corpus / "stories" / f"{name}.txt").read_text("utf-8").split(END)]
        stories = [s for s in stories if s]
        random.Random(name).shuffle(stories)
        for index, story in enumerate(stories[: int(len(stories) * share)]):
            (held if index % HELD_OUT == 0 else train).append(story)
    random.Random(0).shuffle(train)
    return train, held


def shared_tokenizer(stories: list[str], folder: Path) -> PreTrainedTokenizerFast:
    """Byte-level BPE of 4,096 tokens with single digits; trained once, then read from `folder`."""
    if (folder / "tokenizer.json").exists():
        return PreTrainedTokenizerFast.from_pretrained(folder)
    tokenizer = Tokenizer(models.BPE())
    words = r" ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(words), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[END, PAD],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(stories, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=END,
        eos_token=END,
        pad_token=PAD,
        model_max_length=CONTEXT,
        clean_up_tokenization_spaces=False,
    )
    fast.save_pretrained(folder)
    return fast


def pack(stories: list[str], tokenizer: PreTrainedTokenizerFast) -> np.ndarray:
    """All stories one after the other, END between them: one array of token ids [T]."""
    ids = []
    for start in range(0, len(stories), 1000):
        for row in tokenizer([s + END for s in stories[start : start + 1000]])["input_ids"]:
            ids.append(np.array(row, dtype=np.int16))
    return np.concatenate(ids)


def llama(hidden_size: int, layers: int, heads: int, intermediate_size: int) -> LlamaForCausalLM:
    """A fresh Llama of the given shape with the shared vocabulary and tied embeddings."""
    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=hidden_size,
            intermediate_size=intermediate_size,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            num_key_value_heads=heads,
            max_position_embeddings=CONTEXT,
            tie_word_embeddings=True,
            rms_norm_eps=1e-5,
            bos_token_id=0,
            eos_token_id=0,
            pad_token_id=1,
        )
    )


def deepened(model: LlamaForCausalLM, layers: int) -> LlamaForCausalLM:
    """A copy with `layers` layers that computes the same: spread over the depth, some layers are followed by
    a copy of themselves whose two output matrices are zero, so that it adds nothing until it has learned.
    """
    old = model.config.num_hidden_layers
    config = LlamaConfig.from_dict({**model.config.to_dict(), "num_hidden_layers": layers})
    deep = LlamaForCausalLM(config)
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


def optimizers(model: torch.nn.Module) -> list[torch.optim.Optimizer]:
    """Muon for the matrices inside the layers, AdamW for embeddings and norms."""
    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and "embed" not in n]
    rest = [p for n, p in model.named_parameters() if p.ndim != 2 or "embed" in n]
    return [
        torch.optim.Muon(matrices, lr=6e-3, weight_decay=0.01, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(rest, lr=3e-3, betas=(0.9, 0.95), weight_decay=0.0),
    ]


def rate(progress: float) -> float:
    """Learning-rate factor: constant, then linear to zero from 40 % on."""
    return min(1.0, max(0.02, (1 - progress) / 0.6))


@torch.no_grad()
def validate(model: torch.nn.Module, held: torch.Tensor) -> float:
    """Mean negative log-likelihood in nats a token over the rows `held [rows, T]`."""
    model.eval()
    with torch.autocast("cpu" if held.device.type == "cpu" else "cuda", torch.bfloat16):
        losses = [model(input_ids=rows, labels=rows).loss.item() for rows in held.split(16)]
    model.train()
    return sum(losses) / len(losses)


def train(
    model: LlamaForCausalLM,
    tokens: np.ndarray,
    held: np.ndarray,
    million_tokens: float,
    batch: int,
    work: Path,
    skip: float = 0.0,
) -> list[tuple[float, float, float]]:
    """Trains in place and returns the curve [(million tokens, training loss, validation loss)].

    Resumes from `work/checkpoint.pt` if it is there; writes it every three minutes. skip: millions of tokens
    that an earlier stage has read already.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model.to(device)
    work.mkdir(parents=True, exist_ok=True)
    checkpoint = work / "checkpoint.pt"
    opts = optimizers(model)
    base = [group["lr"] for opt in opts for group in opt.param_groups]
    seen, curve = 0, []
    if checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(state["model"])
        for opt, saved in zip(opts, state["optimizers"], strict=True):
            opt.load_state_dict(saved)
        seen, curve = state["seen"], [tuple(row) for row in state["curve"]]
    budget = int(million_tokens * 1e6)
    compiled = torch.compile(model)
    held_rows = rows_of(held, 0)[:96].to(device)
    model.train()
    started, saved_at, running, since = time.time(), time.time(), [], seen
    while seen < budget:
        factor = rate(seen / budget)
        for opt, lr in zip([g for o in opts for g in o.param_groups], base, strict=True):
            opt["lr"] = lr * factor
        rows = batch_rows(tokens, int(skip * 1e6) + seen, batch).to(device)
        with torch.autocast(device, torch.bfloat16):
            loss = compiled(input_ids=rows, labels=rows).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for opt in opts:
            opt.step()
            opt.zero_grad(set_to_none=True)
        seen += rows.numel()
        running.append(loss.item())
        if len(running) == 100 or seen >= budget:
            curve.append((skip + seen / 1e6, sum(running) / len(running), validate(model, held_rows)))
            speed = (seen - since) / (time.time() - started)
            print(
                f"{curve[-1][0]:6.2f} M tokens  loss {curve[-1][1]:.3f}  held-out {curve[-1][2]:.3f}  "
                f"{speed:,.0f} tokens/s  {(budget - seen) / speed / 60:.0f} min left",
                flush=True,
            )
            running = []
        if time.time() - saved_at > 180 or seen >= budget:
            torch.save(
                {
                    "model": model.state_dict(),
                    "optimizers": [o.state_dict() for o in opts],
                    "seen": seen,
                    "curve": curve,
                },
                checkpoint,
            )
            saved_at = time.time()
    return curve


def rows_of(tokens: np.ndarray, offset: int) -> torch.Tensor:
    """Cuts tokens [T] into rows [T // ROW, ROW] starting at `offset`."""
    count = (len(tokens) - offset) // ROW
    return torch.from_numpy(tokens[offset : offset + count * ROW].astype(np.int64)).view(count, ROW)


def batch_rows(tokens: np.ndarray, seen: int, batch: int) -> torch.Tensor:
    """The batch [batch, ROW] that follows after `seen` tokens; each epoch has its own order and offset of
    rows.
    """
    per_epoch = len(tokens) // ROW - 1
    index = seen // ROW
    epoch, first = divmod(index, per_epoch)
    generator = np.random.default_rng(epoch)
    offset = int(generator.integers(ROW))
    order = generator.permutation(per_epoch)
    chosen = order[np.arange(first, first + batch) % per_epoch]
    return torch.from_numpy(
        np.stack([tokens[offset + r * ROW : offset + (r + 1) * ROW] for r in chosen]).astype(np.int64)
    )


def ship(
    model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, name: str, curve: list, facts: dict
) -> None:
    """Writes config, bfloat16 safetensors, tokenizer, loss curve and facts to assets/models/NAME."""
    folder = MODELS / name
    folder.mkdir(parents=True, exist_ok=True)
    model.to("cpu", torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    with (folder / "loss.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["million_tokens", "training_loss", "held_out_loss"])
        writer.writerows([f"{x:.4f}" for x in row] for row in curve)
    facts = {"parameters": sum(p.numel() for p in model.parameters()), **facts}
    facts["held_out_perplexity"] = round(math.exp(facts["held_out_loss"]), 2)
    (folder / "facts.json").write_text(json.dumps(facts, indent=1) + "\n")


def run(
    name: str,
    model: LlamaForCausalLM,
    million_tokens: float,
    batch: int,
    description: str,
    deeper: tuple[int, float] | None = None,
) -> None:
    """A whole causal recipe: texts, tokenizer, training, shipping.

    deeper: (layers, millions of tokens) of a second stage, in which the model goes on with more layers.
    """
    args = arguments(description)
    budget = args.million_tokens or million_tokens
    stories, held_stories = read_stories(args.corpus)
    tokenizer = shared_tokenizer(stories, args.work / "tokenizer")
    tokens, held = pack(stories, tokenizer), pack(held_stories, tokenizer)
    print(
        f"{name}: {len(stories)} stories, {len(tokens) / 1e6:.1f} M tokens, {len(held) / 1e3:.0f} k held out",
        flush=True,
    )
    curve = train(model, tokens, held, budget, batch, args.work / name)
    if deeper:
        layers, more = deeper
        more = args.million_tokens or more
        model = deepened(model.float(), layers)
        curve += train(model, tokens, held, more, batch, args.work / f"{name}-{layers}", skip=budget)
        budget += more
    final = validate(model, rows_of(held, 0).to(model.device))
    print(f"{name}: held-out loss {final:.4f} nats a token", flush=True)
    ship(model, tokenizer, name, curve, {"million_tokens": budget, "held_out_loss": round(final, 4)})
