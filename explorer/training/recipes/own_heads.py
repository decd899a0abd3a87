"""Small heads for a user's own models, trained like the shipped ones: an acceptance head (SpecDec++), a judge
(Judge Decoding), SpecBranch's outlook and Kangaroo's adapter.

`python -m explorer train acceptance --model TARGET --draft DRAFT --texts FOLDER --out FOLDER`.
"""

import hashlib
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from transformers import GenerationConfig, PreTrainedTokenizerBase

from decoders.heads import Kangaroo, Target
from decoders.models import head_files
from decoders.models.loaded_model import LoadedModel
from decoders.models.loading import check_pair, load
from decoders.models.model_heads import folder_of
from decoders.refusal import Refusal
from decoders.speculative.self_draft.layerskip import exit_of
from explorer.corpus import END, ROW
from explorer.shipped import OWN_HEADS
from explorer.training import drafters, loop
from explorer.training.modules import train_modules, work_of, write_rows
from explorer.training.own_text import PROMPT
from explorer.training.recipes import llama_tiny_acceptance, llama_tiny_judge, llama_tiny_outlook
from explorer.training.rows.table import ROWS

KANGAROO = ROWS["llama-tiny-heads"]  # the recipe with its adapter
HELD_OUT = 10  # every 10th row is kept for validation
WRITERS = 16  # rows that a model writes at a time
JUDGED_ROW = 256  # tokens of a problem with its answer at most; not every tokenizer knows these words


@dataclass(frozen=True)
class OwnTexts:
    """Rows of a user's texts, both [R, T]: those that are read, and those that are kept for validation."""

    training: torch.Tensor
    held: torch.Tensor

    def beginnings(self, seen: int, length: int) -> torch.Tensor:
        """Beginnings [WRITERS, length] of random rows, by a seed from `seen`."""
        return drawn(self.training, seen, WRITERS)[:, :length]


def read_texts(path: Path) -> list[str]:
    """The texts of a file, or of all .txt files of a folder: each file is one text, or several with
    <|endoftext|> between them. Raises Refusal with one sentence.
    """
    paths = sorted(path.glob("**/*.txt")) if path.is_dir() else [path]
    if not path.exists() or not paths:
        raise Refusal(f"There are no texts at {str(path)!r}; name a text file, or a folder of .txt files.")
    try:
        result = [text.strip() for each in paths for text in each.read_text("utf-8").split(END)]
    except UnicodeDecodeError as error:
        raise Refusal(f"A text of {str(path)!r} is not UTF-8; save it as UTF-8.") from error
    return [text for text in result if text]


def rows_of_texts(texts: list[str], tokenizer: PreTrainedTokenizerBase, row: int) -> OwnTexts:
    """The concatenated texts, with an end of text after each, cut into rows. Raises Refusal with one
    sentence if there are fewer than two.
    """
    end = [] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id]
    tokens = [t for text in texts for t in tokenizer(text, add_special_tokens=False)["input_ids"] + end]
    count = len(tokens) // row
    if count < 2:
        raise Refusal(
            f"The texts have {len(tokens):,} tokens, and at least {2 * row:,} are needed; name more of them."
        )
    rows = torch.tensor(tokens[: count * row]).view(count, row)
    apart = torch.arange(count) % HELD_OUT == 0
    return OwnTexts(rows[~apart], rows[apart])


def drawn(rows: torch.Tensor, seen: int, count: int) -> torch.Tensor:
    """`count` random rows, by a seed from `seen` alone."""
    return rows[torch.from_numpy(np.random.default_rng(seen).integers(len(rows), size=count))]


def loaded(name: str) -> LoadedModel:
    """A model in float32 with frozen weights, which samples from its own distribution regardless of its
    folder's generation config. Raises Refusal with one sentence if no head can read it.
    """
    model = load(name, loop.device(), "float32")
    Target.of(model.model)
    if model.tokenizer.pad_token_id is None:
        ends = sorted(model.eos) or [0]
        model.tokenizer.pad_token = model.tokenizer.convert_ids_to_tokens(ends[0])
    pad = model.tokenizer.pad_token_id
    model.model.generation_config = GenerationConfig(eos_token_id=sorted(model.eos) or None, pad_token_id=pad)
    return model


def row_length(model: LoadedModel) -> int:
    """Tokens of a training row."""
    return min(ROW, model.context)


def own_rows(target: LoadedModel, texts: OwnTexts, work: Path, tokens: float) -> np.ndarray:
    """Rows [R, T] that the target wrote at temperature 1 after beginnings of the texts."""

    def begin(written: int) -> torch.Tensor:
        return texts.beginnings(written, PROMPT)

    return write_rows(target.model, begin, work / "own-text.npy", tokens, row=texts.training.shape[1])


