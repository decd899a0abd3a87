"""Text that the shipped target wrote itself after beginnings of stories and tasks: what drafts learn from."""

from pathlib import Path

import numpy as np
import torch
from transformers import LlamaForCausalLM

from decoders.models.catalog import TARGET
from decoders.models.head_files import weights_sha256
from explorer.corpus import Texts, story_rows, task_rows
from explorer.training import loop
from explorer.training.modules import write_rows

WRITERS, PROMPT = 64, 24  # rows that are written at a time, and tokens that they begin with
TEMPERATURES = (0.0, 0.5, 1.0)  # a draft is asked for guesses at all of them


def own_text(
    target: LlamaForCausalLM,
    texts: Texts,
    work: Path,
    tokens: float,
    temperature: float = 1.0,
    batch: int | None = None,
) -> np.ndarray:
    """Rows [R, ROW] of at least `tokens` tokens that the shipped target wrote, `batch` at a time (WRITERS if
    None), after beginnings of stories and tasks; kept in `work` under its weights, from where an interrupted
    run, or another recipe, continues.
    """
    batch = batch or WRITERS
    path = work / f"own-text-{temperature:g}-{weights_sha256(loop.MODELS / TARGET)[:8]}.npy"

    def begin(written: int) -> torch.Tensor:
        stories = story_rows(texts.stories, written, batch * 3 // 4)
        tasks, _ = task_rows(texts.tokenizer, f"own {written}", batch // 4)
        return torch.cat([stories, tasks])[:, :PROMPT]

    return write_rows(target, begin, path, tokens, temperature)


def at_all_temperatures(target: LlamaForCausalLM, texts: Texts, work: Path, tokens: float) -> np.ndarray:
    """Rows [R, ROW], at least `tokens` tokens at each of TEMPERATURES."""
    return np.concatenate([own_text(target, texts, work, tokens, t) for t in TEMPERATURES])
