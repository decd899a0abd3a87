"""Trains the rows of rows/small_architectures.py: their texts, in tokens or bytes, and one short training.

Those that read tokens start from the layers of `llama-tiny-draft`, as far as theirs have the same form, and
therefore have Llama in their names; those that read bytes start from scratch and read only stories that no
Llama wrote. A few minutes of training each: enough to show how an architecture decodes, too little to judge
it.
"""

import math
from argparse import Namespace
from functools import cache

import torch
from transformers import LlamaConfig, LlamaForCausalLM, LlamaModel

from decoders.models.architectures import architectures
from decoders.models.architectures.causal import Architecture
from decoders.models.catalog import TARGET, with_weights
from decoders.models.model_files import tokenizer_of
from explorer.corpus import CONTEXT, ROW, Texts, pack, read_stories, rows_of, story_rows
from explorer.training import cards
from explorer.training.data.byte_tokens import byte_tokenizer
from explorer.training.loop import descend, run_steps, ship
from explorer.training.rows.small_architectures import SmallArchitecture

STORIES = ("tinystories_sample", "african_storybook_en", "pratham_storyweaver_en")
DRAFT = "llama-tiny-draft"
HELD_ROWS = 48  # of held-out text
BATCH = 8
RATE = 2e-3  # of AdamW
WORDS = "byte-level BPE of 4,096 tokens with single digits, the tokens of `llama-tiny`"
BYTES = "one token per byte, and two for the end of a text and for padding"


def texts(args: Namespace, in_bytes: bool) -> Texts:
    """The stories, packed, in llama-tiny's tokens or in bytes."""
    stories, held = read_stories(args.corpus, dict.fromkeys(STORIES, 1.0))
    words = byte_tokenizer(CONTEXT) if in_bytes else tokenizer_of(with_weights(TARGET))
    return Texts(words, pack(stories, words), rows_of(pack(held, words))[:HELD_ROWS])


def config_of(model_type: str, shape: dict, vocabulary: int) -> LlamaConfig:
    """The config of an architecture with `shape`, with END as the end-of-text token."""
    ends = dict(bos_token_id=0, eos_token_id=0, pad_token_id=1)
    sizes = {"max_position_embeddings": CONTEXT, "tie_word_embeddings": True} | shape
    return architectures()[model_type][0].config_class(vocab_size=vocabulary, **ends, **sizes)


@cache
def draft_layers() -> LlamaModel:
    """The draft from which the models of tokens start."""
    return LlamaForCausalLM.from_pretrained(with_weights(DRAFT), dtype=torch.float32).model


@torch.no_grad()
def begun(model: Architecture, row: SmallArchitecture) -> Architecture:
    """`model` with embedding, last norm and the layers of the draft that its row names. Only weights with the
    same name and shape are copied.
    """
    draft = draft_layers()
    taken(model.embed.weight, draft.embed_tokens.weight)
    taken(model.norm.weight, draft.norm.weight)
    for name, number in row.starts.items():
        block = model.get_submodule(name)
        copied(block, draft.layers[number])
        if name in row.silent:
            for part, weight in block.named_parameters():
                if part.endswith(("o.weight", "down.weight")):
                    weight.zero_()
    for name, number in row.attentions.items():
        attending(model.get_submodule(name), draft.layers[number])
    if row.bridge is not None:
        bridged(model.bridge, draft.layers[row.bridge])
    for name in row.zeros:
        model.get_parameter(name).zero_()
    return model


def copied(block: torch.nn.Module, layer: torch.nn.Module) -> None:
    """Copies what a layer of Llama has under these names into `block`."""
    own = dict(block.named_parameters())
    renamed = {
        "norm.weight": layer.input_layernorm.weight,
        "net_norm.weight": layer.post_attention_layernorm.weight,
        **{
            f"net.{part}.weight": getattr(layer.mlp, f"{part}_proj").weight for part in ("gate", "up", "down")
        },
        **{f"mixer.{part}.weight": getattr(layer.self_attn, f"{part}_proj").weight for part in "qkvo"},
    }
    for name, weight in renamed.items():
        if name in own:
            taken(own[name], weight)


def taken(own: torch.Tensor, weight: torch.Tensor) -> None:
    """Copies a weight of the draft if it has the same shape."""
    if own.shape == weight.shape:
        own.copy_(weight)


def attending(attention: torch.nn.Module, layer: torch.nn.Module) -> None:
    """Copies the attention of a layer of Llama."""
    for part in "qkvo":
        taken(getattr(attention, part).weight, getattr(layer.self_attn, f"{part}_proj").weight)


def bridged(bridge: torch.nn.Module, layer: torch.nn.Module) -> None:
    """Copies the keys and values of a layer of Llama."""
    taken(bridge.norm.weight, layer.input_layernorm.weight)
    taken(bridge.k.weight, layer.self_attn.k_proj.weight)
    taken(bridge.v.weight, layer.self_attn.v_proj.weight)


def train_row(row: SmallArchitecture, args: Namespace) -> None:
    """Trains an architecture on next tokens and ships it with its card."""
    read, name = texts(args, row.in_bytes), row.name
    torch.manual_seed(0)
    model = architectures()[row.model_type][0](config_of(row.model_type, row.shape, len(read.tokenizer)))
    if row.starts:
        begun(model, row)
    before = loss_of(model, read.held)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.95), weight_decay=0.01)

    def step(seen: int) -> tuple[int, list[float]]:
        rows = story_rows(read.stories, seen, BATCH)
        return rows.numel(), [descend(model(input_ids=rows, labels=rows).loss, model)]

    few = read.held[: HELD_ROWS // 8]
    budget = args.million_tokens or row.million_tokens
    curve = run_steps(model, [optimizer], step, lambda: [loss_of(model, few)], budget, args.work / name)
    nats = loss_of(model, read.held)
    bits = bits_per_byte(nats, read)
    print(f"{name}: {nats:.4f} nats per token, {bits:.3f} bits per byte", flush=True)
    facts = {
        "loss_before": round(before, 4),
        "bits_per_byte": round(bits, 3),
        "architecture": type(model).__name__,
        "tokens": BYTES if row.in_bytes else WORDS,
        "tokens_of": f"in rows of {ROW}" + ("" if row.in_bytes else f", beginning with layers of `{DRAFT}`"),
        "stories": list(STORIES),
        "note": row.note,
    }
    cards.write(ship(model, read.tokenizer, name, curve, nats, **facts))


@torch.no_grad()
def loss_of(model: Architecture, rows: torch.Tensor) -> float:
    """Nats per token over rows [R, T], in float32: bfloat16 is slow on many CPUs at this size."""
    model.eval()
    losses = [model(input_ids=some, labels=some).loss.item() * len(some) for some in rows.split(8)]
    model.train()
    return sum(losses) / len(rows)


def bits_per_byte(nats: float, read: Texts) -> float:
    """A loss per token converted to bits per byte of the held-out text, by which tokenizers can be
    compared.
    """
    written = sum(len(read.tokenizer.decode(row[1:]).encode()) for row in read.held)
    return nats * read.held[:, 1:].numel() / written / math.log(2)
