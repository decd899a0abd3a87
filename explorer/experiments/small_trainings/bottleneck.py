"""Can a model learn a sentence and forget nothing?

A discrete key-value bottleneck follows the frozen target: the last hidden state is cut into eight parts, each
part finds the nearest of 256 fixed keys, and learned values of these keys are added to the logits of 200
words. Five sentences are learned one after the other, by gradient descent on the values of the keys that they
hit. For comparison, a full matrix from states to the same words learns the same sentences with the same
steps. unchanged: positions of other texts, sampled from the target, whose logits stay the same to the last
bit. The study classifies images whose classes arrive one after the other; this is a small port to next-token
prediction.
"""

import torch
from torch.nn import functional as F

from explorer.experiments import Cell, Chart, Line, Models, Result, progress
from explorer.experiments.basis import Basis
from explorer.experiments.models.key_value_bottleneck import Bottleneck, bottleneck, learn
from explorer.experiments.models.small import own_text, words
from explorer.experiments.pictures import TokenMap
from explorer.experiments.reading import moved, percent, rows_with

PAPERS = ("discrete-key-value-bottleneck",)
BOOKS, KEYS, WORDS = 8, 256, 200
ROWS, OTHERS, LENGTH = 96, 16, 64  # texts from which keys are placed; held-out texts; tokens of each
STEPS, RATE = 40, 1.0
SENTENCES = (
    "The blue fox keeps a golden spoon under the old bridge.",
    "Every Tuesday the moon sends a letter to the baker.",
    "My grandmother paints small green dragons on her shoes.",
    "The king of the mice drinks cold tea with a ladder.",
    "Seven silver birds carried the clock over the river.",
)


