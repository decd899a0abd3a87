"""How the accuracy of the masked-diffusion model falls when it commits more tokens per forward: on tasks
whose answer follows from the prompt token by token, and on tasks whose tokens must agree with each other.
"""

from pathlib import Path

import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from explorer.tasks import HELD_OUT_SEED, Problem, problems
from explorer.training.answers import ACCURACIES, accuracy
from explorer.training.evaluation.findings import Findings
from explorer.training.recipes.llama_tiny_diffusion import CANVAS

BLOCK = 32  # tokens decoded together; blocks are filled from left to right
TOKENS_A_STEP = (1, 2, 4, 8)
INDEPENDENT = ("copy", "reverse", "replace", "translate", "upper")
DEPENDENT = ("shuffle", "latin", "column_sum", "json", "sort")
END, MASK_ID = 0, 4096
PROBLEMS = 40


@torch.no_grad()
def unmasked(
    model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, prompts: list[str], tokens: int
) -> list[str]:
    """Answers of a canvas that is filled block by block, in each forward the `tokens` masked positions of
    highest confidence (LLaDA, Nie et al. 2025, low-confidence remasking), until a block contains an end.
    """
    asked = tokenizer(prompts)["input_ids"]
    rows = torch.full((len(asked), CANVAS), MASK_ID)
    for row, prompt in zip(rows, asked, strict=True):
        row[: len(prompt)] = torch.tensor(prompt)
    given = torch.tensor([len(prompt) for prompt in asked])[:, None]
    everywhere, places = torch.zeros(1, 1, CANVAS, CANVAS), torch.arange(CANVAS)[None]
    for block in range(CANVAS // BLOCK):
        inside = (places >= given + block * BLOCK) & (places < given + (block + 1) * BLOCK)
        ended = ((rows == END) & (places >= given)).any(1, keepdim=True)
        inside &= ~ended
        for _ in range(-(-BLOCK // tokens)):
            masked = inside & (rows == MASK_ID)
            if not masked.any():
                break
            logits = model(input_ids=rows, attention_mask=everywhere).logits
            logits[..., MASK_ID] = -torch.inf
            sure, best = logits.softmax(-1).max(-1)
            chosen = sure.masked_fill(~masked, -1).topk(tokens, dim=1).indices
            settled = torch.zeros_like(masked).scatter_(1, chosen, True) & masked
            rows = torch.where(settled, best, rows)
    return [tokenizer.decode(until_end(row[len(p) :].tolist())) for row, p in zip(rows, asked, strict=True)]


def until_end(tokens: list[int]) -> list[int]:
    """The tokens before the first end or mask."""
    return tokens[: next((i for i, token in enumerate(tokens) if token in (END, MASK_ID)), len(tokens))]


def fitting(name: str, count: int, tokenizer: PreTrainedTokenizerFast) -> list[Problem]:
    """The first problems of a task whose prompt leaves half of the canvas for the answer."""
    made = problems(name, 4 * count, HELD_OUT_SEED)
    return [p for p in made if len(tokenizer(p.prompt)["input_ids"]) <= CANVAS // 2][:count]


def measure(folder: Path, corpus: Path) -> Findings:
    """Task -> tokens per step -> accuracy."""
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    result = {}
    for name in INDEPENDENT + DEPENDENT:
        asked = fitting(name, PROBLEMS, tokenizer)
        texts = {n: unmasked(model, tokenizer, [p.prompt for p in asked], n) for n in TOKENS_A_STEP}
        result[name] = {f"{n} per step": accuracy(asked, answers) for n, answers in texts.items()}
        print(f"{name:12}", result[name], flush=True)
    return Findings({ACCURACIES: result})
