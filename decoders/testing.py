"""The laws that every strategy obeys, for tests of one's own: `check("my_strategy")`.

`check` decodes small tables of known probabilities, so that exact answers are known and nothing is loaded.
The project's own tests apply the same laws to tiny transformers.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from decoders import registry
from decoders.chooser import Chooser, Exhaustive
from decoders.lane import Lane, Limits
from decoders.logits.distributions import one_hot, probabilities, processors
from decoders.models.table_model import TableModel, exact_distribution
from decoders.refusal import Refusal
from decoders.trace import trace as traces
from decoders.trace.events import Commit, Distribution, Event, Forward, Propose, Step, Verdict, event_to_json
from decoders.trace.trace import Costs, Trace

NEW_TOKENS, WORDS = 8, 7
WALKED, WALKED_WORDS = 3, 2  # tokens and vocabulary of which every outcome is walked
GREEDY = (
    "lossless: equal to greedy",
    "deterministic",
    "equal to generate",
)  # no seed changes a token
EXACT = ("exact in distribution", "exact because drafts are deterministic")
MOST_HISTORIES = 20_000  # of the walk over every outcome
ADDITIVE = (
    "target_forwards",
    "target_tokens",
    "draft_forwards",
    "draft_tokens",
    "new_tokens",
    "draft_token_candidates",
)


class BrokenLaw(AssertionError):
    """One sentence that says which law a strategy broke, and with which numbers."""


def check(strategy: str, parameters: dict[str, Any] | None = None, models: dict | None = None) -> None:
    """Decodes with a registered strategy and checks every law: the trace is well formed, costs add up, one
    seed gives one text, a lane may be stopped after any step, limits are respected, and what its badge
    promises holds (equal to greedy, or the exact distribution, found by walking every outcome of its
    chooser).

    `models` are loaded models by role; by default tables, which give probabilities and no hidden states.
    Raises BrokenLaw, or Refusal if the strategy cannot run with these parameters or models.
    """
    chosen, given = parameters or {}, models or tables(WORDS)

    def start(seed: int = 0, new_tokens: int = NEW_TOKENS) -> Lane:
        prompt = [0, 1, 2, 0, 1]
        return Lane(strategy, prompt, given, chosen, seed, Limits(max_new_tokens=new_tokens))

    found = start().run()
    well_formed(found)
    one_path(found)
    costs_add_up(found)
    again = start().run()
    require(
        [events_without_clock(step) for step in found.steps]
        == [events_without_clock(step) for step in again.steps],
        "One seed gave two traces: draw through lane.chooser only, each time with another tag.",
    )
    for tokens in (1, 2, NEW_TOKENS):
        written = len(start(new_tokens=tokens).run().output())
        require(written <= tokens, f"It wrote {written} tokens where max_new_tokens was {tokens}.")
    may_be_stopped(start, found)
    keeps_its_badge(strategy, chosen, start, found, own_tables=models is None)


def well_formed(found: Trace) -> None:
    """The events fit together, the JSON form follows the schema, and the trace has ended with a sentence."""
    problem = traces.malformed((e for step in found.steps for e in step.events), len(found.prompt))
    require(problem is None, f"The trace contradicts itself: {problem}")
    traces.check_trace(found.to_json())
    require(
        [step.index for step in found.steps] == list(range(len(found.steps))),
        "The steps are not numbered 0, 1, 2, ...",
    )
    seconds = [step.seconds for step in found.steps]
    require(seconds == sorted(seconds), "The seconds of the steps go down.")
    require(bool(found.ended) and found.ended.endswith("."), "The trace does not say why the lane ended.")
    named = {token for e in of(found, Distribution) for token, _ in e.top} | set(found.prompt)
    named |= {e.token for e in of(found, Propose)}
    require(named <= found.vocabulary.keys(), "The trace names tokens that it does not spell.")


def one_path(found: Trace) -> None:
    """The output is one path from the prompt, and every other leaf has a verdict."""
    nodes, path = found.nodes(), committed(found)
    require(
        [nodes[node][0] for node in path] == [len(found.prompt) - 1, *path[:-1]],
        "The committed nodes are not one path from the prompt.",
    )
    verdicts = of(found, Verdict)
    status = {verdict.node: verdict.status for verdict in verdicts}
    drawn = [v for v in verdicts if v.status in ("accepted", "rejected") and None not in (v.u, v.passes)]
    against = [v for v in drawn if (v.status == "accepted") != (v.u < v.passes)]
    against = [v for v in against if v.u < v.passes or found.badge != "relaxed"]
    require(not against, f"A verdict contradicts its numbers: {against[:1]}")
    fallen = {status.get(node) for node in path} & {"pruned", "rejected", "never reached", "merged"}
    require(not fallen, f"A committed token is also {' and '.join(sorted(fallen))}.")
    inner = {parent for parent, _ in nodes.values()}
    leaves = {node for node in nodes if node >= len(found.prompt) and node not in inner}
    left = leaves - status.keys() - set(path)
    require(not left, f"Node {min(left, default=0)} was proposed, and nothing says what became of it.")


def costs_add_up(found: Trace) -> None:
    """The totals are the sums of the steps' events, and counting step by step gives the same."""
    totals, forwards = found.costs.totals(), of(found, Forward)
    for role in ("target", "draft"):
        mine = [f for f in forwards if f.model == role and f.kind != "lens"]
        equal(totals[f"{role}_forwards"], math.fsum(f.share for f in mine), f"forwards of the {role}")
        equal(totals[f"{role}_tokens"], math.fsum(f.share * f.tokens for f in mine), f"tokens of the {role}")
        seconds = math.fsum(f.seconds for f in forwards if f.model == role)
        require(seconds <= totals["seconds"], f"The {role}'s forwards took longer than the lane.")
    equal(totals["steps"], len(found.steps), "steps")
    equal(totals["new_tokens"], len(found.output()), "new tokens")
    equal(len(committed(found)), len(found.output()), "committed nodes")
    require(totals["accepted"] <= totals["proposed"], "More tokens were accepted than drafted.")
    equal(totals["logprob"], math.fsum(p for c in of(found, Commit) for p in c.logprobs), "log-probability")
    by_step = []
    for step in found.steps:
        alone = dataclasses.replace(found, steps=[], costs=Costs())
        alone.append(step)
        by_step.append(alone.costs.totals())
    for key in ADDITIVE:
        equal(math.fsum(one[key] for one in by_step), totals[key], f"{key} step by step")


