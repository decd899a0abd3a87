"""Minimum Bayes risk: takes the one of several samples that is most similar to all of them.

Kumar and Byrne (2004); with samples as hypotheses and as references Eikema and Aziz (2020), "Is MAP Decoding
All You Need?".
"""

from collections import Counter
from collections.abc import Callable, Iterator

from decoders.lane import Lane
from decoders.parameters import choice, integer
from decoders.registry import strategy
from decoders.sampling.sampling_parameters import ENDS, PROCESSORS, SHAPING
from decoders.sampling.side_by_side import Sample, grown, take
from decoders.search.planned.discourse_units import f1
from decoders.strategy import Part
from decoders.trace.scores import ScoreName

LONGEST_NGRAM, BETA = 6, 2.0  # of chrF


def word_f1(text: str, reference: str) -> float:
    """The harmonic mean of the two texts' shares of common words; 1 for two empty texts."""
    if not text.split() and not reference.split():
        return 1.0
    return f1(Counter(text.split()), Counter(reference.split()))


def chrf(text: str, reference: str) -> float:
    """chrF (Popović 2015), from 0 to 1: the F-score of character n-grams without spaces, precision and recall
    each averaged over n = 1 ... 6; recall counts BETA times as much.
    """
    text, reference = "".join(text.split()), "".join(reference.split())
    pairs = [(ngrams(text, n), ngrams(reference, n)) for n in range(1, LONGEST_NGRAM + 1)]
    pairs = [(ours, theirs) for ours, theirs in pairs if ours and theirs]
    if not pairs:
        return float(text == reference)
    precision = sum((ours & theirs).total() / ours.total() for ours, theirs in pairs) / len(pairs)
    recall = sum((ours & theirs).total() / theirs.total() for ours, theirs in pairs) / len(pairs)
    return f_of(precision, recall, BETA)


def ngrams(text: str, n: int) -> Counter:
    """Counts of each run of n characters."""
    return Counter(text[i : i + n] for i in range(len(text) - n + 1))


def f_of(precision: float, recall: float, beta: float) -> float:
    """The F-score of precision and recall; 0 if both are."""
    below = beta**2 * precision + recall
    return (1 + beta**2) * precision * recall / below if below else 0.0


UTILITIES: dict[str, Callable[[str, str], float]] = {
    "chrF": chrf,
    "word F1": word_f1,
    "same text": lambda text, reference: float(text.strip() == reference.strip()),
}


def too_many_returned(parameters: dict) -> str | None:
    """The message to show if more texts are asked for than are drawn."""
    samples, wanted = parameters["num_samples"], parameters["num_return_sequences"]
    if wanted > samples:
        return f"num_return_sequences is {wanted}, but only {samples} samples are drawn; ask for fewer."
    return None


@strategy(
    name="mbr",
    title="Minimum Bayes risk",
    family="search",
    parameters=(
        integer("num_samples", 8, "Samples drawn side by side.", low=2, high=64),
        choice("utility", "chrF", "How the similarity of two texts is measured.", UTILITIES),
        integer("num_return_sequences", 1, "Samples to return, best first.", low=1, high=64),
        *SHAPING,
        *ENDS,
    ),
    together=too_many_returned,
    view="beam_tree",
    badge=lambda parameters: "sampled" if parameters["temperature"] else "deterministic",
    parts=lambda parameters: [
        PROCESSORS,
        Part("frontier", "samples", "Texts grow side by side, one token of each per forward."),
        Part("value", parameters["utility"], "A text's mean utility against all samples, itself included."),
    ],
)
def mbr(lane: Lane) -> Iterator[None]:
    """Samples several texts and takes the one that agrees most with the others.

    1. num_samples texts are drawn side by side from the model, one token of each per forward.
    2. Each is compared with all of them, as an estimate of what the model might write: its expected utility
       is `mean_r u(h, r)` over all samples r, itself included.
    3. The text h with the highest one is the answer; ties go to the sample with the smaller number.

    A likely text that is unlike all others loses; a rare mistake in one sample is outvoted. With the utility
    "same text" the answer is the most frequent text. At temperature 0 every sample is the text of greedy
    decoding.
    """
    samples = [Sample(number, lane.tip) for number in range(lane.parameters["num_samples"])]
    yield from grown(lane, samples)
    texts = [sample_text(lane, sample) for sample in samples]
    utility = UTILITIES[lane.parameters["utility"]]
    values = [sum(utility(text, other) for other in texts) / len(texts) for text in texts]
    order = sorted(range(len(samples)), key=lambda i: -values[i])
    for rank, i in enumerate(order, 1):
        parts = {"sum_logprob": sum(samples[i].logprobs)}
        lane.record_rank(samples[i].node, ScoreName.EXPECTED_UTILITY, values[i], rank, **parts)
    take(lane, samples[order[0]])


def sample_text(lane: Lane, sample: Sample) -> str:
    """The text of a sample, without end-of-text tokens."""
    tokens = [lane.tree.tokens[node] for node in lane.tree.path(sample.node, above=lane.tip)]
    text = b"".join(lane.models["target"].bytes_of(token) for token in tokens if token not in lane.eos)
    return text.decode("utf-8", "replace")
