"""Low-rank changes of llama-tiny with additional tokens, a row each. Imports no torch."""

from dataclasses import dataclass

from explorer.training.rows.row import Row


@dataclass(frozen=True, kw_only=True)
class Adapter(Row):
    """Trained by `training/adapters.py`. texts: what it reads, a key of `TEXTS` there; batch: how many texts
    read at a time, None if their maker decides; held_out: how many such batches are never fed; note: with the
    loss on these, `held_out`, and that of llama-tiny on plain stories, `before`.
    """

    texts: str
    rank: int
    rate: float
    million_tokens: float
    batch: int | None = None
    held_out: int
    tokens_of: str
    note: str


STORIES_BEFORE = "On plain held-out stories `llama-tiny` has {before:.4f}."
ROWS = (
    Adapter(
        "llama-tiny-flaws",
        "llama-tiny with a low-rank adapter and one additional token, which it writes in front of the flawed "
        "lines of toy programs.",
        texts="programs",
        rank=4,
        rate=6e-3,
        million_tokens=0.28,
        batch=16,
        held_out=4,
        tokens_of="of labelled programs, {batch} at a time",
        note="The losses of the curve are of labelled programs, held out: {held_out:.4f} nats per token "
        f"at the end, much of it chance. {STORIES_BEFORE}",
    ),
    Adapter(
        "llama-tiny-verilog",
        "llama-tiny with a low-rank adapter and one additional token, for small Verilog modules with a "
        "mark at the end of each syntactic fragment.",
        texts="modules",
        rank=8,
        rate=6e-3,
        million_tokens=2.4,
        batch=16,
        held_out=4,
        tokens_of="of modules with marks, {batch} at a time",
        note="The losses of the curve are of marked modules, held out: {held_out:.4f} nats per token at "
        f"the end. {STORIES_BEFORE} Its Verilog is gates, a multiplexer, registers and a counter, in "
        "modules of up to three statements: nothing else of the language.",
    ),
    Adapter(
        "llama-tiny-forms",
        "llama-tiny with a low-rank adapter and fifteen additional tokens, for two forms of text: with the "
        "middle last (PRE a SUF c MID b EOT), and with a topic in front of each sentence.",
        texts="forms",
        rank=4,
        rate=1e-2,
        million_tokens=2.4,
        held_out=5,
        tokens_of="in rows of 512",
        note="The losses of the curve are of the two new forms, held out: {held_out:.4f} nats per token "
        f"at the end. {STORIES_BEFORE}",
    ),
)
