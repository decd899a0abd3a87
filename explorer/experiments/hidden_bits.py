"""How many bits can ordinary text hide?

A source of eight letters is compressed into a budget of R bits per letter by four encoders: a greedy search,
a search of all maps, the greedy map interpolated between two maps, and blocks of neighbours (uniform
quantisation). H(T) is the rate that is sent, I(X;T) how much of the letter it reveals, and I(X;Y) how much
one token drawn from the target's own row reveals, coupled greedily, averaged over rows of stories. Then
letters are hidden in texts: how many are decoded right once the rows have offered twice H(T)? And are the
first tokens of many messages distributed like the model's own row?
"""

import math
from statistics import fmean

import torch

from decoders.lane import Lane, Limits
from decoders.sampling.coupling.minimum_entropy_coupling import (
    coupled,
    encoder,
    entropy,
    information,
    joint_of,
)
from decoders.trace.events import Distribution
from decoders.trace.scores import Measure, ScoreName
from decoders.trace.trace import Trace
from explorer.experiments import Models, Result, progress
from explorer.experiments.asked import prompts
from explorer.experiments.basis import Basis
from explorer.experiments.curves import Curves
from explorer.experiments.reading import Row, rows_of, two
from explorer.experiments.sweep import Setting, Sweep, concluded, swept
from visualizers.analysis.calibration import wilson

PAPERS = ("minimum-entropy-coupling-with-bottleneck",)
WEIGHTS = [30, 22, 15, 11, 8, 6, 5, 3]
BUDGETS = [x / 4 for x in range(1, 12)]
ENCODERS = ("greedy", "exact", "between", "blocks")
REVEALED = "I(X;Y) greedy"
TEXTS, SEEDS, TOKENS, DRAWS = 6, 4, 20, 20_000


def blocks(p: torch.Tensor, bits: float) -> torch.Tensor:
    """The joint distribution of the encoder with as many equal blocks of neighbours as the budget allows."""
    count = int(2**bits)
    return joint_of(p, [tuple(x.tolist()) for x in torch.arange(len(p)).tensor_split(count) if len(x)])


def encoded(p: torch.Tensor, bits: float, name: str) -> torch.Tensor:
    """The joint distribution [X, T] of an encoder."""
    return blocks(p, bits) if name == "blocks" else encoder(p, bits, name)


def bits_per_token(joint: torch.Tensor, q: torch.Tensor) -> float:
    """I(X; Y) in bits when T is coupled with a row q [V]."""
    sent = joint.sum(0)
    table = coupled(sent.tolist(), q.tolist()).joint()
    return information(joint / sent @ table)


def rows(models: Models) -> list[torch.Tensor]:
    """The target's rows [V] after the prompts of stories."""
    target, couplings = models["target"], []
    for prompt in prompts("stories", TEXTS):
        ids = torch.tensor([target.encode(prompt)], device=target.model.device)
        with torch.inference_mode():
            couplings.append(target.model(ids).logits[0, -1].double().softmax(-1).cpu())
    return couplings


def read(trace: Trace) -> list[bool]:
    """Whether each letter of a text is decoded right, for the letters whose rows offered more than twice
    H(T): by the belief at the token where they had.
    """
    readings, offered, budget, open_letter = [], 0.0, 0.0, False
    for step in trace.steps:
        beliefs = [e for e in step.of(Measure) if e.name == ScoreName.BELIEF]
        if len(beliefs) == 2:  # a letter begins with this token
            offered, open_letter = 0.0, True
            budget = -sum(p * math.log2(p) for p in beliefs[0].parts.values() if p > 0)
        offered += sum(e.entropy for e in step.of(Distribution)) / math.log(2)
        if beliefs and open_letter and offered > 2 * budget:
            readings.append(beliefs[-1].total == max(beliefs[-1].parts.values()))
            open_letter = False
    return readings


def letters(models: Models) -> list[bool]:
    """Whether the drawn letters are decoded, over prompts and seeds; a letter ends only when the belief has
    become certain enough.
    """
    target, readings = models["target"], []
    settings = {"weights": WEIGHTS, "confidence": 0.9999}
    for prompt in progress.each(prompts("stories", TEXTS)):
        for seed in progress.each(range(SEEDS)):
            lane = Lane("coupling", target.encode(prompt), models, settings, seed, Limits(TOKENS))
            readings += read(lane.run())
    return readings


