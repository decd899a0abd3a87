"""First finish search: several samples in parallel; the answer is the first that ends, or the majority of the
first few.

Agarwal et al. (2025), the synchronous form. Waiting for all samples and voting is self-consistency (Wang et
al. 2022).
"""

from collections import Counter
from collections.abc import Iterator

from decoders.lane import Lane
from decoders.parameters import integer
from decoders.registry import strategy
from decoders.sampling.sampling_parameters import PROCESSORS, SHAPING
from decoders.sampling.side_by_side import Sample, step, take
from decoders.strategy import Part
from decoders.trace.scores import ScoreName


def too_many_finishers(parameters: dict) -> str | None:
    """The message to show if more samples are waited for than are drawn."""
    samples, finishers = parameters["num_samples"], parameters["finishers"]
    if finishers > samples:
        return f"finishers is {finishers}, but only {samples} samples are drawn; ask for no more than those."
    return None


@strategy(
    name="first_finish",
    title="First finish search",
    family="search",
    parameters=(
        integer("num_samples", 4, "Samples drawn side by side.", low=1, high=64),
        integer(
            "finishers",
            1,
            "Finished samples to wait for; with several, the most frequent last line wins. With all of them "
            "it is self-consistency.",
            low=1,
            high=64,
        ),
        *SHAPING,
    ),
    together=too_many_finishers,
    papers=("first-finish-search",),
    view="beam_tree",
    badge=lambda parameters: "sampled" if parameters["temperature"] else "deterministic",
    parts=lambda parameters: [
        PROCESSORS,
        Part("frontier", "samples", "Texts grow side by side, one token of each per forward."),
        Part(
            "stopper",
            "first finish" if parameters["finishers"] == 1 else "vote",
            "The search ends once finishers samples have ended; the others are cut off.",
        ),
    ],
)
def first_finish(lane: Lane) -> Iterator[None]:
    """Runs several samples in parallel and takes the first to finish: good where right answers are short.

    1. num_samples texts are drawn side by side, one token of each per forward.
    2. The first to write its end of text is the answer; the others are cut off. Of several in one step, the
       one with the smallest number wins.
    3. With more than one finisher, the race continues until that many have ended; their last lines vote, and
       the first of those with the most votes is the answer.

    Samples that the limit cuts off never count; if none has ended, the one with the highest mean
    log-probability is taken. Sample number i draws the same tokens however many samples run beside it; at
    temperature 0 every sample is the text of greedy decoding.
    """
    racing = [Sample(number, lane.tip) for number in range(lane.parameters["num_samples"])]
    ended: list[Sample] = []
    stuck: list[Sample] = []  # those for which the processors leave no token
    for position in range(1, lane.left + 1):
        step(lane, racing)
        stuck += [sample for sample in racing if sample.stuck]
        racing = [sample for sample in racing if not sample.stuck]
        ended += [sample for sample in racing if lane.tree.tokens[sample.node] in lane.eos]
        for sample in (s for s in racing if s in ended):
            lane.verdict(sample.node, "finished", reason=f"sample {sample.number} ends after {position}")
        racing = [sample for sample in racing if sample not in ended]
        if len(ended) >= lane.parameters["finishers"] or not racing:
            break
        yield
    winner = choose(lane, ended, [*racing, *stuck])
    for sample in (*racing, *stuck, *ended):
        why = "another sample was chosen" if sample in ended else "it had not ended"
        cut_off(lane, sample, winner, f"sample {sample.number}: {why}")
    if winner.logprobs:
        lane.record_rank(winner.node, ScoreName.MEAN_LOGPROB, winner.mean, rank=1)
    take(lane, winner)


def choose(lane: Lane, ended: list[Sample], racing: list[Sample]) -> Sample:
    """The answer; a note says why where it is not simply the first sample that ended."""
    wanted = lane.parameters["finishers"]
    if not ended:
        lane.note("No sample ended within the limit: the one with the highest mean log-probability is taken.")
        return max(racing, key=lambda sample: (sample.mean, -sample.number))
    if wanted == 1:
        if len(ended) > 1:
            lane.note(
                f"{len(ended)} samples ended in the same step; the one with the smallest number is taken."
            )
        return ended[0]
    outcomes = {sample.number: last_line(lane, sample) for sample in ended}
    outcome, votes = Counter(outcomes.values()).most_common(1)[0]
    words = outcome.decode("utf-8", "replace")
    lane.note(f"{votes} of the {len(ended)} samples that ended say {words!r} in their last line.")
    return next(sample for sample in ended if outcomes[sample.number] == outcome)


def last_line(lane: Lane, sample: Sample) -> bytes:
    """What a sample votes for: its last line that is not empty."""
    tokens = [lane.tree.tokens[node] for node in lane.tree.path(sample.node, above=lane.tip)]
    text = b"".join(lane.models["target"].bytes_of(token) for token in tokens if token not in lane.eos)
    return text.strip().split(b"\n")[-1].strip()


def cut_off(lane: Lane, sample: Sample, winner: Sample, reason: str) -> None:
    """Prunes the sample's own nodes, unless it is the winner."""
    if sample is not winner:
        dead = lane.tree.path(sample.node, above=lane.tip)
        for node in dead:
            lane.verdict(node, "pruned", reason=reason)
        lane.drop(dead)