def may_be_stopped(start: Callable[..., Lane], whole: Trace) -> None:
    """A lane that is closed after any step leaves the steps so far and a trace that can be saved."""
    steps = [events_without_clock(step) for step in whole.steps]
    for count in range(len(steps) + 1):
        lane = start()
        for _ in range(count):
            lane.advance()
        lane.close()
        kept = [events_without_clock(step) for step in lane.trace.steps]
        require(kept == steps[:count], f"Stopped after {count} steps, it left another trace.")
        require(lane.advance() is None, f"It went on after it was stopped at step {count}.")
        traces.check_trace(lane.trace.to_json())


def keeps_its_badge(
    strategy: str, parameters: dict[str, Any], start: Callable[..., Lane], found: Trace, own_tables: bool
) -> None:
    """What the badge of a trace promises: see `check`. Exactness is checked on tables only."""
    require(found.badge in registry.BADGES, f"There is no badge {found.badge!r}.")
    if found.badge in GREEDY:
        texts = {tuple(start(seed).run().output()) for seed in range(3)}
        require(len(texts) == 1, f"The badge says {found.badge!r}, and three seeds gave {len(texts)} texts.")
    if found.badge == "lossless: equal to greedy":
        lane = start()
        lane.close()
        greedy = Lane("greedy", found.prompt, lane.models, {}, 0, lane.limits).run()
        require(found.output() == greedy.output(), "The badge says lossless, and greedy wrote another text.")
    if found.badge in EXACT and own_tables:
        small = tables(WALKED_WORDS)
        far = distance(law_of(Exhaustive(), strategy, small, parameters, WALKED), wanted(small, parameters))
        require(far < 1e-9, f"The badge says {found.badge!r}, and the distribution is off by {far:.3g}.")


