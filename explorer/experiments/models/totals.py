"""Arithmetic with many right answers: digits from 0 to 2 with a given total, and a small masked-diffusion
model that is trained on it. The joint distribution of the answers is known.
"""

import random
from itertools import product

import torch
from tokenizers import Regex, Tokenizer, pre_tokenizers
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

from decoders.models.loaded_model import LoadedModel
from explorer.experiments.models.small import fit
from explorer.experiments.models.small_llama import small_llama
from explorer.tasks import Grade, Problem, Task

DIGITS, HIGHEST = 8, 2  # digits of an answer, and the highest digit
SYMBOLS = [*"0123456789=", "<mask>"]
EQUALS, MASK = SYMBOLS.index("="), SYMBOLS.index("<mask>")
WIDTH, LAYERS, HEADS = 64, 2, 2
EACH = 400  # training texts of each total


def answers(total: int) -> list[tuple[int, ...]]:
    """All lists of digits with this total; all of them are equally right."""
    return [some for some in product(range(HIGHEST + 1), repeat=DIGITS) if sum(some) == total]


def problem(total: int) -> Problem:
    """`09=` -> eight digits whose total is nine."""
    return Problem("total", f"{total:02d}=", "", {"total": total})


def check(problem: Problem, text: str) -> Grade:
    """Whether there are as many digits as requested, with this total."""
    total = sum(map(int, text)) if text.isdecimal() and len(text) == DIGITS else None
    return Grade(total == problem.facts["total"], f"The total is {total}.")


TASK = Task(
    "total", "Digits with a given total.", lambda rng: problem(rng.randint(0, DIGITS * HIGHEST)), check
)
PROBLEMS = [problem(total) for total in range(DIGITS * HIGHEST + 1)]


def symbols() -> PreTrainedTokenizerFast:
    """A token for each symbol."""
    words = Tokenizer(WordLevel({symbol: at for at, symbol in enumerate(SYMBOLS)}))
    words.pre_tokenizer = pre_tokenizers.Split(Regex(""), "isolated")
    return PreTrainedTokenizerFast(tokenizer_object=words, mask_token="<mask>")


def texts(each: int, seed: int = 0) -> torch.Tensor:
    """`each` right texts [R, T] of every total, prompt and answer, with uniformly sampled answers."""
    rng, rows = random.Random(seed), []
    for one in PROBLEMS:
        begin = [SYMBOLS.index(symbol) for symbol in one.prompt]
        rows += [[*begin, *some] for some in rng.choices(answers(one.facts["total"]), k=each)]
    return torch.tensor(rows)


def denoising(model: torch.nn.Module, rows: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """The loss of rows [B, T]: each row draws a share, and each token of its answer is masked with that
    probability; mean cross-entropy of the masked ones.
    """
    share = torch.rand(len(rows), 1, generator=generator)
    hidden = torch.rand(rows.shape, generator=generator) < share
    hidden[:, :-DIGITS] = False
    everywhere = torch.zeros(1, 1, rows.shape[1], rows.shape[1])
    logits = model(input_ids=rows.masked_fill(hidden, MASK), attention_mask=everywhere).logits
    return torch.nn.functional.cross_entropy(logits[hidden], rows[hidden])


def trained(steps: int, batch: int) -> LoadedModel:
    """A model trained on this many batches."""
    model = small_llama(len(SYMBOLS), WIDTH, LAYERS, HEADS)
    generator = torch.Generator().manual_seed(1)
    fit(
        model.parameters(),
        lambda some: denoising(model, some, generator),
        texts(EACH),
        steps,
        batch,
        rate=4e-3,
    )
    model.config.mask_token_id = MASK
    return LoadedModel("small-totals", model.eval().requires_grad_(False), symbols())
