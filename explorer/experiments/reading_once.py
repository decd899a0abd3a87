"""What does an encoder save by reading the source once?

Return of the Encoder compares models of one size: a decoder whose every layer reads source and answer, and an
encoder with two thirds of the layers in front of a decoder with one third. Here the shipped encoder-decoder,
six layers and three, is compared with the target cut off after nine of its layers, where it was trained to
exit, and with the whole target. Work is tokens read, summed over layers: up to the first token, and for the
right answer. Measured in turn: the time to the first token. In the chart: how many numbers are kept as keys
and values. The table also has the share of held-out problems that each solves, of the tasks that both have
learned. The models were not trained on equally much text, and none was distilled from another.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from statistics import fmean, median
from time import perf_counter

import torch
from transformers import PreTrainedTokenizerFast, T5ForConditionalGeneration

from decoders.engine.layers import Layers
from decoders.engine.partial_forward import Blocks
from decoders.models.catalog import with_weights
from explorer.experiments import Chart, Line, Models, Result, progress
from explorer.experiments.basis import Basis, by_shares
from explorer.experiments.reading import percent, rows_of
from explorer.tasks import HELD_OUT_SEED, TASKS, Problem, problems
from visualizers.analysis.calibration import wilson

PAPERS = ("return-of-the-encoder",)
NAME, LEFT_AFTER = "llama-tiny-seq2seq", 9
LEARNED = ("correct", "translate", "translate_back", "json", "facts", "opposite", "copy")
COUNT, LONGEST, TIMED, CURVE = 20, 64, 6, 96  # TIMED: problems; CURVE: tokens of the longest answer drawn


@cache
def reader() -> tuple[T5ForConditionalGeneration, PreTrainedTokenizerFast]:
    """The shipped encoder-decoder and its tokenizer."""
    model = T5ForConditionalGeneration.from_pretrained(with_weights(NAME), dtype=torch.float32).eval()
    return model, PreTrainedTokenizerFast.from_pretrained(with_weights(NAME))


@contextmanager
def counted(layers: list[torch.nn.Module]) -> Iterator[list[int]]:
    """While this is open: a list of how many tokens each call of one of `layers` reads."""
    counts: list[int] = []

    def read(module, inputs, named) -> None:
        states = inputs[0] if inputs else named["hidden_states"]
        counts.append(states.shape[0] * states.shape[1])

    hooks = [layer.register_forward_pre_hook(read, with_kwargs=True) for layer in layers]
    try:
        yield counts
    finally:
        for hook in hooks:
            hook.remove()


class Writer:
    """One of the models: `depth` layers read a token of an answer, `reads` layers one of the source."""

    def __init__(self, model, tokenizer, layers: list[torch.nn.Module], part: Layers | None = None):
        self.model, self.tokenizer, self.part = model, tokenizer, part
        self.layers = layers  # the layers in use

    @torch.inference_mode()
    def write(self, prompt: str, tokens: int, use_cache: bool = True) -> list[int]:
        """Decodes up to this many tokens, greedily."""
        ids = torch.tensor([self.tokenizer(prompt)["input_ids"]], device=self.model.device)
        running = nullcontext() if self.part is None else Blocks(self.model).running(self.part)
        with running:
            wrote = self.model.generate(
                input_ids=ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=tokens,
                do_sample=False,
                use_cache=use_cache,
                pad_token_id=self.tokenizer.pad_token_id or 0,
            )[0]
        return wrote[1 if self.model.config.is_encoder_decoder else ids.shape[1] :].tolist()

    def work(self, prompt: str, tokens: int) -> int:
        """Tokens read, summed over the layers, to write `tokens` tokens after a prompt."""
        with counted(self.layers) as counts:
            self.write(prompt, tokens)
        return sum(counts)

    def answer(self, prompt: str) -> str:
        """The text of the model's answer."""
        return self.tokenizer.decode(self.write(prompt, LONGEST), skip_special_tokens=True)


def expected(reads: int, writes: int, n: int, m: int, apart: bool) -> int:
    """Layer-tokens of a source of n and an answer of m tokens. `apart`: the source has layers of its own, and
    each token of the answer is predicted from the one before it, the first from a start token; otherwise the
    first is predicted from the source, and the last is never read.
    """
    return reads * n + writes * m if apart else writes * (n + m - 1)


def kept(reads: int, writes: int, width: int, n: int, m: int, apart: bool) -> int:
    """Numbers kept as keys and values once m tokens are written: an encoder's layers keep none; a decoder
    after an encoder keeps those of the source once per layer, and those of its own text.
    """
    return 2 * width * writes * (n + m if apart else n + m - 1)


def writers(models: Models) -> dict[str, Writer]:
    """The three models, by their names in the table."""
    (model, tokenizer), target = reader(), models["target"]
    blocks, total = Blocks(target.model), target.model.config.num_hidden_layers
    left = Layers.first(min(LEFT_AFTER, total), total)
    return {
        "6 + 3": Writer(model, tokenizer, [*model.encoder.block, *model.decoder.block]),
        str(left.exit): Writer(target.model, target.tokenizer, list(blocks.layers)[: left.exit], left),
        "all": Writer(target.model, target.tokenizer, list(blocks.layers)),
    }


