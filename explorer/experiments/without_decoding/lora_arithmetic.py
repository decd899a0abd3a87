"""Can fine-tunings be added and subtracted?

Two low-rank modules of the target, one for Verilog and one for summaries of fact sheets, are added with
weights that sum to 1, without any training. The study averages the factors A and B separately, so that every
B also meets the other module's A; for comparison, the products are averaged. Losses are in nats per token on
unseen texts of both kinds, and on stories sampled from the target. Then the Verilog module alone is scaled,
down to its negation, which should unlearn Verilog and little else. The study's modules start from the same A;
these two were trained independently.
"""

import copy
import random
from dataclasses import replace

import torch
from torch.nn import functional as F

from decoders.models import lora
from decoders.models.catalog import with_weights
from decoders.models.editing.lora_algebra import averaged, change, combined, scaled
from decoders.models.lora import Adapter
from explorer.corpus import IGNORED
from explorer.experiments import Cell, Chart, Line, Models, Result, progress
from explorer.experiments.basis import Basis
from explorer.experiments.models.small import own_text
from explorer.experiments.reading import moved, rows_of
from explorer.tasks.summaries import make_sheet
from explorer.tasks.verilog import make_module, marked

PAPERS = ("composing-parameter-efficient-modules-with-arithmetic-operations",)
PAIR = ("llama-tiny-verilog", "llama-tiny-summaries")
WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the first module
SCALES = (-1.0, -0.5, -0.25, 0.0, 0.5, 1.0)
TEXTS, STORIES, LENGTH = 16, 16, 64
KINDS = ("Verilog", "summaries", "stories")
Rows = tuple[torch.Tensor, torch.Tensor]  # token ids and labels [N, T]


def load(name: str) -> Adapter:
    """A shipped LoRA module."""
    return lora.read_adapter(with_weights(name))


def texts(models: Models, pair: list[Adapter]) -> dict[str, Rows]:
    """Rows and labels of each kind, tokenized with a tokenizer that knows the tokens of both modules."""
    tokens = list(dict.fromkeys(token for adapter in pair for token in adapter.tokens))
    tokenizer = lora.with_tokens(copy.deepcopy(models["target"].tokenizer), tokens)
    end = min(models["target"].eos)

    def rows(pairs: list[tuple[str, str]]) -> Rows:
        """Prompts with their answers; only the answers count."""
        cut = [[tokenizer(text)["input_ids"] for text in pair] for pair in pairs]
        longest = max(len(asked) + len(answer) for asked, answer in cut) + 1
        ids = torch.full((len(cut), longest), end)
        labels = torch.full((len(cut), longest), IGNORED)
        for at, (asked, answer) in enumerate(cut):
            whole = torch.tensor([*asked, *answer, end])
            ids[at, : len(whole)] = whole
            labels[at, len(asked) : len(whole)] = whole[len(asked) :]
        return ids, labels

    draw = random.Random("arithmetic")
    modules = [make_module(draw) for _ in range(TEXTS)]
    sheets = [make_sheet(draw) for _ in range(TEXTS)]
    stories = own_text(models, STORIES, LENGTH)
    return {
        "Verilog": rows([(asked, marked(module)) for asked, module in modules]),
        "summaries": rows([(sheet.prompt, sheet.answer) for sheet in sheets]),
        "stories": (stories, stories),
    }


@torch.no_grad()
def losses(model: torch.nn.Module, kinds: dict[str, Rows]) -> list[float]:
    """Nats per labelled token of each kind."""
    nats = []
    for rows, labels in kinds.values():
        logits = model(input_ids=rows.to(model.device)).logits.float().cpu()
        nats.append(float(F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())))
    return nats


@torch.no_grad()
def with_products(
    models: Models, adapter: Adapter, products: dict[str, torch.Tensor] | None = None
) -> torch.nn.Module:
    """A copy of the target with a module, or with `products` [out, in] in place of its B A."""
    model = copy.deepcopy(models["target"].model)
    if products is None:
        return lora.applied(model, adapter)
    lora.applied(model, replace(adapter, matrices={}))
    for name, added in products.items():
        model.get_submodule(name).weight += added
    return model


def run(models: Models) -> Result:
    """One row per weight and way to add, then one per scale of the first module alone."""
    pair = [load(name) for name in PAIR]
    with progress.part(0.2):
        kinds = texts(models, pair)
    modules = [scaled(adapter.matrices, adapter.scale) for adapter in pair]
    table: list[list[Cell]] = []
    for weight in progress.each(WEIGHTS, until=0.6):
        weights = [weight, 1 - weight]
        both = combined(list(zip(weights, pair, strict=True)))
        ways = {"factors": None, "products": averaged(modules, weights)}
        for way, products in ways.items():
            model = with_products(models, both, products)
            table.append([f"{way} averaged", weight, *losses(model, kinds)])
    both = combined([(1.0, pair[0]), (0.0, pair[1])])  # so that all tokens are known
    for scale in progress.each(SCALES):
        changes = {name: scale * value for name, value in change(both.matrices).items()}
        table.append(["Verilog alone", scale, *losses(with_products(models, both, changes), kinds)])
    columns = ["module", "weight", *KINDS]
    lines = [
        Line(f"{kind}, {way}", [[row[1], row[2 + at]] for row in table if row[0] == f"{way} averaged"])
        for at, kind in enumerate(KINDS)
        for way in ("factors", "products")
    ]
    chart = Chart("Two modules added", "weight of the Verilog module", "nats per token", lines)
    alone = [
        Line(kind, [[row[1], row[2 + at]] for row in table if row[0] == "Verilog alone"])
        for at, kind in enumerate(KINDS)
    ]
    negation = Chart("One module scaled", "scale of the Verilog module", "nats per token", alone)
    return Result(columns, table, conclusions(table), chart, pictures=[negation])


def conclusions(table: list[list[Cell]]) -> list[str]:
    """The conclusions, as sentences."""
    at = {(row[0], row[1]): row[2:] for row in table}
    base, undone = at["Verilog alone", 0.0], at["Verilog alone", -1.0]
    middle, products = at["factors averaged", 0.5], at["products averaged", 0.5]
    says = []
    for kind, name in ((0, "Verilog"), (1, "summaries")):
        own = at["factors averaged", 1.0 if kind == 0 else 0.0][kind]
        says.append(
            f"{name}: {base[kind]:.2f} nats without a module, {own:.2f} with its own; with the even sum "
            f"{middle[kind]:.2f} if factors are averaged and {products[kind]:.2f} if products are."
        )
    gap = undone[0] - base[0]
    verb = "rises" if gap > 0 else "does not rise"
    change_of_stories = f"{undone[2] - base[2]:+.2f}".replace("-", "−")
    says.append(
        f"With the Verilog module negated the loss on Verilog {verb}: {undone[0]:.2f} nats instead of "
        f"{base[0]:.2f}; that on stories changes by {change_of_stories}."
    )
    return says


def finding(answer: dict) -> str:
    """The even sum of factors against the target and against the module itself."""
    rows = rows_of(answer)
    base = rows[2 * len(WEIGHTS) + SCALES.index(0.0)]
    even = rows[2 * WEIGHTS.index(0.5)]
    return (
        f"When two fine-tunings are added half and half without training, the loss on the texts of the one "
        f"{moved(base['Verilog'], even['Verilog'])} nats, and on those of the other "
        f"{moved(base['summaries'], even['summaries'])}."
    )


STANDS = Basis({"texts of each kind": TEXTS})
