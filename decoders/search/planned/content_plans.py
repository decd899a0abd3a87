"""Beam search over content plans: sets of units, each written in the order of the text."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

Units = tuple[int, ...]
# Prefixes of plans -> log-probabilities [N, U + 1] of the next unit, stop last.
NextUnit = Callable[[list[Units]], torch.Tensor]


@dataclass(frozen=True)
class Plan:
    """Units in the order of the text, and the log-probability of choosing them; `whole`: whether stop was
    chosen after them.
    """

    units: Units
    logprob: float
    whole: bool = False

    @property
    def name(self) -> str:
        """Its units counted from 1, as they are shown."""
        return " ".join(str(unit + 1) for unit in self.units)


def uniform(count: int) -> NextUnit:
    """The distribution without a plan model: stop and each unit that is left are equally likely."""

    def next_unit(beginnings: list[Units]) -> torch.Tensor:
        rows = torch.full((len(beginnings), count + 1), -torch.inf)
        for row, units in zip(rows, beginnings, strict=True):
            row[units[-1] + 1 if units else 0 : count + bool(units)] = 0.0
        return rows.log_softmax(-1)

    return next_unit


def plan_beams(next_unit: NextUnit, width: int) -> Iterator[tuple[list[Plan], list[Plan]]]:
    """(unfinished plans, finished plans so far), both best first, after each unit; at most `width` of each. A
    plan is a set written in one order, so no two are the same.
    """
    live, whole = [Plan((), 0.0)], []
    while live and (len(whole) < width or live[0].logprob > whole[-1].logprob):
        grown = []
        for plan, row in zip(live, next_unit([plan.units for plan in live]).tolist(), strict=True):
            *units, stop = row
            grown += [
                Plan((*plan.units, unit), plan.logprob + p) for unit, p in enumerate(units) if p > -math.inf
            ]
            if stop > -math.inf:
                whole.append(Plan(plan.units, plan.logprob + stop, whole=True))
        live, whole = (sorted(plans, key=order)[:width] for plans in (grown, whole))
        yield live, whole


def order(plan: Plan) -> tuple[float, Units]:
    """The most likely first; ties go to earlier units."""
    return -plan.logprob, plan.units