def acceptance(
    target: LoadedModel, draft: LoadedModel, texts: OwnTexts, budget: float | None, work: Path, out: Path
) -> None:
    """SpecDec++'s head, which reads the draft."""
    budget = budget or llama_tiny_acceptance.MILLION_TOKENS
    own = own_rows(target, texts, work, budget * 1e6 / llama_tiny_acceptance.EPOCHS)
    head, curve, facts = llama_tiny_acceptance.fit(target, draft, own, budget, work)
    keep(out, head, draft, target, curve, "token", facts)


def judge(target: LoadedModel, draft: LoadedModel, budget: float | None, work: Path, out: Path) -> None:
    """Judge Decoding's head, which reads the target. It learns from the checkable tasks, not from texts."""
    budget = budget or llama_tiny_judge.MILLION_TOKENS
    max_tokens = min(JUDGED_ROW, target.context)
    head, curve, facts = llama_tiny_judge.fit(target, draft, budget, work, max_tokens)
    keep(out, head, target, None, curve, "token", facts)


def outlook(
    target: LoadedModel, draft: LoadedModel, texts: OwnTexts, budget: float | None, work: Path, out: Path
) -> None:
    """SpecBranch's head, which reads the target."""
    budget = budget or llama_tiny_outlook.MILLION_TOKENS
    length = llama_tiny_outlook.PROMPT
    begun = [
        row
        for start in range(0, llama_tiny_outlook.TEXTS, WRITERS)
        for row in texts.beginnings(start, length).tolist()
    ]
    written = llama_tiny_outlook.greedy_texts(target.model, begun)
    head, curve, facts = llama_tiny_outlook.fit(target, draft, written, budget, work)
    keep(out, head, target, draft, curve, "window", facts)


def kangaroo(target: LoadedModel, texts: OwnTexts, budget: float | None, work: Path, out: Path) -> None:
    """Kangaroo's adapter, which reads the target at the strategy's exit layer: trained half on the texts,
    half on what the target wrote.
    """
    length, budget = texts.training.shape[1], budget or KANGAROO.million_tokens
    own = torch.from_numpy(own_rows(target, texts, work, drafters.OWN_SHARE * budget * 1e6)).long()
    torch.manual_seed(0)
    head = Kangaroo(Target.of(target.model), exit_of({"exit_layer": 0}, target)).to(target.model.device)

    def feed(seen: int) -> torch.Tensor:
        rows = own if seen // (KANGAROO.batch * length) % 2 else texts.training
        return drawn(rows, seen, KANGAROO.batch)

    held, modules = texts.held[: KANGAROO.validation_rows], {head.kind: head}
    curve = train_modules(modules, target.model, feed, held, budget, work)
    head_files.save(out, modules, target.name, folder_of(target.name), target.tokenizer)
    drafters.write_training(out, modules, target.model, held, curve)


def keep(
    out: Path,
    head: torch.nn.Module,
    reads: LoadedModel,
    partner: LoadedModel | None,
    curve: loop.Curve,
    unit: str,
    facts: dict,
) -> None:
    """Writes a head that reads a model, and possibly predicts about its partner, to the folder `out`."""
    other = None if partner is None else (partner.name, folder_of(partner.name))
    folder = folder_of(reads.name)
    head_files.save(out, {head.kind: head}, reads.name, folder, reads.tokenizer, partner=other)
    loop.write_training(out, head, curve, unit, {"held_out_loss": round(curve[-1][2], 4), **facts})


def main(args: Namespace) -> None:
    """Trains the head `args.recipe` on the models `args.model` and `args.draft` and writes it to `args.out`.
    Raises Refusal with one sentence.
    """
    made, needs = globals()[args.recipe], OWN_HEADS[args.recipe]
    models = [loaded(args.model)]
    if "draft" in needs:
        models.append(loaded(args.draft))
        check_pair(*models)
    given: list = list(models)
    name = args.recipe
    if "texts" in needs:
        texts = read_texts(args.texts)
        given.append(rows_of_texts(texts, models[0].tokenizer, row_length(models[0])))
        name += "-" + hashlib.sha256("\n".join(texts).encode()).hexdigest()[:8]
    work = work_of(args.work, name, *(folder_of(model.name).resolve() for model in models))
    made(*given, args.million_tokens, work, args.out)
    print(f"The head is in {args.out}; decode with it by --heads {args.out}", flush=True)
