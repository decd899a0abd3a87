"""Does a writer gain from a reader that has seen the whole answer?

CrossNovo (2025) in miniature, on sums in place of the peptides of mass spectra. "4751+3069=" is answered with
the first digit first, so every digit depends on carries from later digits. An encoder reads the source. A
reader, which is not autoregressive, predicts the whole answer at once (CTC, twice as many frames as digits);
a writer predicts it digit by digit. First all three learn together, while the loss shifts from the reader to
the writer; then encoder and reader are frozen and the writer trains further, attending to the reader's last
hidden states and to the source, or, for comparison, to the source alone. No gradient flows back. The writer
decodes with beam search, five beams. right: shares of held-out sums whose digits are all right. The paper's
writer also gets the mass that remains; here nothing takes its place.
"""

import copy
from itertools import count
from statistics import fmean

import torch

from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from explorer.experiments import Models, Result, progress
from explorer.experiments.basis import Basis, by_pairs
from explorer.experiments.models.reader_writer import ReaderWriter, Sizes, annealed, collapsed, joint_memory
from explorer.experiments.models.small import fit
from explorer.experiments.pictures import TokenMap
from explorer.experiments.reading import percent, rows_of
from explorer.experiments.statistics import sign_test

PAPERS = ()  # none: unlike in the paper, the writer gains nothing here
DIGITS, PLUS, VOCABULARY = 4, 10, 11
SIZES = Sizes(VOCABULARY, source=2 * DIGITS + 1, answer=DIGITS + 1)
PLACES = [*range(1, DIGITS + 1), 0, *range(1, DIGITS + 1)]  # digits of one place value share a position
SUMS, BATCH, RATE = 60_000, 64, 2e-3
TOGETHER, ALONE = 1000, 400  # training steps of the two stages
SEEDS, HELD_OUT, BEAMS = 3, 400, 5
SURE = 0.05  # significance level of the sign test


def sums(how_many: int, seed: int) -> torch.Tensor:
    """Rows [R, source + answer]: two numbers, a plus between them, and their sum, first digits first."""
    generator = torch.Generator().manual_seed(seed)
    numbers = torch.randint(0, 10**DIGITS, (how_many, 2), generator=generator)
    rows = []
    for one, other in numbers.tolist():
        text = f"{one:0{DIGITS}}{other:0{DIGITS}}{one + other:0{DIGITS + 1}}"
        digits = [int(digit) for digit in text]
        rows.append([*digits[:DIGITS], PLUS, *digits[DIGITS:]])
    return torch.tensor(rows)


