"""Must a list of labels be decoded?

Eight topics, and short invented stories about one to three of them each: which ones? A trie search writes
only labels from the list, after examples or after a prompt of eight vectors that was tuned for it. The study
(PTEC) drops decoding: a tuned prompt and one linear layer on the last state give every label a probability of
its own, in one forward. The stories are read by the small draft model, which stays unchanged; only the
vectors and the layer are tuned, on stories that lack two words of each topic. F1: over all labels of all
stories; all right: stories whose set of labels is the right one; confidence: mean confidence in the predicted
labels, and right: the share of these that are right; calibration error: how far the two differ in five bins.
ms: on this machine, for one story, the median of all. Simpler than in the study: 8 vectors instead of 100,
and 600 steps at one rate for both, .01 instead of .003 for the vectors and .00001 for the layer.
"""

from collections.abc import Callable
from statistics import fmean, median

import torch

from decoders.constraints.automaton import OfBytes
from decoders.constraints.kinds import vocabulary_of
from decoders.constraints.labels import Labels
from explorer.experiments import Chart, Line, Models, Result, progress
from explorer.experiments.asked import Timed, timed
from explorer.experiments.basis import Basis, by_shares
from explorer.experiments.models.small import fit
from explorer.experiments.models.tuned_prompt import (
    Answer,
    LabelHead,
    TunedPrompt,
    answer_loss,
    label_loss,
    padded,
    positive_weights,
    trie_search,
)
from explorer.experiments.reading import Row, rows_with, two
from explorer.experiments.small_trainings.toy_topics import LABELS, Story, stories
from explorer.experiments.sweep import Setting, Sweep, concluded, swept
from visualizers.analysis.calibration import binned, calibration_error

PAPERS = ("prompt-tuned-embedding-classification-for-multi-label",)
ASK = "\nTopics:"
LEARNED, HELD, EXAMPLES = 1000, 120, 4  # stories
STEPS, BATCH, RATE = 600, 8, 1e-2
ALONE_STEPS, ALONE_BATCH = 1000, 64  # for training only the linear layer, on states computed once
SURE = 0.5  # minimum probability of the labels that the head predicts
BINS = 5
SHOWN, TUNED = "trie search, {} examples", "trie search, tuned prompt"
PLAIN, PTEC = "head, no prompt", "head, tuned prompt"
UNWEIGHED = "head, tuned prompt, labels not weighted"


def question(story: Story) -> str:
    return story.text + ASK


def shots(examples: list[Story]) -> str:
    """Stories with their topics, to put before a question."""
    return "".join(f"{question(one)} {', '.join(one.topics)}\n\n" for one in examples)


def wanted_of(some: list[Story]) -> torch.Tensor:
    """The labels of each story [N, C]."""
    return torch.tensor([[float(label in one.topics) for label in LABELS] for one in some])


def tuned_head(models: Models, some: list[Story], seed: int = 0) -> LabelHead:
    """Trains a prompt and a linear layer together."""
    target = models["draft"]
    head = LabelHead(TunedPrompt(target.model, seed), len(LABELS), seed)
    tokens, last, _ = padded([target.encode(question(one)) for one in some])
    wanted = wanted_of(some)
    weights = positive_weights(wanted)

    def loss(rows: torch.Tensor) -> torch.Tensor:
        return label_loss(head(tokens[rows], last[rows]), wanted[rows], weights)

    fit(head.parameters(), loss, torch.arange(len(some)), STEPS, BATCH, RATE, seed)
    return head


def head_alone(
    models: Models, prompt: TunedPrompt, some: list[Story], weighed: bool, seed: int = 0
) -> LabelHead:
    """Trains a linear layer on the states after a frozen prompt."""
    target = models["draft"]
    head = LabelHead(prompt, len(LABELS), seed)
    tokens, last, _ = padded([target.encode(question(one)) for one in some])
    with torch.inference_mode():
        parts = zip(tokens.split(100), last.split(100), strict=True)
        states = torch.cat([prompt.last_state(*part) for part in parts]).clone()
    wanted = wanted_of(some)
    weights = positive_weights(wanted) if weighed else torch.ones(len(LABELS))

    def loss(rows: torch.Tensor) -> torch.Tensor:
        return label_loss(head.scores(states[rows]), wanted[rows], weights)

    fit(head.scores.parameters(), loss, torch.arange(len(some)), ALONE_STEPS, ALONE_BATCH, RATE, seed)
    return head


def tuned_prompt(models: Models, some: list[Story], seed: int = 0) -> TunedPrompt:
    """Trains a prompt after which the model writes the topics of a story."""
    target = models["draft"]
    prompt, end = TunedPrompt(target.model, seed), min(target.eos)
    texts = [target.encode(question(one)) for one in some]
    answers = [
        [*target.encode_after(text, " " + ", ".join(one.topics)), end]
        for text, one in zip(texts, some, strict=True)
    ]
    tokens, _, targets = padded(texts, answers)
    fit(
        prompt.parameters(),
        lambda rows: answer_loss(prompt, tokens[rows], targets[rows]),
        torch.arange(len(some)),
        STEPS,
        BATCH,
        RATE,
        seed,
    )
    return prompt