def first_tokens(named: dict[str, Writer], prompts: list[str]) -> dict[str, float]:
    """Seconds to the first token: the median over prompts, with the models taking turns."""
    took: dict[str, list[float]] = {name: [] for name in named}
    for prompt in progress.each([prompts[0], *prompts]):  # the first one is a warm-up
        for name, writer in named.items():
            start = perf_counter()
            writer.write(prompt, 1)
            took[name].append(perf_counter() - start)
    return {name: median(times[1:]) for name, times in took.items()}


def run(models: Models) -> Result:
    """One row per task."""
    named, table, right, timed = writers(models), [], {}, []
    (name, apart), (nine, decoder), (_, whole) = named.items()
    for task in progress.each(LEARNED, until=0.95):
        asked = problems(task, COUNT, HELD_OUT_SEED)
        shares = []
        for label, writer in progress.each(named.items()):
            hits = [TASKS[task].check(p, writer.answer(p.prompt)).right for p in progress.each(asked)]
            right.setdefault(label, []).extend(hits)
            shares.append(sum(hits) / len(hits))
        n = fmean(len(decoder.tokenizer(p.prompt)["input_ids"]) for p in asked)
        first = fmean(apart.work(p.prompt, 1) / decoder.work(p.prompt, 1) for p in asked)
        table.append([task, round(n), *shares, first, fmean(of_answer(apart, decoder, p) for p in asked)])
        timed += [p.prompt for p in asked[: max(1, TIMED // len(LEARNED))]]
    seconds = first_tokens(named, timed)
    columns = [
        "task",
        "source tokens",
        "right: 6 + 3",
        f"right: {nine} layers",
        "right: all layers",
        "work to the first token: ratio",
        "work for the answer: ratio",
    ]
    return Result(columns, table, sentences(named, right, seconds, table), chart(apart, decoder))


def of_answer(apart: Writer, decoder: Writer, problem: Problem) -> float:
    """The work of the encoder-decoder for the right answer and its end, relative to the decoder's."""
    config, deep = apart.model.config, len(decoder.layers)
    n, m = (len(decoder.tokenizer(text)["input_ids"]) for text in (problem.prompt, problem.answer))
    own = expected(config.num_layers, config.num_decoder_layers, n, m + 1, apart=True)
    return own / expected(deep, deep, n, m + 1, apart=False)


def sentences(named: dict[str, Writer], right: dict, seconds: dict[str, float], table: list) -> list[str]:
    """The conclusions, as sentences."""
    (_, apart), (nine, decoder), _ = named.items()
    solved = []
    for label, hits in right.items():
        low, high = wilson(sum(hits), len(hits))
        solved.append(f"{label} layers {sum(hits) / len(hits):.0%} ({low:.0%} to {high:.0%})")
    ratio = seconds["6 + 3"] / seconds[nine]
    largest = max(table, key=lambda row: row[1])
    return [
        f"Up to the first token the encoder-decoder does {largest[5]:.2f} of the work of {nine} layers where "
        f"sources are longest ({largest[1]} tokens); it took {ratio:.2f} of the time, the median of runs in "
        "turn.",
        f"Share of all problems solved: {'; '.join(solved)}.",
        "The encoder-decoder has learned these tasks alone, the target many more and stories beside them.",
    ]


def chart(apart: Writer, decoder: Writer) -> Chart:
    """Kept numbers against the length of an answer, after sources of two lengths."""
    width, lines = apart.model.config.d_model, []
    reads, writes = apart.model.config.num_layers, apart.model.config.num_decoder_layers
    for n in (24, 96):
        for label, two, own, size in (
            ("6 + 3", True, writes, width),
            ("9", False, len(decoder.layers), decoder.model.config.hidden_size),
        ):
            points = [[m, kept(reads, own, size, n, m, two)] for m in range(1, CURVE + 1, 5)]
            lines.append(Line(f"{label} layers, source of {n}", points))
    return Chart("What is kept while an answer grows", "tokens of the answer", "numbers kept", lines)


def finding(answer: dict) -> str:
    """Work and right answers, averaged over the tasks."""
    rows = rows_of(answer)
    encoder, decoder = (fmean(row[name] for row in rows) for name in answer["columns"][2:4])
    work = fmean(row["work for the answer: ratio"] for row in rows)
    return (
        f"An encoder–decoder does {percent(work)} of the work of a decoder with as many layers and solves "
        f"{percent(encoder)} of the problems, the decoder {percent(decoder)}."
    )


def stands(answer: dict) -> Basis:
    """Problems of each task, for models that were trained once."""
    encoder, decoder = (fmean(row[name] for row in rows_of(answer)) for name in answer["columns"][2:4])
    many = COUNT * len(LEARNED)
    compared = by_shares("right answers, encoder-decoder against decoder", encoder, decoder, many)
    return Basis({"problems": many}, trained=1, compared=[compared])
