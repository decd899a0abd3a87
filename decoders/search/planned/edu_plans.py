"""EDU plans: several content plans first, a summary under each of them, and then the best of these.

Needs a model that was trained with tags around units of its prompt. Adams et al. (2023), Generating EDU
Extracts for Plan-Guided Summary Re-Ranking; the plan model is heads/scorers/planner.py.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from statistics import fmean

import torch

from decoders.heads.scorers.planner import unit_vectors
from decoders.lane import Lane
from decoders.logits.distributions import log_softmax
from decoders.parameters import integer, switch
from decoders.prompt_variant import OtherPrompt
from decoders.registry import strategy
from decoders.search.beam.beam_state import LENGTH_PENALTY, Beams, rank_live
from decoders.search.planned.content_plans import NextUnit, Plan, plan_beams, uniform
from decoders.search.planned.discourse_units import agreement
from decoders.search.planned.plan_tags import Source, source_of, tags_of
from decoders.search.planned.topic_tokens import sentences
from decoders.strategy import Part
from decoders.trace.scores import ScoreName

EVERY = "every unit tagged"  # the view that the plan model reads
NO_PLANNER = "No plan model comes with the project for {!r}: all units are equally likely in a plan."


class Summaries:
    """The plans of one lane and their summaries."""

    def __init__(self, lane: Lane):
        self.lane, self.target = lane, lane.models["target"]
        self.prompt = lane.tree.tokens[: lane.tree.trunk]
        self.source: Source = source_of(self.prompt, self.target.bytes_of)
        self.tags = tags_of(self.target)
        self.groups: dict[Plan, Beams] = {}

    # ---- plans

    def plans(self) -> Iterator[None]:
        """Beam search over plans; sets `groups` to a beam search for each plan, not begun yet."""
        width, whole = self.lane.parameters["num_plans"], []
        for live, whole in plan_beams(self.next_unit(), width):
            for rank, plan in enumerate(sorted([*live, *whole], key=lambda p: -p.logprob), 1):
                last, units = self.source.spans[plan.units[-1]][1] - 1, [unit + 1 for unit in plan.units]
                self.lane.record_rank(
                    last, ScoreName.PLAN, plan.logprob, rank, plan.name, units=units, whole=float(plan.whole)
                )
            yield
        for plan in whole:
            start, _ = self.source.tagged(plan.units, self.tags)
            self.lane.scorers[plan.name] = OtherPrompt(self.lane, self.fitted(start))
            self.groups[plan] = Beams(self.lane, self.lane.parameters["num_beams"], plan.name)

    def next_unit(self) -> NextUnit:
        """The distribution of the plan model, which has read the prompt with tags around all units."""
        planner, count = self.target.heads.get("planner"), len(self.source.spans)
        if planner is None:
            self.lane.note(NO_PLANNER.format(self.target.name))
            next_unit, shares = uniform(count), [1 / count] * count
        else:
            next_unit, shares = planner.opened(unit_vectors(self.states(), self.source.spans))
        for unit, share in enumerate(shares):
            first, behind = self.source.spans[unit]
            self.lane.record_span(ScoreName.UNIT, share, unit + 1, first, behind - 1)
        return next_unit

    def states(self) -> torch.Tensor:
        """The target's last hidden states [T, d] at the prompt's tokens, read with tags around all units."""
        lane, nodes = self.lane, list(range(len(self.prompt)))
        start, places = self.source.tagged(range(len(self.source.spans)), self.tags)
        if len(start) > self.target.context:
            start, places = self.prompt, nodes
        view = OtherPrompt(lane, start)
        view.node_of.update(zip(nodes, places, strict=True))
        lane.scorers[EVERY] = view
        lane.score(nodes, "plan", EVERY, hidden=True)
        states = torch.stack([view.scorer.hidden(place) for place in places])
        lane.scorers.pop(EVERY).close()
        return states

    def fitted(self, start: list[int]) -> list[int]:
        """A tagged prompt, cut at its beginning if the new text would not fit after it."""
        return start[max(0, len(start) + self.lane.left - self.target.context) :]

    # ---- summaries

    def realise(self) -> Iterator[None]:
        """All beam searches side by side, each after the prompt with the tags of its plan."""
        while running := [(plan, beams) for plan, beams in self.groups.items() if beams.live]:
            for plan, beams in running:
                rows = self.lane.score(beams.live, role=plan.name)
                logprobs = self.lane.distribution(beams.live, rows, level=plan.name)
                beams.advance(logprobs, logprobs)
            rank_live([beams for _, beams in running])
            yield

    def choose(self) -> None:
        """Outputs the best summary: by its mean log-probability after the unchanged prompt or, without the
        reranker, the one of the most likely plan.
        """
        lane = self.lane
        paths = [lane.tree.path(b.finished[0].node, above=lane.tip) for b in self.groups.values()]
        rows = self.plain(paths)
        texts = [(*both, self.logprobs(rows, both[1])) for both in zip(self.groups, paths, strict=True)]
        if lane.parameters["rerank"]:
            texts.sort(key=lambda text: -fmean(text[2]))
        for rank, (plan, path, logprobs) in enumerate(texts, 1):
            lane.record_measure(path[-1], ScoreName.ADHERENCE, self.adherence(plan, path), level=plan.name)
            lane.record_rank(
                path[-1], ScoreName.RERANKER, fmean(logprobs), rank, plan.name, plan=plan.logprob
            )
        _, path, logprobs = texts[0]
        before = [lane.tree.parents[node] for node in path]
        lane.distribution(before, torch.stack([rows[node] for node in before]))
        lane.commit(path, logprobs)

    def plain(self, paths: Iterable[list[int]]) -> dict[int, torch.Tensor]:
        """Log-probabilities [V] after the parent of each node on these paths, the prompt without tags."""
        asked = list(dict.fromkeys(self.lane.tree.parents[node] for path in paths for node in path))
        return dict(zip(asked, log_softmax(self.lane.score(asked)), strict=True))

    def logprobs(self, rows: dict[int, torch.Tensor], path: list[int]) -> list[float]:
        """The log-probability of each node on a path."""
        parents, tokens = self.lane.tree.parents, self.lane.tree.tokens
        return [float(rows[parents[node]][tokens[node]]) for node in path]

    def adherence(self, plan: Plan, path: list[int]) -> float:
        """How far the summary covers the units of its plan and no others."""
        words = (
            self.target.bytes_of(t) for n in path if (t := self.lane.tree.tokens[n]) not in self.lane.eos
        )
        written = sentences(b"".join(words).decode("utf-8", "replace"))
        return agreement(self.source.texts, written, plan.units)


def suits(parameters: dict, target) -> str | None:
    """A sentence if the model has no tags."""
    if tags_of(target):
        return None
    return (
        f"The model {target.name!r} has no tags for the units of a plan; choose one that was trained with "
        "them, such as llama-tiny-summaries."
    )


@strategy(
    name="edu_plans",
    title="EDU plans",
    family="search",
    parameters=(
        integer("num_plans", 4, "Plans that are kept, each of which becomes a summary.", low=1, high=16),
        integer("num_beams", 2, "Hypotheses kept at each position under each plan.", low=1, high=16),
        switch("rerank", True, "Output the best summary instead of that of the most likely plan."),
        replace(LENGTH_PENALTY, default=1.0),
    ),
    suits=suits,
    papers=("generating-edu-extracts-for-plan-guided-summary",),
    view="content_plans",
    badge=lambda parameters: "deterministic",
    parts=lambda parameters: [
        Part("expansion", "plans", "Sets of the prompt's clauses, by beam search with a plan model."),
        Part("frontier", "beams", "A beam search under each plan."),
        Part("value", "reranker", "The mean log-probability of a summary after the prompt without tags."),
    ],
)
def edu_plans(lane: Lane) -> Iterator[None]:
    """Makes several content plans, writes a text for each, and keeps the best text.

    1. The prompt is split into units: sentences, and their clauses at punctuation and before `and`.
    2. A plan model reads the prompt with tags around all units, and points to unit after unit, or to stop. A
       beam search over its choices gives num_plans sets of units, no two the same.
    3. Under each plan a beam search writes a text: the model reads the prompt with tags around the units of
       this plan only, `<e> ... </e>`, and was trained to mention exactly these.
    4. All texts are scored by the mean of `log p` after the prompt without tags; the best is output.

    Diversity comes from the plans, so each text can be the most likely one under its plan. The trained model
    writes summaries of short fact sheets; it plans units of other texts as well, but writes poor summaries of
    them. In the paper the plan model has an encoder of its own, and a trained reranker chooses the text. Here
    the plan model reads the states of the model that writes, and that model's likelihood ranks the texts.
    """
    summaries = Summaries(lane)
    yield from summaries.plans()
    yield from summaries.realise()
    summaries.choose()
