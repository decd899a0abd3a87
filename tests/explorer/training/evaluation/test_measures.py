"""What the measuring scripts count."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from transformers import PreTrainedTokenizerFast

from explorer.tasks import problems
from explorer.training.answers import accuracy
from explorer.training.evaluation.measure_diffusion import CANVAS, MASK_ID, unmasked
from explorer.training.evaluation.measure_tasks import voted

ASSETS = Path(__file__).resolve().parents[4] / "assets"


def test_votes_are_counted_by_the_last_line_and_the_first_text_stands_for_all():
    assert voted(["2+2=4\nanswer 4", "answer 5", "1+3=4\nanswer 4 "]) == "2+2=4\nanswer 4"
    asked = problems("copy", 4, 1)
    assert accuracy(asked, [asked[0].answer, "no", asked[2].answer, asked[3].answer]) == 0.75


@pytest.mark.parametrize("tokens", [1, 3, 8])
def test_a_canvas_is_filled_block_by_block_and_ends_where_the_model_says(tokens):
    """A model that knows its texts: every answer comes out whole, in the quota's forwards."""
    tokenizer = PreTrainedTokenizerFast.from_pretrained(ASSETS / "models" / "llama-tiny")
    prompts = ["copy: 7 5 fish =>", "upper: fish and dog =>"]
    answers = [" 7 5 fish", " " + "FISH AND DOG " * 3]
    known = torch.zeros(2, CANVAS, dtype=torch.long)
    for row, prompt, answer in zip(known, prompts, answers, strict=True):
        ids = tokenizer(prompt)["input_ids"] + tokenizer(answer)["input_ids"]
        row[: len(ids)] = torch.tensor(ids)
    calls = []

    def oracle(input_ids, attention_mask):
        calls.append(int((input_ids == MASK_ID).sum()))
        return SimpleNamespace(logits=10.0 * torch.nn.functional.one_hot(known, MASK_ID + 1).float())

    assert unmasked(oracle, tokenizer, prompts, tokens) == answers
    assert all(a - b <= 2 * tokens for a, b in zip(calls, calls[1:], strict=False))
    longest = len(tokenizer(answers[1])["input_ids"]) + 1
    assert len(calls) == -(-longest // 32) * -(-32 // tokens)
