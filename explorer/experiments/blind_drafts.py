"""Does a draft have to see what the target sees?

On Speculative Decoding for Multimodal LLMs drafts for a model that sees an image with a small model that
reads only the answer so far. No model here sees images. A sentence about a person takes the image's place:
the encoder of the shipped encoder-decoder reads it, the decoder writes it as a record, and no token of the
sentence is in the decoded text. The drafts are the shipped distilled draft: unchanged and without the
sentence, tuned on the target's records without the sentence, and tuned in the same way with the sentence in
front. Words of the scene are the tokens of a record's values; all others, keys and punctuation, are the same
in every record. MBSU = c t / (c + gamma), where c is the target's size divided by the draft's and t the
tokens per target forward: the speed-up if time were proportional to parameters. The study's target is 61
times as large as its draft, ours 6.6 times.
"""

import copy
import random
import re
from typing import Any

import torch
from torch.nn import functional as F

from decoders.lane import Lane, Limits
from decoders.models.catalog import DRAFT
from decoders.models.loaded_model import LoadedModel
from decoders.models.loading import load
from decoders.trace.trace import Trace
from explorer.experiments import Chart, Line, Models, Result, progress
from explorer.experiments.basis import Basis
from explorer.experiments.measures import tokens_per_forward
from explorer.experiments.models.captioner import conditioned
from explorer.experiments.models.small import fit
from explorer.experiments.pictures import TokenMap
from explorer.experiments.reading import percent, rows_of, two
from explorer.experiments.reading_once import reader
from explorer.experiments.stages_of_a_draft import mbsu
from explorer.tasks import HELD_OUT_SEED, problems
from explorer.tasks.records import make_record

PAPERS = ("on-speculative-decoding-for-multimodal-large-language",)
SCENES, HELD_OUT, LONGEST = 320, 12, 40  # sentences for training and for decoding; maximum tokens of a record
STEPS, BATCH, RATE = 150, 8, 5e-4
GAMMAS = (3, 5)
UNTUNED, BLIND, SEEING = "text only, untuned", "text only", "with the scene"
COLUMNS = ["draft", "gamma", "tokens per round", "MBSU", "words of the scene", "other words"]
VALUE = re.compile(r': "?([^",}]+)')
Scene = tuple[list[int], list[int]]  # tokens of a sentence, and of the record after the start token


def described(scenes: list[list[int]]) -> list[Scene]:
    """The encoder-decoder's greedy description of each sentence, from start token to end token."""
    model, _ = reader()
    made, pad = [], model.config.pad_token_id
    for some in (scenes[at : at + 32] for at in range(0, len(scenes), 32)):
        rows = torch.full((len(some), max(map(len, some))), pad)
        for row, tokens in zip(rows, some, strict=True):
            row[: len(tokens)] = torch.tensor(tokens)
        wrote = model.generate(
            input_ids=rows, attention_mask=(rows != pad).long(), max_new_tokens=LONGEST, do_sample=False
        )
        for tokens, text in zip(some, wrote.tolist(), strict=True):
            ends = [at for at, token in enumerate(text) if token == model.config.eos_token_id]
            made.append((tokens, text[: ends[0] + 1] if ends else text))
    return made


def of_scene(model: LoadedModel, text: list[int]) -> list[bool]:
    """For each token of a record, whether part of it belongs to a value."""
    pieces = [model.bytes_of(token).decode("utf-8", "replace") for token in text]
    whole = "".join(pieces)
    inside = {at for match in VALUE.finditer(whole) for at in range(match.start(1), match.end(1))}
    marks, place = [], 0
    for piece in pieces:
        marks.append(any(at in inside for at in range(place, place + len(piece))))
        place += len(piece)
    return marks


def tuned(
    draft: torch.nn.Module, target: torch.nn.Module, scenes: list[Scene], sees: bool
) -> torch.nn.Module:
    """A copy of a draft, tuned on the predictions of the encoder-decoder `target` along its records, which
    follow their sentences if the draft `sees` them. Both read the same batches.
    """
    model = copy.deepcopy(draft).float().requires_grad_(True)

    def loss(pick: torch.Tensor) -> torch.Tensor:
        total = torch.zeros(())
        for source, text in (scenes[at] for at in pick[:, 0].tolist()):
            before, ids = (source if sees else []), torch.tensor([text])
            with torch.no_grad():
                p = target(input_ids=torch.tensor([source]), decoder_input_ids=ids).logits[0, :-1].softmax(-1)
            logits = model(input_ids=torch.tensor([before + text])).logits[0, len(before) : -1]
            total = total + F.cross_entropy(logits.float(), p)
        return total / len(pick)

    fit(model.parameters(), loss, torch.arange(len(scenes))[:, None], STEPS, BATCH, RATE)
    return model.eval().requires_grad_(False)


