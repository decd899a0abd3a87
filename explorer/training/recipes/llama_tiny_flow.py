"""llama-tiny-flow: a discrete flow model for text like Drax (Navon et al. 2025), with an encoder and a
decoder of three layers each (width 192), which corrects a short sentence, `correct: the dogs runs =>`. It
takes no speech. It begins with layers of llama-tiny-diffusion.
"""

import random
from argparse import Namespace

import torch
from torch.nn.functional import cross_entropy, one_hot
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from decoders.models.flow import FlowModel
from explorer.corpus import END, read_stories, shared_tokenizer
from explorer.tasks import HELD_OUT_SEED
from explorer.tasks.correction import sentence
from explorer.training.data import Rows
from explorer.training.data.sentences import spoiled, story_sentences, unread_sentences
from explorer.training.loop import descend, optimizers, run_steps, ship, trained
from explorer.training.recipes.llama_tiny_seq2seq import PAD, padded

NAME = "llama-tiny-flow"
LAYERS = 3  # of the encoder, and of the decoder
CANVAS = 16  # positions: a sentence and its end, filled up with ends
OFFSET = 5  # tokens of `correct:`, which have no counterpart in the answer
LONGEST = 32  # tokens of a source
BATCH = 64
ENDS_COUNTED = 0.2  # share of the positions after a sentence's end that the loss is taken from
STORY_SHARE = 0.35  # sentences of stories; the others are made by rule
DROPPED = 0.1  # rows whose source is not shown
PREFIXED = 0.25  # rows of which a beginning is given
GUMBEL_TEMPERATURE = 1.0
MIDDLE_WEIGHT = 1.0
COPYING = 0.15  # first weight of the middle head's norm: it begins by copying the source, not too surely