def chi_square(q: torch.Tensor) -> float:
    """The p-value of a chi-square test of many messages' first tokens against q [V]; letters are uniform."""
    count, draws = len(WEIGHTS), torch.Generator().manual_seed(0)
    table = coupled([1 / count] * count, q.tolist())
    sent = torch.randint(count, (DRAWS,), generator=draws).bincount(minlength=count)
    seen = torch.zeros(len(q), dtype=torch.long)
    for t, times in enumerate(sent.tolist()):
        tokens = torch.multinomial(table.row(t), times, replacement=True, generator=draws)
        seen += tokens.bincount(minlength=len(q))
    common = [y for y in range(len(q)) if DRAWS * float(q[y]) >= 5]
    pairs = [(int(seen[y]), DRAWS * float(q[y])) for y in common]
    rest = DRAWS - sum(n for _, n in pairs), DRAWS - sum(e for _, e in pairs)
    chi = sum((n - e) ** 2 / e for n, e in [*pairs, rest] if e > 0)
    return float(torch.special.gammaincc(torch.tensor(len(pairs) / 2), torch.tensor(chi / 2)))


def settings(models: Models) -> list[Setting]:
    """Every budget, with the same source and the same rows of the target."""
    p = torch.tensor(WEIGHTS, dtype=torch.float64) / sum(WEIGHTS)
    given = {"p": p, "couplings": rows(models)}
    return [Setting((bits,), parameters={"bits": bits, **given}) for bits in BUDGETS]


def sent(models: Models, bits: float, p: torch.Tensor, couplings: list[torch.Tensor]) -> Row:
    """What every encoder sends within a budget, and what one token reveals."""
    joints = {name: encoded(p, bits, name) for name in ENCODERS}
    return {
        **{f"H(T) {name}": entropy(joint.sum(0)) for name, joint in joints.items()},
        "I(X;T) between": information(joints["between"]),
        **{f"I(X;Y) {name}": revealed(joint, couplings) for name, joint in joints.items()},
    }


def revealed(joint: torch.Tensor, couplings: list[torch.Tensor]) -> float:
    """Bits of the letter that one token reveals, averaged over rows [V]."""
    return fmean([bits_per_token(joint, q) for q in couplings])


SWEEP = Sweep(
    names=("R",),
    settings=settings,
    decode=sent,
    says=lambda rows: [
        "The greedy search sends at least as many bits as blocks do at "
        f"{sum(row['H(T) greedy'] >= row['H(T) blocks'] - 1e-9 for row in rows)} of {len(rows)} budgets."
    ],
    chart=Curves(
        "What a budget lets through",
        "budget R, bits per letter",
        "bits per letter",
        {name: ("R", name) for name in (*(f"H(T) {one}" for one in ENCODERS), REVEALED)},
    ),
    one_process=True,
)


def run(models: Models) -> Result:
    """The sweep, and letters that are hidden in texts."""
    with progress.part(0.3):
        made = swept(models, SWEEP)
    p, couplings = (made.settings[0].parameters[name] for name in ("p", "couplings"))
    hidden, p_values = letters(models), [chi_square(q) for q in couplings]
    low, high = wilson(sum(hidden), len(hidden)) if hidden else (0.0, 1.0)
    after = [
        f"Without a budget a letter has {entropy(p):.2f} bits and a token carries "
        f"{revealed(torch.diag(p), couplings):.2f} of them; drawn without a coupling, it carries none.",
        f"{sum(hidden)} of {len(hidden)} letters ({low:.0%} to {high:.0%}) are right once the rows have "
        "offered twice their bits.",
        f"First tokens of {DRAWS:,} messages against the model's row: p of chi-square "
        f"{', '.join(f'{x:.2f}' for x in p_values)}.",
    ]
    return concluded(made, SWEEP, after=after)


def finding(answer: dict) -> str:
    """The maximum that one token reveals of a letter."""
    largest = max(row[REVEALED] for row in rows_of(answer))
    return (
        f"A single token carries up to {two(largest)} bits of a hidden message, although it is drawn from "
        "the model's own distribution."
    )


STANDS = Basis(exact="bits are computed from the probabilities of the coupling")
