"""llama-tiny-seq2seq: an encoder-decoder of the T5 architecture, six encoder and three decoder layers (width
192), 5.2 M parameters. It corrects sentences, translates into the toy language and back, writes records and
answers from fact sheets; it learned little of copying and of editing lists. It begins with the target's
embeddings and layers; trained from scratch, it had not learned to attend to its source after six million
tokens.
"""

import random
from argparse import Namespace
from collections.abc import Iterator

import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

from explorer.corpus import CONTEXT, END, IGNORED, read_stories, shared_tokenizer
from explorer.tasks import HELD_OUT_SEED, TASKS, Problem, problems
from explorer.training.data.sentences import spoiled, story_sentences, unread_sentences
from explorer.training.loop import ship, train, trained

NAME = "llama-tiny-seq2seq"
SHAPE = dict(num_layers=6, num_decoder_layers=3)
# Tasks that it learns, with their weights in the mix.
MIX = {
    "copy": 1,
    "reverse": 1,
    "replace": 1,
    "insert": 1,
    "remove": 1,
    "opposite": 1,
    "correct": 3,
    "translate": 2,
    "translate_back": 2,
    "facts": 3,
    "json": 2,
}
STORY_SHARE = 0.15  # of the problems: sentences of stories, spoiled by the rules of `correct`
BATCH = 64
POOL = 4  # batches that are sorted by length together, so that little is padding
PAD = 1
VALIDATION, MEASURED = 16, 50  # problems of each task: for the curve; for the accuracies
Rows = tuple[torch.Tensor, torch.Tensor]


def build(target: LlamaForCausalLM) -> T5ForConditionalGeneration:
    """A model of the target's width that starts from its embeddings and layers: SHAPE's num_layers of them
    become the encoder, the first num_decoder_layers the decoder, and the attention of the layers after these
    attends to the source. T5 encodes positions differently (learned distance biases, at first fresh), and its
    attention is not divided by the root of the head size: the queries are scaled instead. Input, output and
    prediction share one matrix.
    """
    torch.manual_seed(0)
    old = target.config
    model = T5ForConditionalGeneration(
        T5Config(
            **SHAPE,
            d_model=old.hidden_size,
            d_kv=old.head_dim,
            num_heads=old.num_attention_heads,
            d_ff=old.intermediate_size,
            vocab_size=old.vocab_size,
            n_positions=CONTEXT,
            layer_norm_epsilon=old.rms_norm_eps,
            feed_forward_proj="gated-silu",
            dropout_rate=0.0,
            tie_word_embeddings=True,
            pad_token_id=PAD,
            eos_token_id=0,
            decoder_start_token_id=PAD,
        )
    ).to(target.device)
    layers, writing = target.model.layers, SHAPE["num_decoder_layers"]
    for block, layer in zip(model.encoder.block, layers, strict=False):
        copy_attention(block.layer[0], block.layer[0].SelfAttention, layer)
        copy_neurons(block.layer[1], layer)
    for block, layer, later in zip(model.decoder.block, layers, layers[writing:], strict=False):
        copy_attention(block.layer[0], block.layer[0].SelfAttention, layer)
        copy_attention(block.layer[1], block.layer[1].EncDecAttention, later)
        copy_neurons(block.layer[2], layer)
    model.shared.weight.data.copy_(target.model.embed_tokens.weight)
    scale = target.model.norm.weight.data
    model.decoder.final_layer_norm.weight.data.copy_(scale * old.hidden_size**0.5)  # undone before the head
    return model


def copy_attention(part: torch.nn.Module, new: torch.nn.Module, layer: torch.nn.Module) -> None:
    """Attention and its norm of a layer of the target."""
    old = layer.self_attn
    new.q.weight.data.copy_(old.q_proj.weight / old.head_dim**0.5)
    new.k.weight.data.copy_(old.k_proj.weight)
    new.v.weight.data.copy_(old.v_proj.weight)
    new.o.weight.data.copy_(old.o_proj.weight)
    part.layer_norm.weight.data.copy_(layer.input_layernorm.weight)


def copy_neurons(part: torch.nn.Module, layer: torch.nn.Module) -> None:
    """The feed-forward part and its norm of a layer of the target."""
    part.DenseReluDense.wi_0.weight.data.copy_(layer.mlp.gate_proj.weight)
    part.DenseReluDense.wi_1.weight.data.copy_(layer.mlp.up_proj.weight)
    part.DenseReluDense.wo.weight.data.copy_(layer.mlp.down_proj.weight)
    part.layer_norm.weight.data.copy_(layer.post_attention_layernorm.weight)


def drawn(sentences: list[str], rng: random.Random) -> Problem:
    """One problem of the mix."""
    if rng.random() < STORY_SHARE:
        return spoiled(rng.choice(sentences), rng)
    return TASKS[rng.choices(list(MIX), list(MIX.values()))[0]].make(rng)


def padded(rows: list[list[int]], filling: int) -> torch.Tensor:
    """Rows of several lengths as one tensor [rows, longest]."""
    widest = max(map(len, rows))
    return torch.tensor([row + [filling] * (widest - len(row)) for row in rows])


def encoded(tokenizer: PreTrainedTokenizerFast, made: list[Problem]) -> Rows:
    """Sources [B, S], padded, and answers with their ends [B, T], padded with IGNORED."""
    sources = tokenizer([p.prompt for p in made])["input_ids"]
    answers = tokenizer([p.answer + END for p in made])["input_ids"]
    return padded(sources, PAD), padded(answers, IGNORED)


def batch_after(tokenizer: PreTrainedTokenizerFast, sentences: list[str], seen: int) -> Rows:
    """The batch after `seen` tokens: problems of similar length."""
    rng = random.Random(f"seq2seq {seen}")
    made = sorted((drawn(sentences, rng) for _ in range(POOL * BATCH)), key=lambda p: len(p.prompt))
    first = rng.randrange(POOL) * BATCH
    return encoded(tokenizer, made[first : first + BATCH])


def held_out(sentences: list[str]) -> Iterator[tuple[str, list[Problem]]]:
    """(name, problems of seeds that are never fed) of each task, and of sentences of held-out stories."""
    for name in MIX:
        yield name, problems(name, MEASURED, HELD_OUT_SEED)
    rng = random.Random("held out")
    chosen = rng.sample(sentences, min(MEASURED, len(sentences)))
    yield "correct (stories)", [spoiled(right, rng) for right in chosen]


def main(args: Namespace) -> None:
    """Trains and ships it."""
    stories, held = read_stories(args.corpus)
    tokenizer = shared_tokenizer(stories, args.work / "tokenizer")
    sentences = story_sentences(stories)
    unread = unread_sentences(stories, held)
    model = build(trained("llama-tiny"))
    fixed = [encoded(tokenizer, asked[:VALIDATION]) for _, asked in held_out(unread)]

    def loss(rows: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return model(input_ids=rows, attention_mask=(rows != PAD).long(), labels=labels).loss

    @torch.no_grad()
    def validate() -> float:
        """Nats per answer token, the mean over the tasks."""
        parts = [[part.to(model.device) for part in rows] for rows in fixed]
        return sum(loss(*rows).item() for rows in parts) / len(parts)

    curve = train(
        model,
        loss,
        lambda seen: batch_after(tokenizer, sentences, seen),
        validate,
        args.million_tokens or 12,
        args.work / NAME,
    )
    facts = {
        "architecture": "T5",
        "tokens_of": "of sources, their padding included",
        "note": "Losses are nats per token of the answers.",
    }
    ship(model, tokenizer, NAME, curve, validate(), **facts)