def path_weights(t: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Weights (source, middle, target) of the tri-mixture path at times t; they sum to 1."""
    s, r = 1 - t**2, t ** (2 / 3)
    return (1 - r) * s, r * s, 1 - s


def rows_of(tokenizer: PreTrainedTokenizerFast, right: list[str], rng: random.Random) -> Rows:
    """Sources [B, S] with errors, padded, and canvases [B, CANVAS]; sentences that do not fit are left
    out.
    """
    sources, canvases = [], []
    for text in right:
        problem = spoiled(text, rng)
        source, answer = tokenizer([problem.prompt, problem.answer + END])["input_ids"]
        if len(source) <= LONGEST and len(answer) <= CANVAS:
            sources.append(source)
            canvases.append(answer + [0] * (CANVAS - len(answer)))
    return padded(sources, PAD), torch.tensor(canvases)


def drawn(sentences: list[str], rng: random.Random, count: int) -> list[str]:
    """`count` sentences without errors."""
    stories = [bool(sentences) and rng.random() < STORY_SHARE for _ in range(count)]
    return [rng.choice(sentences) if is_story else sentence(rng) for is_story in stories]


def categorical(logits: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """One sample for each row of logits [..., V] as a one-hot vector, with the gradient of Gumbel-softmax."""
    noise = -torch.empty_like(logits).exponential_(generator=generator).log()
    probs = ((logits + noise) / GUMBEL_TEMPERATURE).softmax(-1)
    hard = one_hot(probs.argmax(-1), logits.shape[-1]).to(probs)
    return hard - probs.detach() + probs


def flow_loss(model: FlowModel, source: torch.Tensor, final: torch.Tensor, seed: int) -> torch.Tensor:
    """Cross-entropy of the final tokens [B, L] from a state of the path at a random time, and that of the
    middle head, whose samples are part of that state and pass their gradients on.
    """
    generator = torch.Generator().manual_seed(seed)
    rows, length = final.shape
    t = torch.rand(rows, generator=generator)
    seen = source != PAD
    memory = model.read(source, seen)
    shown = torch.rand(rows, 1, 1, generator=generator) >= DROPPED
    memory = memory * shown
    middle = model.middle_states(memory, seen, length)
    uniform = torch.randint(model.config.vocab_size, final.shape, generator=generator)
    weights = torch.stack(path_weights(t), -1)  # [B, 3]
    kinds = torch.multinomial(weights, length, replacement=True, generator=generator)  # [B, L]
    given = torch.randint(1, length, (rows, 1), generator=generator)
    given = given * (torch.rand(rows, 1, generator=generator) < PREFIXED)
    kinds[torch.arange(length)[None] < given] = 2
    table = model.embed_tokens.weight
    canvas = model.embed_tokens(torch.where(kinds == 0, uniform, final))
    at = kinds == 1
    canvas[at] = categorical(model.head(middle[at]), generator) @ table
    written = model.write_states(canvas, t, memory, seen)
    counted = (final != 0) | (torch.rand(final.shape, generator=generator) < ENDS_COUNTED)
    own, from_source = (cross_entropy(model.head(x[counted]), final[counted]) for x in (written, middle))
    return own + MIDDLE_WEIGHT * from_source


def build(old: LlamaForCausalLM) -> FlowModel:
    """A model initialised with the embeddings and the first and last layers of a masked-diffusion model. The
    matrices with which a position attends to the source are the identity: at first it copies the aligned
    source token.
    """
    torch.manual_seed(0)
    config = LlamaConfig.from_dict(
        {
            **old.config.to_dict(),
            "vocab_size": old.config.mask_token_id,
            "mask_token_id": None,
            "num_hidden_layers": LAYERS,
            "writing_layers": LAYERS,
            "canvas": CANVAS,
            "source_offset": OFFSET,
            "denoiser": "flow",
            "source_form": "correct: SENTENCE =>",
        }
    )
    config._attn_implementation = "sdpa"
    model = FlowModel(config)
    model.embed_tokens.weight.data.copy_(old.model.embed_tokens.weight[: config.vocab_size])
    model.norm.load_state_dict(old.model.norm.state_dict())
    for new, layer in zip(model.readers, old.model.layers, strict=False):
        new.load_state_dict(layer.state_dict())
    for new, layer in zip(model.writers, old.model.layers[-LAYERS:], strict=True):
        new.load_state_dict(layer.state_dict())
    torch.nn.init.constant_(model.middle_norm.weight, COPYING)
    model.read_norm.load_state_dict(old.model.layers[LAYERS].input_layernorm.state_dict())
    for look in (*model.looks, model.middle):
        for part in (look.q, look.k, look.v, look.o):
            torch.nn.init.eye_(part.weight)
    return model


def main(args: Namespace) -> None:
    """Trains and ships it."""
    stories, held = read_stories(args.corpus)
    tokenizer = shared_tokenizer(stories, args.work / "tokenizer")
    sentences = story_sentences(stories)
    unread = unread_sentences(stories, held)
    model = build(trained("llama-tiny-diffusion").cpu())
    rng = random.Random(f"flow {HELD_OUT_SEED}")
    fixed = rows_of(tokenizer, drawn(unread, rng, 192), rng)

    def step(seen: int) -> tuple[int, list[float]]:
        rng = random.Random(f"flow {seen}")
        source, final = rows_of(tokenizer, drawn(sentences, rng, BATCH), rng)
        loss = flow_loss(model, source, final, seen)
        return source.numel() + final.numel(), [descend(loss, model)]

    @torch.no_grad()
    def validate() -> list[float]:
        return [flow_loss(model, *fixed, seed=0).item()]

    curve = run_steps(model, optimizers(model), step, validate, args.million_tokens or 2.6, args.work / NAME)
    facts = {
        "architecture": "encoder-decoder (Llama's layers, without a causal mask)",
        "tokens_of": "of sources, their padding included, and canvases",
        "note": "Losses are nats per position of the canvas: that of the final token at a random time, and "
        "that of the middle head.",
    }
    ship(model, tokenizer, NAME, curve, validate()[0], **facts)
