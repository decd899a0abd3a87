"""The losses of a shipped model on a few texts that are in no corpus. They are written into its facts when it
is shipped, and a test compares them to a thousandth, so that weights, tokenizer and configuration are the
intended ones.

    python -m explorer.training.check          writes them for every shipped model
"""

import json
from pathlib import Path

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from decoders.heads import DraftModule, Medusa, Taps, take_taps
from decoders.models import architectures, lora, rounded_change
from decoders.models.catalog import kind
from decoders.models.flow import FlowModel
from decoders.models.loading import load
from decoders.models.model_files import tokenizer_of
from decoders.models.model_heads import load_heads
from decoders.packages import assets

MODELS = assets() / "models"
TEXTS = (
    "Nora had a small grey kite. One windy morning she ran up the hill, and the kite pulled at her hand. "
    '"Do not fly away," she said. The kite only laughed and climbed higher.',
    "The old miller owned two donkeys, one quick and one slow. The quick one ate by the road and came home "
    "late. The slow one never stopped, and was always first at the gate.",
    "copy: 7 5 fish 9 => 7 5 fish 9",
)


def checked(module: torch.nn.Module, taps: Taps) -> float:
    """The loss of a draft module on one text; for heads that score, the mean of all scores."""
    if not isinstance(module, DraftModule):
        return module.along(taps).mean().item()
    loss = Medusa.loss if module.kind == "fragments" else type(module).loss  # no text has its marks
    return loss(module, taps).item()


@torch.no_grad()
def check_losses(folder: Path) -> list[float]:
    """Mean negative log-likelihood in nats per token of each text, under the model in `folder` as plain
    transformers loads it, in float32 (an encoder-decoder also reads the text as its source). For draft heads,
    whose target is in a neighbouring folder, each text's losses of all modules.
    """
    config = json.loads((folder / "config.json").read_text("utf-8"))
    if "modules" in config:
        target = load(str(folder.parent / config["target"]), "cpu", "float32")
        heads = load_heads(str(folder), target).values()
        layers = tuple({layer for module in heads for layer in module.reads})
        taps = [take_taps(target.model, torch.tensor([target.encode(text)]), layers) for text in TEXTS]
        return [round(checked(module, read), 5) for read in taps for module in heads]
    architectures.register()
    tokenizer = tokenizer_of(folder)
    if lora.is_adapter(folder):
        return text_losses(lora.with_low_rank_change(folder, torch.float32).eval(), tokenizer)
    if rounded_change.is_change(folder):
        return text_losses(rounded_change.with_change(folder, torch.float32).eval(), tokenizer)
    if kind(config) == "flow":
        return flow_losses(FlowModel.from_pretrained(folder, dtype=torch.float32).eval(), tokenizer)
    loader = AutoModelForSeq2SeqLM if kind(config) == "seq2seq" else AutoModelForCausalLM
    return text_losses(loader.from_pretrained(folder, dtype=torch.float32).eval(), tokenizer)


def text_losses(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> list[float]:
    """The loss of each text under a model."""
    rows = [torch.tensor([tokenizer(text)["input_ids"]]) for text in TEXTS]
    return [round(model(input_ids=row, labels=row).loss.item(), 5) for row in rows]


def flow_losses(model: FlowModel, tokenizer: PreTrainedTokenizerBase) -> list[float]:
    """The loss of each text's beginning, one canvas long, at t 0.5, as source and as canvas."""
    losses = []
    for text in TEXTS:
        row = torch.tensor([tokenizer(text)["input_ids"][: model.config.canvas]])
        seen = torch.ones_like(row, dtype=torch.bool)
        logits = model.write(row, torch.tensor([0.5]), model.read(row, seen), seen)
        losses.append(round(torch.nn.functional.cross_entropy(logits[0], row[0]).item(), 5))
    return losses


def write(folder: Path) -> None:
    """Adds the losses to the facts of a shipped model."""
    facts = json.loads((folder / "facts.json").read_text("utf-8"))
    facts["check_losses"] = check_losses(folder)
    (folder / "facts.json").write_text(json.dumps(facts, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    for path in sorted(MODELS.glob("*/facts.json")):
        write(path.parent)
        print(path.parent.name, json.loads(path.read_text("utf-8"))["check_losses"])
