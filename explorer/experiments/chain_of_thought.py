"""What can a model compute step by step but not at once?

The word problem: multiply the letters of a word over a finite group, here Z2 (parity), S3 (solvable) or A5
(not solvable: no circuit of constant depth is known to do it). A letter is one of a few generators of the
group. Small models of two layers read the word and may write down running products before the answer: none,
about log2 n equally spaced ones, or all n. Each is trained on fresh words of 1 to 16 letters with the
products given; then it writes alone, greedily. The second part asks the target itself: sums in steps and word
problems, once with the steps that it was trained to write, once with the answer forced to come first. It
never learned to answer at once, so only the first part shows what training could reach.
"""

import math
from collections.abc import Callable
from statistics import fmean

import torch
from torch.nn import functional as F
from transformers import LlamaForCausalLM

from decoders.logits.distributions import entropies
from explorer.experiments import Chart, Line, Models, Result, progress
from explorer.experiments.asked import decoded, text_of
from explorer.experiments.basis import Basis, by_shares
from explorer.experiments.models.group_words import BUDGETS, Batch, Group, batch, groups, points
from explorer.experiments.models.small_llama import small_llama
from explorer.experiments.pictures import Heat, Strip
from explorer.experiments.reading import Row, grouped, percent, rows_with
from explorer.experiments.sweep import Setting, Sweep, concluded, swept
from explorer.tasks import HELD_OUT_SEED, problems
from explorer.tasks.problem import Problem, lines

PAPERS = ("the-expressive-power-of-transformers-with-chain",)
LONGEST, LENGTHS = 16, (2, 4, 8, 12, 16)
WIDTH, LAYERS, HEADS = 64, 2, 4
STEPS = {"Z2": 200, "S3": 250, "A5": 600}  # enough to learn the products; the same for all budgets
BATCH, RATE, RISES = 64, 3e-3, 50
WORDS = 256  # test words of each length
ASKED, COUNT, TOKENS = ("chain", "word_problem", "column_sum"), 40, 60
UNSURE = "highest entropy"
FIRST = "answer"  # forced beginning where the target must answer at once
Budget = Callable[[int], int]


def loss(model: LlamaForCausalLM, words: Batch) -> torch.Tensor:
    """Nats per written token, given the correct products before it."""
    return F.cross_entropy(scores(model, words).flatten(0, 1), words.labels.flatten())


def scores(model: LlamaForCausalLM, words: Batch) -> torch.Tensor:
    """Logits [B, S, V] of the written tokens, given the correct products before each."""
    states = model.model(words.ids).last_hidden_state
    return model.lm_head(states[:, -words.labels.shape[1] :])


def trained(group: Group, budget: Budget) -> LlamaForCausalLM:
    """A small model trained for STEPS of the group on batches of fresh words."""
    model = small_llama(group.order + 2, WIDTH, LAYERS, HEADS)
    adam = torch.optim.AdamW(model.parameters(), RATE, betas=(0.9, 0.98), weight_decay=0.0)
    draw = torch.Generator().manual_seed(0)
    steps = STEPS[group.name]
    for step in progress.each(range(steps)):
        lengths = torch.randint(1, LONGEST + 1, (BATCH,), generator=draw).tolist()
        value = loss(model, batch(group, budget, lengths, LONGEST, draw))
        adam.param_groups[0]["lr"] = (
            RATE * min(1, (step + 1) / RISES) * 0.5 * (1 + math.cos(math.pi * step / steps))
        )
        adam.zero_grad()
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
    return model.eval().requires_grad_(False)


@torch.inference_mode()
def right(model: LlamaForCausalLM, words: Batch) -> list[bool]:
    """Whether the answer to each word is right when the model writes all tokens itself, greedily."""
    room = words.labels.shape[1]
    ids = words.ids[:, : words.ids.shape[1] - room + 1]
    for _ in range(room):
        ids = torch.cat([ids, model(ids).logits[:, -1:].argmax(-1)], 1)
    last = (words.written - 1)[:, None]
    return (ids[:, -room:].gather(1, last) == words.labels.gather(1, last))[:, 0].tolist()


@torch.inference_mode()
def uncertain(model: LlamaForCausalLM, words: Batch) -> list[float]:
    """Mean entropy in nats of each written token for words of one length, given the correct products before
    it.
    """
    return entropies(scores(model, words).log_softmax(-1)).mean(0)[: int(words.written[0])].tolist()


def unseen(group: Group, budget: Budget, length: int) -> Batch:
    """Test words of one length, which occur in training only by chance."""
    draw = torch.Generator().manual_seed(1000 + length)
    return batch(group, budget, [length] * WORDS, LONGEST, draw)


def answer_line(text: str) -> str:
    """The first line that begins with an answer; "" if there is none."""
    return next((line for line in lines(text) if line.startswith(FIRST)), "")