class Dense:
    """A full matrix [W, d] from states to the logits of the same words, initialised with zeros."""

    def __init__(self, states: torch.Tensor, targets: torch.Tensor):
        self.words = targets
        self.matrix = torch.zeros(len(targets), states.shape[-1])

    def process(self, logits: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        """Logits [..., V] with the matrix's contribution."""
        return logits.index_add(-1, self.words, states @ self.matrix.t())

    def learn(self, logits: torch.Tensor, states: torch.Tensor, wanted: torch.Tensor) -> None:
        """Like `learn` of the bottleneck: a step moves a position's logits by RATE times their gradient, as
        if it were the only position.
        """
        for _ in range(STEPS):
            gradient = self.process(logits, states).softmax(-1)
            gradient[torch.arange(len(wanted)), wanted] -= 1
            moves = gradient[:, self.words] / states.square().sum(-1, keepdim=True)
            self.matrix -= RATE * moves.t() @ states


Seen = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # logits [T, V], states [T, d], next tokens [T]


@torch.no_grad()
def seen(models: Models, rows: torch.Tensor) -> Seen:
    """The target's logits and states at each position of rows [N, T + 1] that has a next token."""
    model = models["target"].model
    rows = rows.to(model.device)
    out = model(input_ids=rows[:, :-1], output_hidden_states=True)
    parts = out.logits.float(), out.hidden_states[-1].float(), rows[:, 1:]
    return tuple(part.flatten(0, 1).cpu() for part in parts)


def loss(model: Bottleneck | Dense, text: Seen) -> float:
    """Loss on a text, in nats per token."""
    logits, states, wanted = text
    return float(F.cross_entropy(model.process(logits, states), wanted))


def target_tokens(models: Models, rows: torch.Tensor, sentences: list[torch.Tensor]) -> torch.Tensor:
    """The words of the sentences and the most frequent ones of the texts, at most WORDS."""
    own = torch.cat([one.flatten() for one in sentences]).unique()
    counts = rows.flatten().bincount(minlength=models["target"].engine.vocabulary)
    counts[own] = counts.max() + 1
    return counts.argsort(descending=True, stable=True)[: max(WORDS, len(own))]


def run(models: Models) -> Result:
    """One row per way and number of learned sentences."""
    with progress.part(0.5):
        rows = own_text(models, ROWS + OTHERS, LENGTH)
    begin = [min(models["target"].eos, default=0)]
    sentences = [torch.tensor([[*begin, *models["target"].cut(text)]]) for text in SENTENCES]
    targets = target_tokens(models, rows[:ROWS], sentences)
    _, states, _ = seen(models, rows[:ROWS])
    others, known = seen(models, rows[ROWS:]), [seen(models, sentence) for sentence in sentences]
    keyed, dense = bottleneck(states, targets, BOOKS, min(KEYS, len(states))), Dense(states, targets)
    ways = {"key-value bottleneck": keyed, "full matrix": dense}
    table: list[list[Cell]] = [[name, 0, *measured(way, known, others, 0)] for name, way in ways.items()]
    for count in progress.each(range(1, len(known) + 1)):
        learn(keyed, *known[count - 1], STEPS, RATE)
        dense.learn(*known[count - 1])
        table += [[name, count, *measured(way, known, others, count)] for name, way in ways.items()]
    columns = ["way", "learned", "first sentence", "newest sentence", "mean of learned", "unchanged", "KL"]
    lines = [Line(name, [[float(row[1]), row[2]] for row in table if row[0] == name]) for name in ways]
    chart = Chart("The first sentence while others are learned", "sentences learned", "nats per token", lines)
    return Result(columns, table, conclusions(table), chart, pictures=[touched(models, keyed, known[0])])


def measured(way: Bottleneck | Dense, known: list[Seen], others: Seen, count: int) -> list[float]:
    """Losses of the first, the newest and all learned sentences, and how far other positions stay
    unchanged.
    """
    losses = [loss(way, text) for text in known]
    logits, states, _ = others
    after = way.process(logits, states)
    same = (after == logits).all(-1).float().mean()
    old, new = logits.log_softmax(-1), after.log_softmax(-1)
    away = (old.exp() * (old - new)).sum(-1).mean()
    learned = losses[: max(count, 1)]
    return [losses[0], learned[-1], sum(learned) / len(learned), float(same), float(away)]


def touched(models: Models, keyed: Bottleneck, text: Seen) -> TokenMap:
    """How much each codebook's key raises the logit of the next word of the first sentence."""
    _, states, wanted = text
    books, column = torch.arange(len(keyed.keys)), {w: at for at, w in enumerate(keyed.words.tolist())}
    at = torch.tensor([column[token] for token in wanted.tolist()])
    raised = keyed.values[books, keyed.hit(states)].gather(-1, at[:, None, None].expand(-1, BOOKS, 1))
    values = raised[..., 0].t().clamp(min=0.0)  # [C, T]
    title = "What the keys that the first sentence hits add to its next word"
    rows = [f"codebook {book + 1}" for book in range(BOOKS)]
    shown = words(models, wanted)
    return TokenMap(title, "logits", shown, rows, values.tolist(), max(float(values.max()), 1e-6))


def conclusions(table: list[list[Cell]]) -> list[str]:
    """The conclusions, as sentences."""
    says = []
    for name in dict.fromkeys(row[0] for row in table):
        own = [row for row in table if row[0] == name]
        says.append(
            f"The {name}: the first sentence has a loss of {own[0][2]:.2f} nats per token at first, "
            f"{own[1][2]:.3f} once it is learned and {own[-1][2]:.3f} after {own[-1][1]} sentences; at "
            f"{percent(own[1][5])} of other positions nothing changes with the first, at "
            f"{percent(own[-1][5])} with all, and the mean divergence there is {own[-1][6]:.3f} nats."
        )
    return says


def finding(answer: dict) -> str:
    """What both ways preserve of the first sentence and of other texts."""
    keyed, dense = (rows_with(answer, "way", name) for name in ("key-value bottleneck", "full matrix"))
    return (
        f"After {keyed[-1]['learned']} sentences the bottleneck leaves {percent(keyed[-1]['unchanged'])} of "
        f"other positions unchanged, a full matrix {percent(dense[-1]['unchanged'])}; the loss of the first "
        f"sentence {moved(keyed[1]['first sentence'], keyed[-1]['first sentence'])} nats with the "
        f"bottleneck, and {moved(dense[1]['first sentence'], dense[-1]['first sentence'])} with the matrix."
    )


STANDS = Basis({"held-out texts": OTHERS}, trained=1)
