"""What does a prefix cost that many rows share?

Hydragen (2024): rows of a batch that begin with the same tokens need not read the keys and values of those
tokens once per row. Attention over the prefix, for the queries of all rows in one block, and attention over
each row's own tokens are merged exactly by their log-sum-exps. One query per row, as in decoding: how long
does that take against plain attention over a copy of the prefix for each row, and how many bytes of keys and
values do both read? The layer has the shape of the shipped target's. Its queries, keys and values are random,
since their values change neither time nor bytes, so the prefix may be longer than the target's context. Only
one layer's attention is measured, not the rest of a model.
"""

import torch
from torch.nn import functional as F

from decoders.engine.kv_cache import query_width
from decoders.engine.merged_attention import attend, rows_read, shared_prefix_attention
from explorer.experiments import Chart, Line, Models, Result, progress
from explorer.experiments.basis import Basis
from explorer.experiments.reading import percent, rows_of, two
from explorer.timing import in_turn

PAPERS = ("hydragen",)
# Rows of a batch; tokens of their shared prefix; further tokens per row.
ROWS, PREFIXES, OWN = (2, 8, 32), (128, 512, 2048), 32
TIMES = 25  # measurements of each method, which take turns

Pair = tuple[torch.Tensor, torch.Tensor]  # keys and values


def shape(models: Models) -> tuple[int, int, int]:
    """Heads, key-value heads, and head size of the target's attention."""
    config = models["target"].model.config
    return config.num_attention_heads, config.num_key_value_heads, query_width(config)


def drawn(layer: tuple[int, int, int], rows: int, length: int) -> tuple[torch.Tensor, Pair, Pair, Pair]:
    """(queries [rows, heads, 1, size], shared prefix, each row's own, both as copies per row)."""
    (heads, groups, size), generator = layer, torch.Generator().manual_seed(0)
    q = torch.randn(rows, heads, 1, size, generator=generator)
    prefix = torch.randn(2, 1, groups, length, size, generator=generator)
    own = torch.randn(2, rows, groups, OWN, size, generator=generator)
    copies = torch.cat([prefix.expand(-1, rows, -1, -1, -1), own], dim=3)
    return q, tuple(prefix), tuple(own), tuple(copies)


@torch.inference_mode()
def measured(layer: tuple[int, int, int], rows: int, length: int) -> tuple[list[int | float], float]:
    """A row of the table, and the largest difference between the ways' outputs."""
    heads, groups, size = layer
    q, prefix, own, copies = drawn(layer, rows, length)

    def in_parts() -> torch.Tensor:
        return shared_prefix_attention(q, prefix, own)

    def copied() -> torch.Tensor:
        return attend(q, *copies)[0]

    def fused() -> torch.Tensor:
        return F.scaled_dot_product_attention(q, *copies, enable_gqa=heads != groups)

    off = max(float((in_parts() - other()).abs().max()) for other in (copied, fused))
    parts, same_code, torchs = in_turn([in_parts, copied, fused], times=TIMES)
    of_a_key = 2 * groups * size * q.element_size()  # bytes of a key and its value
    read, instead = rows_read(prefix[0], own[0]) * of_a_key, rows_read(copies[0]) * of_a_key
    return [rows, length, instead, read, read / instead, parts / same_code, parts / torchs], off


def run(models: Models) -> Result:
    """One row per number of rows and length of the prefix."""
    layer = shape(models)
    cases = [(rows, length) for rows in ROWS for length in PREFIXES]
    results = [
        measured(layer, rows, length) for rows, length in progress.each(cases, weight=lambda c: c[0] * c[1])
    ]
    table = [row for row, _ in results]
    columns = [
        "rows",
        "shared tokens",
        "bytes, a copy per row",
        "bytes, prefix once",
        "share of the bytes",
        "time against the same code",
        "time against torch",
    ]
    lines = [
        Line(f"{rows} rows", [[float(row[1]), row[6]] for row in table if row[0] == rows]) for rows in ROWS
    ]
    low, high = min(row[6] for row in table), max(row[6] for row in table)
    says = [
        f"Both ways give the same outputs: they differ by {max(off for _, off in results):.1e} at most.",
        f"The time in parts is between {low:.2f} and {high:.2f} of that of torch's fused attention, and "
        f"between {min(row[5] for row in table):.2f} and {max(row[5] for row in table):.2f} of that of the "
        "code that computes a part, used on the copies.",
        f"Bytes are computed from the sizes of the tensors that are read, in one layer with {layer[1]} heads "
        f"of {layer[2]} numbers that have keys and values; times are medians of {TIMES} measurements.",
    ]
    chart = Chart("In parts, against torch's attention over copies", "shared tokens", "time", lines, log=True)
    return Result(columns, table, says, chart)


def finding(answer: dict) -> str:
    """The largest case and the smallest."""
    first, *_, last = rows_of(answer)
    share, slow = percent(last["share of the bytes"]), two(first["time against torch"])
    return (
        f"When {last['rows']} rows share {last['shared tokens']:,} tokens and read these once, attention "
        f"reads {share} of the bytes and takes {two(last['time against torch'])} times as long as torch's "
        f"attention over a copy per row; with {first['rows']} rows and {first['shared tokens']} tokens "
        f"it takes {slow} times as long."
    )


STANDS = Basis({"machine": 1, "measurements of each": TIMES})