def law_of(
    chooser: Exhaustive, strategy: str, models: dict, parameters: dict[str, Any], length: int
) -> dict[tuple[int, ...], float]:
    """Text -> its exact probability, found by walking every outcome of the strategy's chooser."""

    histories = itertools.count(1)

    def run(chooser: Chooser) -> tuple[int, ...]:
        if next(histories) > MOST_HISTORIES:
            raise Refusal(f"{strategy} draws too often to walk every outcome; choose smaller parameters.")
        lane = Lane(strategy, [0], models, parameters, limits=Limits(length), chooser=chooser)
        lane.records_offers = False
        return tuple(lane.run().output())

    return chooser.distribution(run)


def wanted(models: dict, parameters: dict[str, Any]) -> dict[tuple[int, ...], float]:
    """Text -> its probability under the target, after the processors that the parameters name."""
    return exact_distribution(models["target"], (0,), WALKED, shape_of(parameters))


def shape_of(parameters: dict[str, Any]) -> Callable[[torch.Tensor], torch.Tensor]:
    """Log-probabilities [1, V] to the processed probabilities [1, V] of transformers' own processors."""

    @cache
    def stack_for(vocabulary: int) -> Callable | None:
        return processors(parameters, vocabulary)

    def shape(logprobs: torch.Tensor) -> torch.Tensor:
        stack = stack_for(logprobs.shape[-1])
        scores = logprobs if stack is None else stack(logprobs, [[]])
        return one_hot(scores) if parameters.get("temperature") == 0.0 else probabilities(scores)

    return shape


def random_table(
    seed: int, vocabulary: int = 3, sharpness: float = 1.0, zeros: float = 0.0
) -> Callable[[tuple[int, ...]], list[float]]:
    """Probabilities as a function of the tokens so far: softmax(sharpness * normal), some of them set to
    zero.
    """
    rows: dict[tuple[int, ...], list[float]] = {}

    def table(tokens: tuple[int, ...]) -> list[float]:
        if tokens not in rows:
            draw = torch.Generator().manual_seed(hash((seed, *tokens)) % 2**31)
            row = (sharpness * torch.randn(vocabulary, generator=draw, dtype=torch.float64)).softmax(0)
            keep = torch.rand(vocabulary, generator=draw, dtype=torch.float64) >= zeros
            keep[int(torch.randint(vocabulary, (1,), generator=draw))] = True
            rows[tokens] = (row * keep / (row * keep).sum()).tolist()
        return rows[tokens]

    return table


class SpelledTable(TableModel):
    """A table that also takes texts as parameters, as a model with a tokenizer does."""

    def cut(self, text: str) -> list[int]:
        """Token ids of a text inside another: those of the text alone."""
        return self.encode(text)


def tables(vocabulary: int) -> dict[str, TableModel]:
    """A target and a draft that agrees with it now and then."""
    target = random_table(1, vocabulary)
    other = random_table(2, vocabulary)

    def near(tokens: tuple[int, ...]) -> list[float]:
        return [(2 * p + q) / 3 for p, q in zip(target(tokens), other(tokens), strict=True)]

    return {"target": SpelledTable(target, vocabulary), "draft": SpelledTable(near, vocabulary)}


def distance(a: dict[tuple[int, ...], float], b: dict[tuple[int, ...], float]) -> float:
    """The largest difference between two distributions."""
    return max(abs(a.get(key, 0.0) - b.get(key, 0.0)) for key in a.keys() | b.keys())


def committed(found: Trace) -> list[int]:
    """The nodes of the output, in order."""
    return [node for commit in of(found, Commit) for node in commit.nodes]


def of(found: Trace, kind: type[Event]) -> list[Any]:
    """All events of one kind."""
    return [event for step in found.steps for event in step.of(kind)]


def events_without_clock(step: Step) -> list[dict]:
    """The events of a step without what a clock measured."""
    return [event_to_json(event) | {"start": 0, "seconds": 0} for event in step.events]


def equal(a: float, b: float, what: str) -> None:
    """Raises BrokenLaw unless two sums agree."""
    require(math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9), f"The {what} do not add up: {a} and {b}.")


def require(claim: bool, sentence: str) -> None:
    """Raises BrokenLaw with this sentence unless the claim is true."""
    if not claim:
        raise BrokenLaw(sentence)