def searcher(models: Models, prompt: TunedPrompt, before: str = "") -> Callable[[Story], Answer]:
    """A trie search over the labels, with a text before each question."""
    target = models["draft"]
    constraint = OfBytes(Labels(list(LABELS)), vocabulary_of(target, target.eos))

    def named(tokens: list[int]) -> list[int]:
        ended = tokens[-1] in target.eos
        text = b"".join(target.bytes_of(token) for token in tokens if token not in target.eos).decode()
        pieces = [piece.strip() for piece in text.split(",")]
        return [LABELS.index(piece) for piece in (pieces if ended else pieces[:-1])]

    def ask(story: Story) -> Answer:
        text = target.encode(before + question(story))
        return trie_search(prompt, text, constraint, target.eos, named)

    return ask


def labels(answer: Answer) -> set[int]:
    """The predicted labels: all that a search has written, or those that the head is sure of."""
    return {label for label, p in answer.confidence.items() if p >= SURE or answer.forwards > 1}


def settings(models: Models) -> list[Setting]:
    """All ways, whose prompts and heads are trained here, on the same stories."""
    target = models["draft"]
    learned, none = stories(LEARNED, 0, True), TunedPrompt(target.model, length=0)
    ways: dict[str, Callable[[Story], Answer]] = {
        SHOWN.format(EXAMPLES): searcher(models, none, shots(stories(EXAMPLES, 2, True)))
    }
    with progress.part(0.5):
        ways[TUNED] = searcher(models, tuned_prompt(models, learned))
    with progress.part(0.6):
        ptec = tuned_head(models, learned)
    heads = {
        PLAIN: head_alone(models, none, learned, True),
        PTEC: ptec,
        UNWEIGHED: head_alone(models, ptec.prompt, learned, False),
    }
    for name, head in heads.items():
        ways[name] = lambda story, head=head: head.answer(target.encode(question(story)))
    held = [(one, {LABELS.index(topic) for topic in one.topics}) for one in stories(HELD, 1, False)]
    return [Setting((name,), parameters={"ask": ask}, cases=held) for name, ask in ways.items()]


def predicted(some: list[Timed]) -> list[tuple[float, bool]]:
    """(confidence, right) of each predicted label."""
    return [
        (one.answer.confidence[label], label in one.right) for one in some for label in labels(one.answer)
    ]


def measures(some: list[Timed], _: list[Timed]) -> Row:
    """What an answer costs, how many labels are right, and how well the confidence is calibrated."""
    pairs = predicted(some)
    both = [(labels(one.answer), one.right) for one in some]
    return {
        "forwards": fmean(one.answer.forwards for one in some),
        "read": fmean(one.answer.read for one in some),
        "ms": 1000 * median(one.seconds for one in some),
        "F1": 2 * sum(len(a & b) for a, b in both) / sum(len(a) + len(b) for a, b in both),
        "all right": fmean(a == b for a, b in both),
        "confidence": fmean(p for p, _ in pairs) if pairs else None,
        "right": fmean(came for _, came in pairs) if pairs else None,
        "calibration error": calibration_error(pairs, BINS) if pairs else None,
    }


def says(rows: list[Row]) -> list[str]:
    """The head against the search, the head without a tuned prompt, and the one without weights."""
    by_way = {row["way"]: row for row in rows}
    search, head, plain, other = (by_way[name] for name in (TUNED, PTEC, PLAIN, UNWEIGHED))
    return [
        f"The head takes {head['forwards']:.0f} forward and {head['ms']:.0f} ms per story, the search after "
        f"a tuned prompt {search['forwards']:.1f} forwards and {search['ms']:.0f} ms.",
        f"F1 is {head['F1']:.2f} for the head and {search['F1']:.2f} for the search; the head without a "
        f"tuned prompt has {plain['F1']:.2f}.",
        f"The calibration error is {error(head)} for the head and {error(search)} for the search. The study "
        "weights the labels that a story has; a layer that is trained again without these weights has "
        f"{error(other)}.",
        "A new label is a new path of the trie; the head has no row for it until it is trained again.",
    ]


SWEEP = Sweep(names=("way",), settings=settings, decode=timed, measures=measures, says=says, one_process=True)


def run(models: Models) -> Result:
    """The sweep, with how far the confidence can be believed."""
    made = swept(models, SWEEP)
    pairs = {row["way"]: predicted(some) for row, some in zip(made.rows, made.outcomes, strict=True)}
    lines = [
        Line(name, [[one["mean"], one["share"]] for one in binned(some, BINS)])
        for name, some in pairs.items()
        if some and name != PLAIN
    ]
    lines.append(Line("confidence that can be believed", [[0.0, 0.0], [1.0, 1.0]]))
    chart = Chart("Is the confidence calibrated?", "confidence", "share that is right", lines)
    return concluded(made, SWEEP, chart=chart)


def error(row: Row) -> str:
    """The calibration error, if any label was predicted."""
    return "unknown" if row["calibration error"] is None else f"{row['calibration error']:.3f}"


def finding(answer: dict) -> str:
    """Cost and F1 of the head against those of the search."""
    (head,), (search,) = rows_with(answer, "way", PTEC), rows_with(answer, "way", TUNED)
    return (
        f"A linear head after a tuned prompt finds topics with an F1 of {two(head['F1'])} in one forward, "
        f"and a trie search after a tuned prompt with {two(search['F1'])} in {search['forwards']:.1f}."
    )


def stands(answer: dict) -> Basis:
    """Held-out stories; head and prompts were trained once."""
    (head,), (search,) = rows_with(answer, "way", PTEC), rows_with(answer, "way", TUNED)
    shares = head["all right"], search["all right"]
    compared = by_shares("stories with all labels right, head against search", *shares, HELD)
    return Basis({"held-out stories": HELD}, trained=1, compared=[compared])
