"""How much must a model remember per token?

How many bytes does each small architecture keep in order to continue, measured after texts of growing length,
beside the target's ordinary cache? For models that read the same tokens as the target, the ordinary cache of
a model of the same width and depth (keys and values of every layer, with as many heads as for queries) is
computed from the shape; MEGABYTE and MBLM read bytes. YOCO and SambaY keep one set of keys and values for
half of their layers, and windows or states in the others (Sun et al. 2024, Ren et al. 2025). A picture per
model shows what its layers depend on: the tokens of a text are replaced one at a time, and a cell is stronger
the more the newest state after a layer changes.
"""

import json
import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from decoders.models import load
from decoders.models.architectures import architectures
from decoders.models.architectures.causal import Architecture
from decoders.models.catalog import of_small_architectures
from explorer.experiments import FOLDER, Chart, Line, Models, Result, progress
from explorer.experiments.basis import Basis
from explorer.experiments.pictures import Heat, Strip
from explorer.experiments.reading import highest, rows_of
from explorer.timing import PROMPTS

if TYPE_CHECKING:
    from decoders.models.loaded_model import LoadedModel

PAPERS = ("you-only-cache-once", "decoder-hybrid-decoder-architecture-for-efficient-reasoning")
SEEN = 96  # tokens of the text in which one token is replaced
PALEST = 0.2  # shade of the smallest change
LENGTHS = (16, 32, 64, 128, 256)  # tokens of a text


def names() -> list[str]:
    """The names of the small models that keep a state and continue from it."""
    known = architectures()
    return [
        name
        for name, kind in of_small_architectures(known).items()
        if issubclass(known[kind][0], Architecture)
    ]


def held(kept: object) -> int:
    """Bytes of all tensors in a model's cache or state, each counted once."""
    sizes: dict[tuple, int] = {}

    def walk(part: object) -> None:
        if isinstance(part, torch.Tensor):
            sizes[part.data_ptr(), part.shape] = part.nbytes
        elif isinstance(part, dict):
            walk(list(part.values()))
        elif isinstance(part, list | tuple):
            for one in part:
                walk(one)
        elif hasattr(part, "__dict__"):
            walk(vars(part))

    walk(kept)
    return sum(sizes.values())


def after(net: torch.nn.Module, length: int) -> int:
    """Bytes that a model keeps after a text of `length` tokens."""
    ids = torch.tensor([[at % 200 + 10 for at in range(length)]], device=net.device)
    if isinstance(net, Architecture):
        return held(net.read(ids)[1])
    return held(net(ids, use_cache=True).past_key_values)


def states(net: Architecture, ids: torch.Tensor) -> dict[str, torch.Tensor]:
    """The newest state [d] after each block, by the block's name, in the order of computation."""
    made: dict[str, torch.Tensor] = {}

    def keeper(name: str) -> Callable:
        def keep(block: torch.nn.Module, given: tuple, result: object) -> None:
            state = result[0] if isinstance(result, tuple) else result
            made[name] = state.flatten(0, -2)[-1].clone()

        return keep

    blocks = [(name, one) for name, one in net.named_modules() if type(one).__name__.endswith("Block")]
    hooks = [one.register_forward_hook(keeper(name)) for name, one in blocks]
    try:
        net.read(ids)
    finally:
        for one in hooks:
            one.remove()
    return made


def seen(net: Architecture, text: list[int]) -> dict[str, list[float]]:
    """For each block and each token of a text, how much the newest state after the block changes if that
    token is replaced, as a share of the state's norm; 0 if not a single bit changes.
    """
    plain = states(net, torch.tensor([text], device=net.device))
    changes: dict[str, list[float]] = {name: [] for name in plain}
    for at, token in enumerate(text):
        other = next(one for one in text[at:] + text if one != token)
        changed = torch.tensor([[*text[:at], other, *text[at + 1 :]]], device=net.device)
        for name, state in states(net, changed).items():
            changes[name].append(float((state - plain[name]).norm() / plain[name].norm()))
    return changes


