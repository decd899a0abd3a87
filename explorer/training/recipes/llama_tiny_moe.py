"""llama-tiny-moe: a mixture of experts of the Mixtral architecture, with eight experts per layer of which two
are active, trained on stories and tasks. It begins with the first half of the target, up to an early exit;
each expert begins with some of its neurons (sparse upcycling, Komatsuzaki et al. 2023).
"""

from argparse import Namespace

import torch
from transformers import LlamaForCausalLM, MixtralConfig, MixtralForCausalLM

from explorer.corpus import CONTEXT, prepare
from explorer.training.loop import trained
from explorer.training.stages import finish, stage

TARGET, NAME = "llama-tiny", "llama-tiny-moe"
LAYERS = 6  # the first ones of the target
SHAPE = dict(
    intermediate_size=144,  # neurons of each expert
    num_local_experts=8,
    num_experts_per_tok=2,
)
SCALE = 3.0  # two experts, each weighed by a half, have about a quarter of the target's neurons


def upcycled(target: LlamaForCausalLM) -> MixtralForCausalLM:
    """A mixture whose embeddings, attention and norms are those of the target's first layers, and whose
    experts hold overlapping parts of its neurons, their outputs SCALE times as large. Routers are fresh.
    """
    torch.manual_seed(0)
    shared = ("vocab_size", "hidden_size", "num_attention_heads", "num_key_value_heads", "rms_norm_eps")
    config = MixtralConfig(
        **SHAPE,
        **{name: getattr(target.config, name) for name in shared},
        num_hidden_layers=LAYERS,
        max_position_embeddings=CONTEXT,
        rope_parameters=target.config.rope_parameters,
        sliding_window=None,
        tie_word_embeddings=True,
        output_router_logits=True,  # so that the loss asks for experts that are used alike
        router_aux_loss_coef=0.01,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=1,
    )
    model = MixtralForCausalLM(config).to(target.device)
    model.load_state_dict({k: v for k, v in target.state_dict().items() if ".mlp." not in k}, strict=False)
    neurons, experts = target.config.intermediate_size, config.num_local_experts
    for layer, old in zip(model.model.layers, target.model.layers, strict=False):
        new = layer.mlp.experts
        for expert in range(experts):
            part = (torch.arange(config.intermediate_size) + expert * neurons // experts) % neurons
            halves = [old.mlp.gate_proj.weight[part], old.mlp.up_proj.weight[part]]
            new.gate_up_proj.data[expert] = torch.cat(halves)
            new.down_proj.data[expert] = SCALE * old.mlp.down_proj.weight[:, part]
    return model


def main(args: Namespace) -> None:
    """Trains and ships it."""
    texts = prepare(args.corpus, args.work)
    model = upcycled(trained(TARGET))
    curve = stage(model, texts, args, NAME, 2.5, tasks=0.25)
    model.config.output_router_logits = False
    finish(model, texts, NAME, curve, architecture="Mixtral")
