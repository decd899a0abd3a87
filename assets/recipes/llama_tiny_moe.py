"""llama-tiny-moe: a mixture of experts of the Mixtral architecture, eight experts of which two are active in
each layer, on stories and tasks.
"""

from argparse import Namespace

import torch
from causal import finish, stage
from corpus import CONTEXT, VOCABULARY, prepare
from transformers import MixtralConfig, MixtralForCausalLM

SHAPE = dict(
    hidden_size=192,
    intermediate_size=256,  # of each expert
    num_hidden_layers=6,
    num_attention_heads=6,
    num_key_value_heads=6,
    num_local_experts=8,
    num_experts_per_tok=2,
)


def main(args: Namespace) -> None:
    """Trains and ships it."""
    texts = prepare(args.corpus, args.work)
    torch.manual_seed(0)
    model = MixtralForCausalLM(
        MixtralConfig(
            **SHAPE,
            vocab_size=VOCABULARY,
            max_position_embeddings=CONTEXT,
            sliding_window=None,
            tie_word_embeddings=True,
            output_router_logits=True,  # so that the loss asks for experts that are used alike
            router_aux_loss_coef=0.01,
            bos_token_id=0,
            eos_token_id=0,
            pad_token_id=1,
        )
    )
    curve = stage(model, texts, args, "llama-tiny-moe", 12, tasks=0.25)
    model.config.output_router_logits = False
    finish(model, texts, "llama-tiny-moe", curve, architecture="Mixtral")