def picture(model: "LoadedModel") -> Heat | None:
    """What the blocks of a model depend on, the highest block first; None if tokens choose their blocks."""
    net, text = model.model, model.encode(" ".join(PROMPTS))[:SEEN]
    tokens = [f"token {at + 1}" for at in range(len(text))]
    changes = seen(net, text)
    rows = [
        Strip(label(block, net), tokens, [[shade(one) for one in changes[block]]])
        for block in reversed(changes)
    ]
    says = (
        "how much the newest state after a layer depends on each token, the newest at the right; blank: not "
        "at all, the strongest shade: it changes altogether, with four powers of ten between"
    )
    return (
        Heat(f"{model.name}: what each layer looks at", says, [f"{SEEN} tokens"], rows, 0.0, 1.0)
        if rows
        else None
    )


def stored_picture(name: str) -> dict | None:
    """The picture of one model in the stored answer; None if it has none."""
    path = FOLDER / "cache-of-architectures.json"
    pictures = json.loads(path.read_text("utf-8"))["pictures"] if path.exists() else []
    return next((one for one in pictures if one["title"].startswith(f"{name}: ")), None)


def shade(change: float) -> float:
    """0 for no change, PALEST for a share of 10 ** -4 and less, 1 for 1 and more."""
    return min(1.0, max(PALEST, round(1 + math.log10(change) / 4, 3))) if change else 0.0


def label(block: str, net: Architecture) -> str:
    """`lower 2: window of 32`: the place of a block and how it mixes tokens."""
    mixer = net.get_submodule(block)
    mixer = getattr(mixer, "mixer", mixer)
    place = [int(part) + 1 if part.isdigit() else part for part in block.split(".")]
    where = " ".join(str(part) for part in place if part not in ("blocks", "stack", "layers"))
    window = getattr(mixer, "window", None)
    kind = re.sub(r"(?<!^)(?=[A-Z])", "-", type(mixer).__name__).lower()
    return f"{where}: window of {window}" if window else f"{where}: {kind}"


@torch.inference_mode()
def run(models: Models) -> Result:
    """One row per model; bytes against the length of the text."""
    target = models["target"]
    small = {name: load(name) for name in names()}
    own = {target.name: target.model, **{name: model.model for name, model in small.items()}}
    rows, lines = [], []
    for name, net in progress.each(own.items()):
        bytes_ = [after(net, length) for length in LENGTHS]
        slope = (bytes_[-1] - bytes_[-2]) / (LENGTHS[-1] - LENGTHS[-2])
        shape = net.config
        tokens = shape.vocab_size == target.model.config.vocab_size
        plain = 2 * shape.num_hidden_layers * shape.hidden_size * net.dtype.itemsize if tokens else None
        times = None if plain is None else plain * LENGTHS[-1] / bytes_[-1]
        rows.append([name, slope, plain, bytes_[-1] / 1e3, times])
        lines.append(Line(name, [[n, size / 1e3] for n, size in zip(LENGTHS, bytes_, strict=True)]))
    flat = [row[0] for row in rows if row[1] == 0]
    says = [f"What {' and '.join(flat)} keep does not grow with the text." if flat else "All of them grow."]
    says.append("MEGABYTE and MBLM read bytes: one token of the others is several of theirs.")
    columns = ["model", "bytes per further token", "ordinary cache of this shape", f"KB after {LENGTHS[-1]}"]
    chart = Chart("What is kept after a text", "tokens read", "KB", lines)
    pictures = [picture(model) for model in progress.each(small.values())]
    shown = [one for one in pictures if one is not None]
    return Result([*columns, "times smaller"], rows, says, chart, pictures=shown)


def finding(answer: dict) -> str:
    """The smallest state relative to an ordinary cache, and the state that grows least."""
    rows = [row for row in rows_of(answer) if row["times smaller"] is not None]
    best = highest(rows, "times smaller")
    after = answer["columns"][3].removeprefix("KB after ")
    growing = [row for row in rows if row["bytes per further token"]]
    slow = min(growing, key=lambda row: row["bytes per further token"] / row["ordinary cache of this shape"])
    share = slow["ordinary cache of this shape"] / slow["bytes per further token"]
    return (
        f"After {after} tokens, {best['model']} keeps {best['times smaller']:.1f} times less than an "
        f"ordinary cache of its shape; of those that grow, {slow['model']} adds least per token, {share:.1f} "
        "times less."
    )


STANDS = Basis(exact="bytes are counted, or computed from the shape")