def answered(models: Models, problem: Problem, at_once: bool) -> bool:
    """Whether the target's greedy answer is right, ignoring its steps."""
    forced = FIRST if at_once else ""
    trace = decoded(models, "greedy", problem.prompt + forced, TOKENS)
    text = forced + text_of(models, trace.output())
    return answer_line(text) == lines(problem.answer)[-1]


def of_target(models: Models) -> list[str]:
    """One sentence per kind of problem."""
    says = []
    for task in progress.each(ASKED):
        asked = problems(task, COUNT, HELD_OUT_SEED)
        steps, once = (fmean([answered(models, p, way) for p in asked]) for way in progress.each((0, 1)))
        says.append(
            f"The target on {task.replace('_', ' ')}s: {percent(steps)} of {COUNT} answers are right after "
            f"written steps, {percent(once)} where the answer must come first."
        )
    return says


def settings(models: Models) -> list[Setting]:
    """Every group with every budget, for each of which a model is trained here."""
    return [
        Setting(
            (group.name, name), parameters={"group": group, "budget": budget, "model": trained(group, budget)}
        )
        for group in progress.each(groups(), 0.9, lambda one: STEPS[one.name])
        for name, budget in progress.each(BUDGETS.items())
    ]


def tested(models: Models, group: Group, budget: Budget, model: LlamaForCausalLM) -> Row:
    """How often a model is right at each length, and how unsure it is."""
    return {
        f"products at {LONGEST}": budget(LONGEST),
        **{f"right at {n}": fmean(right(model, unseen(group, budget, n))) for n in LENGTHS},
        UNSURE: max(uncertain(model, unseen(group, budget, LONGEST))),
        "entropy of a guess": math.log(group.order),
    }


def says(rows: list[Row]) -> list[str]:
    """Each group's longest words, and how unsure the models are in A5."""
    sentences = []
    for name, own in grouped(rows, "group").items():
        shares = [row[f"right at {LENGTHS[-1]}"] for row in own]
        words = ", ".join(f"{percent(share)} with {b}" for share, b in zip(shares, BUDGETS, strict=True))
        order = "more products never hurt" if shares == sorted(shares) else "more products do not always help"
        sentences.append(f"{name}, words of {LENGTHS[-1]} letters: {words} written down; {order}.")
    hard = {row["written"]: row for row in rows if row["group"] == "A5"}
    return [
        *sentences,
        f"In A5 the entropy of an answer at once is {hard['none'][UNSURE]:.2f} nats, where a mere guess has "
        f"{hard['none']['entropy of a guess']:.2f}; with all products written down no token has more than "
        f"{hard['n'][UNSURE]:.3f}.",
    ]


def picture(rows: list[Row]) -> Heat:
    """The shares of right answers by group, length and budget."""
    strips = [
        Strip(name, list(BUDGETS), [[row[f"right at {n}"] for row in own] for n in LENGTHS])
        for name, own in grouped(rows, "group").items()
    ]
    says = "share of right answers; rows: products that are written down first"
    return Heat("Right answers by length of the word", says, [str(n) for n in LENGTHS], strips, 0.0, 1.0)


SWEEP = Sweep(
    names=("group", "written"),
    settings=settings,
    decode=tested,
    says=says,
    pictures=lambda rows: [picture(rows)],
    one_process=True,
)


def run(models: Models) -> Result:
    """The sweep, with how unsure the models of A5 are along a word; and the same question to the target."""
    made, curves = swept(models, SWEEP), []
    for setting in made.settings[-len(BUDGETS) :]:
        group, budget, model = setting.parameters.values()
        unsure = uncertain(model, unseen(group, budget, LONGEST))
        at = map(float, points(LONGEST, budget(LONGEST)))
        curves.append(Line(", ".join(setting.names), list(zip(at, unsure, strict=True))))
    chart = Chart("How unsure the model is of each product in A5", "letters multiplied", "nats", curves)
    return concluded(made, SWEEP, after=of_target(models), chart=chart)


def hardest(answer: dict) -> dict[str, float]:
    """Budget -> the share of right answers to the longest words in A5."""
    return {row["written"]: row[f"right at {LENGTHS[-1]}"] for row in rows_with(answer, "group", "A5")}


def finding(answer: dict) -> str:
    """A5 with all products and with none."""
    shares = hardest(answer)
    return (
        f"A small model multiplies {LENGTHS[-1]} permutations correctly in {percent(shares['n'])} of the "
        f"cases if it writes down each product, in {percent(shares['log n'])} with a few of them, and in "
        f"{percent(shares['none'])} if it must answer at once."
    )


def stands(answer: dict) -> Basis:
    """Words of each length, read by models that were trained once."""
    shares = hardest(answer)
    compared = [
        by_shares(f"right answers, all products against {name}", shares["n"], shares[name], WORDS)
        for name in ("log n", "none")
    ]
    return Basis({"words": WORDS}, trained=1, compared=compared)
