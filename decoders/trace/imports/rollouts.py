"""Rollouts of reinforcement learning, one record a line: prime-rl's token export, dumps of verl
(`trainer.rollout_data_dir`) and samples of slime.

Trainers name tokens by their ids, and the files have no vocabulary: a token is shown as its id in brackets.
"""

import math
from typing import Any

from decoders.trace.imports.answer import NO_SCALE, Answer, Unlisted, Written, check_size, nats
from decoders.trace.scores import ScoreName

IDS = "The file names tokens by their ids alone (⟨7⟩)."
ROLLOUT = (
    "Log-probabilities are the rollout engine's; those of the trainer differ from them by the divergence."
)
LOGPROBS = ("inference_logprobs", "trainer_logprobs")


def is_prime(record: dict) -> bool:
    """Whether a record is of prime-rl's token export."""
    return {"token_ids", "loss_mask", "inference_logprobs"} <= record.keys()


def is_verl(record: dict) -> bool:
    """Whether a record is of verl's dump of generations."""
    return {"input", "output", "score"} <= record.keys() and isinstance(record["output"], str)


def is_slime(record: dict) -> bool:
    """Whether a record is a sample of slime."""
    return {"tokens", "response", "response_length"} <= record.keys()


def prime(record: dict) -> Answer:
    """The tokens that were trained on; those before the first of them are the prompt."""
    kept = [at for at, trained in enumerate(record["loss_mask"]) if trained]
    first = kept[0] if kept else 0
    ids, own, trainers = (column(record, name, first) for name in ("token_ids", *LOGPROBS))
    check_size(len(ids), 0)
    rows = zip(column(record, "mismatch_kl", first), own, trainers, strict=True)
    measures = {
        ScoreName.DIVERGENCE: [k3(rollout, trainer) if kl is None else kl for kl, rollout, trainer in rows],
        ScoreName.ENTROPY: column(record, "entropy", first),
    }
    rewards = (record.get("rewards") or ())[first:]
    prompt = "".join(f"⟨{token}⟩" for token in record["token_ids"][:first])
    return Answer(
        "prime-rl",
        of_ids(ids, own),
        prompt=prompt or None,
        ids=tuple(map(int, record["token_ids"])),
        measures={name: values for name, values in measures.items() if any(v is not None for v in values)},
        score=next((float(reward) for reward in rewards if isinstance(reward, int | float)), None),
        notes=[IDS, ROLLOUT],
    )


def verl(record: dict) -> Answer:
    """The text that was written; verl's dump has no tokens."""
    output, given = record["output"], record["input"]
    score = record["score"]
    return Answer(
        "verl",
        [Written(Unlisted(output.encode(), 0, None), [])],
        prompt=given if isinstance(given, str) and given else None,
        text=output,
        scale=NO_SCALE,
        score=float(score) if isinstance(score, int | float) else None,
        notes=[f"The right answer: {str(record['gts'])[:200]}"] if record.get("gts") is not None else [],
    )


def slime(record: dict) -> Answer:
    """The tokens of the response, the last `response_length` of all."""
    ids, length = record["tokens"], record["response_length"]
    check_size(length, 0)
    own = record.get("rollout_log_probs") or [None] * length
    prompt, reward = record.get("prompt"), record.get("reward")
    return Answer(
        "slime",
        of_ids(ids[-length:], [nats(value) for value in own]),
        prompt=prompt if isinstance(prompt, str) and prompt else None,
        ids=tuple(map(int, ids)),
        score=float(reward) if isinstance(reward, int | float) else None,
        notes=[IDS, f"The response as text: {record['response'][:500]}"],
    )


def column(record: dict, name: str, first: int) -> list:
    """A column of a record from a token on; empty places where it is missing. Log-probabilities are checked
    to be numbers.
    """
    length = len(record["token_ids"])
    values = record.get(name) or [None] * length
    if len(values) != length:
        raise ValueError(name)
    return values[first:] if name == "token_ids" else [nats(value) for value in values[first:]]


def of_ids(ids: list[int], own: list[float | None]) -> list[Written]:
    """Tokens that are known by their ids."""
    return [
        Written(Unlisted(f"⟨{int(token)}⟩".encode(), 0, value), [])
        for token, value in zip(ids, own, strict=True)
    ]


def k3(rollout: Any, trainer: Any) -> float | None:
    """The divergence of the trainer from the rollout at a token, in nats: r - 1 - log r, r being the ratio of
    their probabilities (Schulman's k3, which is never below 0); None without both.
    """
    if rollout is None or trainer is None:
        return None
    log_ratio = trainer - rollout
    return math.exp(min(log_ratio, 20.0)) - 1 - log_ratio
