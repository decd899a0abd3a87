"""A masked-diffusion model given as a table: the exact distribution of every masked position under a known
joint distribution. The oracle for tests, for the theory of parallel decoding, and for lessons.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from decoders.engine.canvas_scorer import CanvasScorer
from decoders.engine.capabilities import Capability
from decoders.engine.engine import Work
from decoders.engine.tree import Tree

Joint = Mapping[tuple[int, ...], float]  # an answer's tokens -> its probability


@dataclass(eq=False)
class TabularDenoiser:
    """Answers of one length over tokens 0..vocabulary-1, independent of the prompt; `vocabulary` is the
    mask's id.
    """

    joint: Joint
    vocabulary: int
    eos: frozenset[int] = frozenset()
    name: str = "table"
    note: str | None = None
    companions: dict[str, Any] = field(default_factory=dict)
    kind, remedy, model_kind = "a table", "a masked-diffusion model", "diffusion"
    generation: dict = field(default_factory=dict)
    shift = False
    chat_template = ""

    def __post_init__(self) -> None:
        self.answers = torch.tensor(list(self.joint), dtype=torch.long)  # [N, L]
        self.weights = torch.tensor(list(self.joint.values()), dtype=torch.float64)
        self.weights /= self.weights.sum()
        self.mask, self.context = self.vocabulary, 1 << 30

    @property
    def engine(self) -> "TabularDenoiser":
        return self

    @property
    def token_key(self) -> str:
        """As `loaded_model.LoadedModel.token_key`."""
        return f"[] {self.vocabulary}"

    def narrower(self, rows: int) -> Any:
        """Itself: each of its columns stands for a token."""
        return self

    def gives(self, capability: Capability) -> bool:
        """Whether it can give this."""
        return capability is Capability.FULL_DISTRIBUTION

    def companion(self, wanted: str) -> Any:
        """As `loaded_model.LoadedModel.companion`."""
        return self if wanted == self.model_kind else self.companions.get(wanted)

    def attach(self, tree: Tree) -> "TabularScorer":
        """A scorer as `masked_engine.Denoiser`."""
        return TabularScorer(self)

    def bytes_of(self, token: int) -> bytes:
        """Letters, and an underscore for the mask."""
        return b"_" if token == self.mask else chr(97 + token).encode()

    def encode(self, text: str) -> list[int]:
        """Token ids of a text of such letters."""
        return [(ord(letter) - 97) % self.vocabulary for letter in text]

    def encode_after(self, before: list[int], text: str) -> list[int]:
        """Token ids of a text after others; spaces are ignored."""
        return self.encode(text.strip())

    def marginals(self, answer: list[int]) -> torch.Tensor:
        """Probabilities [L, V] of every position given the unmasked tokens of `answer`; uniform if these have
        probability 0 in the joint distribution.
        """
        known = torch.tensor(answer)
        fits = ((self.answers == known) | (known == self.mask)).all(1)
        weights = self.weights * fits
        if not weights.sum():
            return torch.full((len(answer), self.vocabulary), 1 / self.vocabulary, dtype=torch.float64)
        one_hot = torch.nn.functional.one_hot(self.answers, self.vocabulary).double()  # [N, L, V]
        return torch.einsum("n,nlv->lv", weights / weights.sum(), one_hot)


class TabularScorer(CanvasScorer):
    """Looks up canvases, whose last tokens are the answer."""

    def denoise(self, canvases: list[list[int]], start: int, stop: int) -> torch.Tensor:
        """Log-probabilities [K, stop - start, V], as `masked_engine.Denoiser.denoise`."""
        self.work = Work(tokens=sum(map(len, canvases)), rows=len(canvases))
        length = self.engine.answers.shape[1]
        first = len(canvases[0]) - length
        rows = [self.engine.marginals(canvas[first:]) for canvas in canvases]
        return torch.stack(rows)[:, start - first : stop - first].log()

    def guess(self, tokens: list[int], count: int) -> torch.Tensor:
        """Log-probabilities [count, V] after a text, as `masked_engine.Denoiser.guess`. The text's last
        tokens are taken as the known part of the answer, at most all but `count` of its positions; if the
        text is shorter, the answer's first positions are masked.
        """
        length, mask = self.engine.answers.shape[1], self.engine.mask
        known = tokens[max(0, len(tokens) - (length - count)) :] if length > count else []
        canvas = [*[mask] * (length - len(known) - count), *known, *[mask] * count]
        return self.denoise([canvas], len(canvas) - count, len(canvas))[0]
