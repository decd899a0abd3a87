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
from explorer.experiments import Chart, Line, Models, progress
from explorer.experiments.curves import Curves
from explorer.experiments.models.small import own_text
from explorer.experiments.reading import Row, grouped, moved, rows_of
from explorer.experiments.sweep import Setting, Sweep
from explorer.tasks.summaries import make_sheet
from explorer.tasks.verilog import make_module, marked

PAPERS = ("composing-parameter-efficient-modules-with-arithmetic-operations",)
PAIR = ("llama-tiny-verilog", "llama-tiny-summaries")
WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the first module
SCALES = (-1.0, -0.5, -0.25, 0.0, 0.5, 1.0)
TEXTS, STORIES, LENGTH = 16, 16, 64
FACTORS, PRODUCTS, ALONE = "factors averaged", "products averaged", "Verilog alone"
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


def settings(models: Models) -> list[Setting]:
    """Both ways to add with every weight, and the first module alone with every scale."""
    pair = [load(name) for name in PAIR]
    with progress.part(0.2):
        given = {"pair": pair, "kinds": texts(models, pair)}
    sums = [(way, weight) for weight in WEIGHTS for way in (FACTORS, PRODUCTS)]
    return [
        Setting((way, weight), parameters={"way": way, "weight": weight, **given})
        for way, weight in (*sums, *((ALONE, scale) for scale in SCALES))
    ]


def added(models: Models, way: str, weight: float, pair: list[Adapter], kinds: dict[str, Rows]) -> Row:
    """The loss on each kind of text with both modules, or with a multiple of the first one."""
    weights = [1.0, 0.0] if way == ALONE else [weight, 1 - weight]  # so that all tokens are known
    both, products = combined(list(zip(weights, pair, strict=True))), None
    if way == ALONE:
        products = {name: weight * value for name, value in change(both.matrices).items()}
    elif way == PRODUCTS:
        products = averaged([scaled(adapter.matrices, adapter.scale) for adapter in pair], weights)
    return dict(zip(KINDS, losses(with_products(models, both, products), kinds), strict=True))


def chart(rows: list[Row]) -> Chart:
    """Both ways to add, for each kind of text."""
    ways = grouped(rows, "module")
    lines = [
        Line(f"{kind}, {way.split()[0]}", [[row["weight"], row[kind]] for row in ways[way]])
        for kind in KINDS
        for way in (FACTORS, PRODUCTS)
    ]
    return Chart("Two modules added", "weight of the Verilog module", "nats per token", lines)


def says(rows: list[Row]) -> list[str]:
    """Each module on its own texts and in the even sum, and the first one negated."""
    at = {(row["module"], row["weight"]): row for row in rows}
    base, undone = at[ALONE, 0.0], at[ALONE, -1.0]
    middle, products = at[FACTORS, 0.5], at[PRODUCTS, 0.5]
    verb = "rises" if undone["Verilog"] > base["Verilog"] else "does not rise"
    return [
        *(
            f"{kind}: {base[kind]:.2f} nats without a module, {at[FACTORS, own][kind]:.2f} with its own; "
            f"with the even sum {middle[kind]:.2f} if factors are averaged and {products[kind]:.2f} if "
            "products are."
            for kind, own in (("Verilog", 1.0), ("summaries", 0.0))
        ),
        f"With the Verilog module negated the loss on Verilog {verb}: {undone['Verilog']:.2f} nats instead "
        f"of {base['Verilog']:.2f}; that on stories changes by {undone['stories'] - base['stories']:+.2f}.",
    ]


SWEEP = Sweep(
    names=("module", "weight"),
    settings=settings,
    decode=added,
    says=says,
    chart=chart,
    pictures=lambda rows: [
        Curves(
            "One module scaled",
            "scale of the Verilog module",
            "nats per token",
            {kind: ("weight", kind) for kind in KINDS},
            where=lambda row: row["module"] == ALONE,
        )(rows)
    ],
    sampled={"texts of each kind": TEXTS},
    one_process=True,
)


def finding(answer: dict) -> str:
    """The even sum of factors against the target and against the module itself."""
    rows = grouped(rows_of(answer), "module")
    base, even = rows[ALONE][SCALES.index(0.0)], rows[FACTORS][WEIGHTS.index(0.5)]
    return (
        f"When two fine-tunings are added half and half without training, the loss on Verilog "
        f"{moved(base['Verilog'], even['Verilog'])} nats, and on summaries "
        f"{moved(base['summaries'], even['summaries'])}."
    )