def halves(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(sources, answers)."""
    return rows[:, : SIZES.source], rows[:, SIZES.source :]


def source_alone(model: ReaderWriter, source: torch.Tensor) -> torch.Tensor:
    """The memory of the writer in the comparison: only the source's states, also frozen."""
    return model.encode(source).detach()


MEMORIES = {"reader and source": joint_memory, "source alone": source_alone}


def learned_together(rows: torch.Tensor, seed: int, steps: int) -> ReaderWriter:
    """The first stage: CTC for the reader and next-token loss for the writer, whose share grows."""
    torch.manual_seed(seed)
    model, step = ReaderWriter(SIZES, PLACES), count()

    def loss(some: torch.Tensor) -> torch.Tensor:
        source, answer = halves(some)
        share = annealed(next(step), steps)
        encoded = model.encode(source)
        reads = model.ctc_loss(model.read(encoded), answer)
        return share * model.token_loss(encoded, answer) + (1 - share) * reads

    fit(model.parameters(), loss, rows, steps, BATCH, RATE, seed)
    return model


def learned_on(begun: ReaderWriter, memory, rows: torch.Tensor, seed: int, steps: int) -> ReaderWriter:
    """The second stage: the writer alone, on a memory that passes no gradient back."""
    model = copy.deepcopy(begun)

    def loss(some: torch.Tensor) -> torch.Tensor:
        source, answer = halves(some)
        return model.token_loss(memory(model, source), answer)

    fit(model.of_the_writer(), loss, rows, steps, BATCH, RATE, seed)
    return model.eval()


def as_target(model: ReaderWriter, memory: torch.Tensor) -> TableModel:
    """The writer of one source as a model that any strategy can decode. memory [1, M, d]. Its prompt is one
    token, "=", which the writer replaces with its own start token.
    """

    def probs(tokens: tuple[int, ...]) -> list[float]:
        written = torch.tensor([tokens[1:]], dtype=torch.long)
        next_probs = model.write(memory, written)[0, -1].double().softmax(-1)
        return [*next_probs.tolist(), 0.0]

    return TableModel(torch.inference_mode()(probs), VOCABULARY + 1, words=[*"0123456789+="], name="writer")


def written(model: ReaderWriter, memory: torch.Tensor) -> list[int]:
    """Beam search's answer to one source."""
    target = as_target(model, memory)
    lane = Lane("beam", [VOCABULARY], {"target": target}, {"num_beams": BEAMS}, limits=Limits(SIZES.answer))
    return lane.run().output()


@torch.inference_mode()
def right(model: ReaderWriter, memory, rows: torch.Tensor) -> list[bool]:
    """Which sums the writer answers right."""
    source, answer = halves(rows)
    remembered = memory(model, source)
    each = zip(remembered, answer.tolist(), strict=True)
    return [written(model, one[None]) == wanted for one, wanted in progress.each(each)]


@torch.inference_mode()
def read_right(model: ReaderWriter, rows: torch.Tensor) -> float:
    """The share of sums that the reader answers right, by collapsing its most likely frames."""
    source, answer = halves(rows)
    frames = model.frame_head(model.read(model.encode(source))).argmax(-1)
    each = zip(frames.tolist(), answer.tolist(), strict=True)
    return fmean(collapsed(one, SIZES.blank) == wanted for one, wanted in each)


@torch.inference_mode()
def picture(model: ReaderWriter, row: torch.Tensor) -> TokenMap:
    """What the writer attends to when it writes each digit of a sum: the reader's frames and the source."""
    source, answer = halves(row)
    memory = joint_memory(model, source)
    shares = model.cross_attention(memory, answer)
    frames = model.frame_head(memory[:, : SIZES.frames]).argmax(-1)[0].tolist()
    names = [*"0123456789+_"]
    tokens = [names[one] for one in [*frames, *source[0].tolist()]]
    ahead = shares[:, : SIZES.frames].sum(1).tolist()
    rows = [
        f"{digit}: {percent(share)} at frames" for digit, share in zip(answer[0].tolist(), ahead, strict=True)
    ]
    says = (
        f"the share of the writer's attention (last layer) on each of the reader's {SIZES.frames} frames "
        "(_ is a blank) and on each token of the source after them, when it writes the digit of the row"
    )
    return TokenMap("Where the writer looks", says, tokens, rows, shares.tolist())


def run(models: Models) -> Result:
    """One row per seed: the reader, and the writer with and without the reader's states."""
    train, held = sums(SUMS, 0), sums(HELD_OUT, 1)
    rows, pictures = [], []
    for seed in progress.each(range(SEEDS)):
        with progress.part(0.6):
            begun = learned_together(train, seed, TOGETHER)
        ends = {
            name: learned_on(begun, memory, train, seed, ALONE)
            for name, memory in progress.each(MEMORIES.items(), until=0.8)
        }
        joint, alone = (right(ends[name], MEMORIES[name], held) for name in progress.each(ends))
        won = sum(one and not other for one, other in zip(joint, alone, strict=True))
        lost = sum(other and not one for one, other in zip(joint, alone, strict=True))
        rows.append([seed, read_right(begun, held), fmean(joint), fmean(alone), won, lost])
        pictures = pictures or [picture(ends["reader and source"], held[:1])]
    reads, joint, alone = (fmean(row[at] for row in rows) for at in (1, 2, 3))
    won, lost = (sum(row[at] for row in rows) for at in (4, 5))
    says = [
        f"The reader alone gets {percent(reads)} of the sums right.",
        f"The writer gets {percent(joint)} right with the reader's states and {percent(alone)} without, "
        f"after as many steps ({ALONE}) after the same first stage ({TOGETHER} steps), {SEEDS} seeds, "
        f"{HELD_OUT} held-out sums each.",
        f"{won} sums are right with the reader's states alone and {lost} without them alone (sign test: "
        f"p = {sign_test(won, lost):.3f}).",
    ]
    columns = [
        "seed",
        "right: reader",
        "right: writer, reader and source",
        "right: writer, source alone",
        "right only with the reader",
        "right only without it",
    ]
    return Result(columns, rows, says, pictures=pictures)


def finding(answer: dict) -> str:
    """The gain from the reader's states, over the seeds."""
    rows = rows_of(answer)
    joint = fmean(row["right: writer, reader and source"] for row in rows)
    alone = fmean(row["right: writer, source alone"] for row in rows)
    won, lost = (
        sum(row[column] for row in rows) for column in ("right only with the reader", "right only without it")
    )
    verb = "does not surely gain" if sign_test(won, lost) > SURE else "gains" if won > lost else "loses"
    return (
        f"A writer that adds two numbers from the first digit on {verb} from a reader that has seen the "
        f"whole answer: {percent(joint)} of the sums are right with it, {percent(alone)} without."
    )


def stands(answer: dict) -> Basis:
    """Seeds of the training, and held-out sums."""
    names = "right: writer, reader and source", "right: writer, source alone"
    gaps = [row[names[0]] - row[names[1]] for row in rows_of(answer)]
    compared = by_pairs("right sums, with the reader's states against without", gaps)
    reader = [row["right: reader"] for row in rows_of(answer)]
    spread = (
        f"by seed the reader alone is right in {percent(min(reader))} to {percent(max(reader))} of the sums"
    )
    return Basis({"held-out sums": HELD_OUT}, len(gaps), spread, compared=[compared])
