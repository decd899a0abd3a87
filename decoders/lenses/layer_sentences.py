"""What an encoder-decoder writes after each layer of its encoder, for DecoderLens. Passing a middle layer's
states through the encoder's last norm first is our addition.
"""

import time
from difflib import SequenceMatcher
from typing import Any

import torch
from transformers.cache_utils import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput

from decoders.lenses.by_depth import chosen_ranks, depth_events
from decoders.lenses.frame import LensFrame, level_names
from decoders.lenses.tape import close, first
from decoders.logits.distributions import log_softmax
from decoders.refusal import Refusal
from decoders.trace.events import Cell, Forward
from decoders.trace.scores import Measure, ScoreName

NORMS = ("final_layer_norm", "layer_norm", "norm")  # the encoder's last one, in those that have one
LONGER = 8  # tokens that a sentence may have beyond the final one: early layers like to loop


def decoder_frame(model: Any, tokens: list[int], longest: int) -> LensFrame:
    """The sentences of all layers, of at most `longest` tokens in the last one."""
    began = time.perf_counter()
    states = encoder_states(model.model, tokens)  # [L + 1, S, d]
    cost = [Forward("target", "lens", len(tokens), 1, 0.0, time.perf_counter() - began, "encoder")]
    sentences = greedy_sentences(model.model, states, model.eos, longest, cost)
    final, levels = sentences[-1], level_names(len(states) - 1)
    began = time.perf_counter()
    logits = through(model.model, states, [start_of(model.model), *final[:-1]])  # [L + 1, T, V]
    took, read = time.perf_counter() - began, logits.shape[0] * logits.shape[1]
    cost.append(Forward("target", "lens", read, len(states), 0.0, took, "decoder"))
    events, _ = depth_events("decoder", levels, logits, logits[-1], final)
    for at, (level, sentence) in enumerate(zip(levels, sentences, strict=True)):
        for place, (token, shared) in enumerate(zip(sentence, agreeing(sentence, final), strict=True), 1):
            events.append(Cell(place, at, token, "kept" if shared else "changed", level=level))
        own = chosen_ranks(log_softmax(logits[at]), final)
        events.append(Measure(len(final), ScoreName.FINAL_SENTENCE, sum(p for p, _ in own), level=level))
    caption, text = sentence_about(sentences, levels), [start_of(model.model), *final]
    return LensFrame("decoder", "DecoderLens", text, levels, events, cost, caption, source=tokens)


@torch.no_grad()
def encoder_states(model: torch.nn.Module, source: list[int]) -> torch.Tensor:
    """What the decoder may attend to instead of the last states: the embeddings and each layer's states,
    through the encoder's last norm, [L + 1, S, d]. Raises Refusal with one sentence if the last of them are
    not the encoder's own.
    """
    encoder = model.get_encoder()
    norm = first(encoder, NORMS) or torch.nn.Identity()
    last: list[torch.Tensor] = []
    listening = norm.register_forward_pre_hook(lambda _, read: last.append(read[0]))
    try:
        ids = torch.tensor([source], device=model.device)
        out = encoder(input_ids=ids, output_hidden_states=True, return_dict=True)
    finally:
        listening.remove()
    states = norm(torch.cat([*out.hidden_states[:-1], *(last or out.hidden_states[-1:])]))
    if not close(states[-1], out.last_hidden_state[0]):
        name = type(model).__name__
        raise Refusal(f"The encoder of {name} ends in more than a norm; choose another encoder-decoder.")
    return states


def start_of(model: torch.nn.Module) -> int:
    """The token that the decoder begins with."""
    return model.generation_config.decoder_start_token_id


@torch.no_grad()
def greedy_sentences(
    model: torch.nn.Module, states: torch.Tensor, ends: frozenset[int], longest: int, cost: list[Forward]
) -> list[list[int]]:
    """The sentence that the decoder writes greedily for each row of `states` [L + 1, S, d], with its end."""
    rows, began = len(states), time.perf_counter()
    cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
    sentences: list[list[int]] = [[] for _ in range(rows)]
    token = torch.full((rows, 1), start_of(model), device=states.device)
    over = torch.zeros(rows, dtype=torch.bool, device=states.device)
    while longest > 0 and not over.all():
        out = model(
            decoder_input_ids=token,
            encoder_outputs=BaseModelOutput(last_hidden_state=states),
            attention_mask=torch.ones(states.shape[:2], dtype=torch.long, device=states.device),
            past_key_values=cache,
            use_cache=True,
        )
        token = out.logits[:, -1:].argmax(-1)
        for sentence, ended, new in zip(sentences, over.tolist(), token[:, 0].tolist(), strict=True):
            sentence.extend([] if ended else [new])
        was_over = bool(over[-1])
        over |= torch.tensor([new in ends for new in token[:, 0].tolist()], device=over.device)
        longest = longest - 1 if was_over or not over[-1] else min(longest - 1, LONGER)
        cost.append(Forward("target", "lens", rows, rows, 0.0, time.perf_counter() - began, "decoder"))
        began = time.perf_counter()
    return sentences


@torch.no_grad()
def through(model: torch.nn.Module, states: torch.Tensor, tokens: list[int]) -> torch.Tensor:
    """Logits [L + 1, T, V] after each of the decoder's T tokens, for each row of `states` [L + 1, S, d]."""
    ids = torch.tensor([tokens], device=states.device).expand(len(states), -1)
    seen = torch.ones(states.shape[:2], dtype=torch.long, device=states.device)
    looks_at = BaseModelOutput(last_hidden_state=states)
    return model(decoder_input_ids=ids, encoder_outputs=looks_at, attention_mask=seen).logits


def agreeing(own: list[int], final: list[int]) -> list[bool]:
    """For each token of `own` whether it stands in the final sentence, too, both read in order."""
    shared = [False] * len(own)
    for _, at, size in SequenceMatcher(None, final, own, autojunk=False).get_matching_blocks():
        shared[at : at + size] = [True] * size
    return shared


def sentence_about(sentences: list[list[int]], levels: list[str]) -> str:
    """The main thing in one sentence."""
    same = [sentence == sentences[-1] for sentence in sentences]
    at = len(same) - same[::-1].index(False) if False in same else 0
    where = f"from {levels[at]} on" if at < len(levels) - 1 else "only with the last layer"
    return f"The decoder writes the final sentence {where}; the encoder has {len(levels) - 1} layers."