def decode(target: LoadedModel, draft: LoadedModel, start: int, **settings: Any) -> Trace:
    """A record after the start token, drafted by `draft`."""
    models = {"target": target, "draft": draft}
    return Lane("speculative", [start], models, settings, limits=Limits(LONGEST)).run()


@torch.inference_mode()
def right(draft: LoadedModel, text: list[int]) -> list[bool]:
    """For each token of a record after its start, whether it is the draft's most likely one."""
    ids = torch.tensor([text])
    return (draft.model(input_ids=ids).logits[0, :-1].argmax(-1) == ids[0, 1:]).tolist()


def share(marks: list[bool]) -> float:
    """The share of true entries."""
    return sum(marks) / max(1, len(marks))


def run(models: Models) -> Result:
    """One row per draft and gamma."""
    captioner, _ = reader()
    base, rng = load(DRAFT, device="cpu"), random.Random("scenes")
    drawn = [make_record(rng, "json").prompt for _ in range(SCENES)]
    texts = [base.encode(text) for text in drawn]
    with progress.part(0.1):
        scenes = described(texts)
    asked = described([base.encode(p.prompt) for p in problems("json", HELD_OUT, HELD_OUT_SEED)])
    drafts = {UNTUNED: base.model}
    for name, sees in progress.each([(BLIND, False), (SEEING, True)], until=0.8):
        drafts[name] = tuned(base.model, captioner, scenes, sees)
    size = captioner.num_parameters()
    ratio = size / base.model.num_parameters()
    rows, shown = [], {}
    for name, model in progress.each(drafts.items()):
        pairs = []
        for source, text in asked:
            target = conditioned(captioner, source, base, "llama-tiny-seq2seq")
            before = source if name == SEEING else []
            pairs.append((target, conditioned(model, before, base, name), text))
        correct = [right(draft, text) for _, draft, text in pairs]
        marks = [of_scene(base, text[1:]) for _, _, text in pairs]
        flat = [pair for r, m in zip(correct, marks, strict=True) for pair in zip(r, m, strict=True)]
        shares = [share([r for r, m in flat if m is scene]) for scene in (True, False)]
        for gamma in GAMMAS:
            traces = [
                decode(target, draft, text[0], temperature=0.0, num_assistant_tokens=gamma)
                for target, draft, text in pairs
            ]
            tokens = tokens_per_forward(traces)
            rows.append([name, gamma, tokens, mbsu(ratio, tokens, gamma), *shares])
        shown[name] = correct[0]
    text = asked[0][1][1:]
    words = [base.bytes_of(token).decode("utf-8", "replace") for token in text]
    values = [
        [float(m) for m in of_scene(base, text)],
        *([float(r) for r in some] for some in shown.values()),
    ]
    picture = TokenMap(
        "One record: words of the scene, and what each draft guesses", "yes", words,
        ["word of the scene", *shown], values,
    )  # fmt: skip
    lines = [
        Line(f"gamma {g}", [[at, r[3]] for at, r in enumerate((r for r in rows if r[1] == g), start=1)])
        for g in GAMMAS
    ]
    chart = Chart("MBSU of the drafts, in the table's order", "draft", "MBSU", lines)
    says = [
        f"The target has {size:,} parameters, {ratio:.1f} times as many as a draft; of the tokens of the "
        f"{HELD_OUT} decoded records {share([m for _, m in flat]):.0%} are words of the scene.",
        *(gained(rows, gamma) for gamma in GAMMAS),
    ]
    return Result(COLUMNS, rows, says, chart, pictures=[picture])


def gained(rows: list[list], gamma: int) -> str:
    """Compares the drafts at one gamma."""
    each = ", ".join(f"{row[0]} {two(row[3])}" for row in rows if row[1] == gamma)
    return f"MBSU at gamma {gamma}: {each}."


def finding(answer: dict) -> str:
    """The draft that sees nothing against the one that sees the scene, at the shorter gamma."""
    rows = {row["draft"]: row for row in rows_of(answer) if row["gamma"] == GAMMAS[0]}
    blind, seeing = rows[BLIND], rows[SEEING]
    return (
        f"A draft that does not see the scene predicts {percent(blind['words of the scene'])} of its words "
        f"and {percent(blind['other words'])} of the others, and a target forward yields "
        f"{two(blind['tokens per round'])} tokens; with one that sees it {two(seeing['tokens per round'])}."
    )


STANDS = Basis({"records": HELD_OUT}, trained=1)
