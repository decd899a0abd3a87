"""Runs only some of the attention and MLP blocks of a transformers model (layers.py).

A block that is skipped adds nothing to the residual stream; the last norm and the head always run. In a group
of layers, all attentions may read the input of the first. The engine decides which keys and values may be
kept.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import torch

from decoders.engine.layers import Layers
from decoders.engine.tree import Tree


class Blocks:
    """The blocks of one transformers model. Raises AttributeError if its modules do not have the usual
    names; `attention` does where a layer has another block in its place.
    """

    def __init__(self, model: torch.nn.Module):
        base = model.base_model
        self.layers = base.layers if hasattr(base, "layers") else base.h
        self.mlp = [layer.mlp for layer in self.layers]
        norms = (getattr(base, name, None) for name in ("norm", "ln_f", "final_layer_norm"))
        self.last_norm = next((norm for norm in norms if norm is not None), None)
        self.head = model.get_output_embeddings()

    @cached_property
    def attention(self) -> list[torch.nn.Module]:
        """The attention of each layer."""
        return [layer.self_attn if hasattr(layer, "self_attn") else layer.attn for layer in self.layers]

    @torch.inference_mode()
    def exit_logits(self, states: torch.Tensor) -> torch.Tensor:
        """Logits [N, V] of the model's last norm and head for the stream [N, d] after any layer."""
        return self.head(self.last_norm(states))

    def norm_of(self, layer: int) -> torch.nn.Module:
        """The norm in front of a layer's attention."""
        layer_module = self.layers[layer]
        return layer_module.input_layernorm if hasattr(layer_module, "input_layernorm") else layer_module.ln_1

    @contextmanager
    def running(
        self, part: Layers, states: torch.Tensor | None = None, starts: list[int] | None = None
    ) -> Iterator[list[torch.Tensor]]:
        """While this is open, forwards of the model run only `part`. Yields a list that each forward fills
        with the residual streams [B, T, d] before layer 0 and after each layer.

        states [B, T, d]: the stream that enters layer 0 in place of the embeddings. starts: for each row of
        the batch, the place from which blocks are skipped (all run before it); `states` [B, 1, d] then
        replace the stream at that place alone.
        """
        undo: list[Callable[[], None]] = []
        stream: list[torch.Tensor] = []
        skipped = [self.attention[i] for i in range(len(self.layers)) if i not in part.attention]
        skipped += [m for i, m in enumerate(self.mlp) if i not in part.mlp]
        for module in skipped:
            if starts is None:
                undo.append(silenced(module, pair=module not in self.mlp))
            else:
                undo.append(module.register_forward_hook(silent_from(starts)).remove)
        if states is not None:
            hook = given(states, starts)
            undo.append(self.layers[0].register_forward_pre_hook(hook, with_kwargs=True).remove)

        def enters(module, inputs, named) -> None:
            stream.append(inputs[0] if inputs else named["hidden_states"])

        def leaves(module, inputs, output) -> None:
            stream.append(output[0] if isinstance(output, tuple) else output)

        undo.append(self.layers[0].register_forward_pre_hook(enters, with_kwargs=True).remove)
        undo += [layer.register_forward_hook(leaves).remove for layer in self.layers]
        for i in sorted(part.early):  # `stream[k]` is what enters layer k
            hook = taken_from(stream, i - (i - 1) % part.group, starts)
            undo.append(self.norm_of(i).register_forward_pre_hook(hook).remove)
        try:
            yield stream
        finally:
            for back in undo:
                back()


def silenced(module: torch.nn.Module, pair: bool) -> Callable[[], None]:
    """Makes `module` return zeros without computing anything; returns a function that undoes this."""
    before = module.__dict__.get("forward")

    def nothing(*inputs: Any, **named: Any) -> torch.Tensor | tuple[torch.Tensor, None]:
        zeros = torch.zeros_like(inputs[0] if inputs else named["hidden_states"])
        return (zeros, None) if pair else zeros

    def undo() -> None:
        if before is None:
            del module.forward
        else:
            module.forward = before

    module.forward = nothing
    return undo


def silent_from(starts: list[int]) -> Callable:
    """A hook that zeroes a block's output [B, T, d] from its row's start on."""

    def hook(module, inputs, output) -> torch.Tensor | tuple:
        hidden = (output[0] if isinstance(output, tuple) else output).clone()
        for row, start in enumerate(starts):
            hidden[row, start:] = 0.0
        return (hidden, *output[1:]) if isinstance(output, tuple) else hidden

    return hook


def taken_from(stream: list[torch.Tensor], layer: int, starts: list[int] | None) -> Callable:
    """A hook that makes a norm read the input of `layer` in place of its own, from each row's start on."""

    def hook(module, inputs) -> tuple:
        if starts is None:
            return (stream[layer], *inputs[1:])
        new = inputs[0].clone()
        for row, start in enumerate(starts):
            new[row, start:] = stream[layer][row, start:]
        return (new, *inputs[1:])

    return hook


def given(states: torch.Tensor, starts: list[int] | None) -> Callable:
    """A hook that replaces a layer's input by `states`, or only the place in `starts` of each row."""

    def hook(module, inputs, named) -> tuple[tuple, dict]:
        new = states
        if starts is not None:
            new = (named["hidden_states"] if "hidden_states" in named else inputs[0]).clone()
            new[range(len(starts)), starts] = states[:, 0]
        if "hidden_states" in named:
            return inputs, {**named, "hidden_states": new}
        return (new, *inputs[1:]), named

    return hook


def trial(engine) -> bool:
    """Whether some layers of this engine's model can be run alone.

    Found out by a trial: running the first layer and then the others must give the whole model's numbers.
    """
    tree = Tree([token % engine.vocabulary for token in (1, 2, 3)])
    a = tree.add(2, 4 % engine.vocabulary)
    b, first = tree.add(a, 5 % engine.vocabulary), Layers.first(1, engine.layer_count)
    scorer = engine.attach(tree)
    try:
        scorer.score([2])
        whole = scorer.score([a, b])
        scorer.release([b, a])
        scorer.score_part([a], first)
        scorer.score_part([b], first)
        ours = scorer.score([a, b])
    except (AttributeError, TypeError, ValueError, RuntimeError, IndexError, KeyError):
        return False
    finally:
        scorer.close()
    return agree(ours, whole, engine.dtype)


def agree(ours: torch.Tensor, theirs: torch.Tensor, dtype: torch.dtype) -> bool:
    """Whether two ways to compute logits agree, up to the rounding of a dtype. Where both give no number, as
    with a damaged weight, they agree: the lane that meets it says so.
    """
    ours, theirs = ours.nan_to_num(), theirs.nan_to_num()
    tolerance = 1e-3 if dtype in (torch.float32, torch.float64) else 5e-2
    return bool((ours - theirs).abs().max() <= tolerance * (1 + theirs.abs().max()))
