"""How many held-out problems llama-tiny-seq2seq solves greedily."""

from pathlib import Path

import torch
from transformers import PreTrainedTokenizerFast, T5ForConditionalGeneration

from explorer.corpus import read_stories
from explorer.tasks import Problem
from explorer.training.answers import ACCURACIES, accuracy
from explorer.training.data.sentences import unread_sentences
from explorer.training.evaluation.findings import Findings
from explorer.training.loop import device
from explorer.training.recipes.llama_tiny_seq2seq import PAD, encoded, held_out

LONGEST = 64  # tokens of an answer


def answered(
    model: T5ForConditionalGeneration, tokenizer: PreTrainedTokenizerFast, asked: list[Problem]
) -> list[str]:
    """The model's greedy answer to each problem."""
    rows, _ = encoded(tokenizer, asked)
    rows = rows.to(model.device)
    wrote = model.generate(input_ids=rows, attention_mask=(rows != PAD).long(), max_new_tokens=LONGEST)
    return tokenizer.batch_decode(wrote, skip_special_tokens=True)


@torch.no_grad()
def measure(folder: Path, corpus: Path) -> Findings:
    """Task -> share solved greedily."""
    stories, held = read_stories(corpus)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    model = T5ForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).to(device()).eval()
    result = {
        name: {"greedy": accuracy(asked, answered(model, tokenizer, asked))}
        for name, asked in held_out(unread_sentences(stories, held))
    }
    print(result, flush=True)
    return Findings({ACCURACIES: result})
