"""Training data for a model that announces flaws: toy programs with a label in front of flawed lines."""

import random

from transformers import PreTrainedTokenizerFast

from explorer.corpus import END, PAD
from explorer.tasks.file_programs import LABEL, make_program, make_task, prompt_of
from explorer.training.data import Rows, document, padded

ADDED = (LABEL,)


class Programs:
    """Makes labelled programs after their tasks. tokenizer: one that knows ADDED."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast):
        self.tokenizer = tokenizer
        self.end, self.pad = (tokenizer.convert_tokens_to_ids(token) for token in (END, PAD))

    def cut(self, text: str) -> list[int]:
        """Token ids of a text."""
        return self.tokenizer(text)["input_ids"]

    def batch(self, seed: str, count: int) -> Rows:
        """(rows, labels), both [count, T]; the task has no loss."""
        rng, documents = random.Random(f"flaws {seed}"), []
        for _ in range(count):
            task = make_task(rng)
            answer = [*self.cut(make_program(rng, task)), self.end]
            documents.append(document(self.cut(prompt_of(task)), answer))
        return padded(documents, self.pad)
