"""A watermark in the text: which tokens are green, and the z-score that a detector with the key computes.

Kirchenbauer et al. (2023), "A Watermark for Large Language Models" and "On the Reliability of Watermarks":
before each token, a hash of the preceding tokens splits the vocabulary, and green tokens get a bias. The
processor is transformers' own.
"""

import copy
import math
from functools import lru_cache
from typing import Any

import torch
from transformers.generation.logits_process import WatermarkLogitsProcessor

from decoders.logits.processor_order import stages
from decoders.observer import Observer
from decoders.trace.scores import ScoreName

GREEN, RED = "green", "red"


def processor_of(parameters: dict, vocabulary: int, device: torch.device | str) -> WatermarkLogitsProcessor:
    """The watermark processor of these parameters, for logits over `vocabulary` tokens."""
    processor = copy.copy(
        _made(
            vocabulary,
            device,
            greenlist_ratio=parameters.get("watermark_ratio", 0.25),
            bias=float(parameters["watermark_bias"]),
            hashing_key=parameters.get("watermark_key", 15485863),
            seeding_scheme=parameters.get("watermark_scheme", "lefthash"),
            context_width=parameters.get("watermark_context", 1),
        )
    )
    processor.rng = torch.Generator(device=device)  # seeded before each use
    return processor


@lru_cache(maxsize=4)
def _made(vocabulary: int, device: torch.device | str, **settings: Any) -> WatermarkLogitsProcessor:
    """A processor shared by all callers with these settings: its table of a million shuffled numbers takes 8
    MB, and longer to make than a small model's text. Nothing writes to it.
    """
    return WatermarkLogitsProcessor(vocabulary, device, **settings)


def is_green(processor: WatermarkLogitsProcessor, text: list[int]) -> bool | None:
    """Whether the last token of a text is green at its position; None if too few tokens precede it."""
    seeds = text if processor.seeding_scheme == "selfhash" else text[:-1]
    if len(text) <= processor.context_width:
        return None
    ids = torch.tensor(seeds[-processor.context_width :], device=processor.fixed_table.device)
    return bool((processor._get_greenlist_ids(ids) == text[-1]).any())


def z_score(green: int, tokens: int, ratio: float) -> float:
    """By how many standard deviations `green` of `tokens` exceeds the mean `ratio * tokens` without a
    watermark.
    """
    return (green - ratio * tokens) / math.sqrt(tokens * ratio * (1 - ratio))


def detector_of(shaping: dict[str, Any], vocabulary: int) -> "Detector | None":
    """The detector of a lane with these processors; None if none of them is a watermark."""
    if "watermark_bias" not in stages(shaping):
        return None
    return Detector(processor_of(shaping, vocabulary, "cpu"), shaping["watermark_ratio"])


class Detector(Observer):
    """Counts the green tokens of a text as they are committed; ratio: of the vocabulary that is green."""

    def __init__(self, processor: WatermarkLogitsProcessor, ratio: float):
        self.processor, self.ratio = processor, ratio
        self.tokens = self.green = 0

    def committed(self, lane: Any, nodes: list[int]) -> None:
        """Records whether each node is green, with the z-score so far; a note once the text is whole."""
        for node in nodes:
            green = is_green(self.processor, lane.tree.text(node))
            if green is None:
                continue
            self.tokens, self.green = self.tokens + 1, self.green + green
            z = z_score(self.green, self.tokens, self.ratio)
            lane.record_measure(
                node, ScoreName.WATERMARK, z, level=GREEN if green else RED, green=float(green)
            )
        if self.tokens and not lane.more:
            lane.note(self.sentence())

    def sentence(self) -> str:
        """What a detector with the key finds in the whole text."""
        z = z_score(self.green, self.tokens, self.ratio)
        share = f"{self.ratio:.0%} is expected by chance"
        return f"Watermark: {self.green} of {self.tokens} tokens are green, {share}; z = {z:.2f}."
