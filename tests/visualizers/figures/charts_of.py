"""Analyses of seeded lanes over tables, and every chart that can be drawn of them."""

import functools

import plotly.graph_objects as go

from decoders.lane import Lane, Limits
from decoders.speculative.losslessness import Proof
from decoders.trace.trace import Trace
from tests.visualizers.analysis.test_draft_what_if import models
from visualizers.analysis.comparison import compare
from visualizers.analysis.draft_what_if import what_if as recomputed
from visualizers.analysis.roofline import DEVICES, DRAFT, TARGET, sentence
from visualizers.analysis.roofline import other_machine as elsewhere
from visualizers.analysis.speculation_report import microscope as looked_at
from visualizers.figures import (
    calibration,
    compared_acceptance,
    comparison,
    costs,
    draft_positions,
    first_differences,
    losses,
    losslessness,
    microscope,
    other_machine,
    what_if,
)

LANES = {
    "greedy": {},
    "speculative": {"num_assistant_tokens": 3, "temperature": 1.0},
    "speculative_tree": {"widths": [3, 2]},
    "beam": {"num_beams": 2},
}
DEVICE = DEVICES["laptop"]
LOSSES = {
    "million_tokens": [0.5, 1.0, 1.5],
    "training_loss": [5.0, 4.0, 3.5],
    "held_out_loss": [4.5, 3.75, 3.25],
}
OF_COSTS = ("tokens_reached", "total_log_probability", "mean_log_probability")
OF_LANES = ("entropies", "log_probabilities")
OF_DRAFTS = ("acceptance_by_depth", "acceptance_by_class")
OF_ROUNDS = ("round_by_round", "acceptance_by_class", "drafted_token_fates", "drafting_time")
OF_PLACES = ("acceptance_by_depth", "draft_shape", "acceptance_by_rank", "accepted_lengths")
OF_BELIEF = ("tokens_per_round", "reliability")


@functools.cache
def traces() -> dict[str, Trace]:
    """A lane of each strategy of LANES."""
    return {name: Lane(name, [1], models(), given, 0, Limits(24)).run() for name, given in LANES.items()}


@functools.cache
def analyses() -> dict:
    """What the charts take, by what it is."""
    several, drawn = list(traces().values()), traces()["speculative"]
    greedy = Lane("speculative", [0], models(), {"num_assistant_tokens": 3}, 0, Limits(24)).run()
    given = {"num_assistant_tokens": 2, "temperature": 1.0}
    proof = Proof("speculative", [1], models(), given, 2, 50, True)
    proof.advance(60)
    there = [
        {"lane": number} | elsewhere(trace, len(trace.steps), DEVICE, TARGET, DRAFT)
        for number, trace in enumerate(several, 1)
    ]
    return {
        "comparison": compare(several),
        "microscope": looked_at(drawn),
        "tree": looked_at(traces()["speculative_tree"]),
        "estimated": recomputed(drawn, None, [3, 1]),
        "exact": recomputed(greedy, None, [2, 2]),
        "proof": proof.state(),
        "machine": {"sentence": sentence(DEVICE, TARGET), "lanes": there},
    }


@functools.cache
def charts(look: str) -> dict[str, go.Figure]:
    """Every chart in one look, by its name; for tests that look only."""
    known = analyses()
    found, seen = known["comparison"], known["microscope"]
    made = {
        f"{name} by {charge}": getattr(comparison, name)(found, charge, look)
        for name in OF_COSTS
        for charge in found["charges"]
    }
    made |= {f"lanes' {name}": getattr(comparison, name)(found, look) for name in OF_LANES}
    made |= {f"lanes' {name}": getattr(compared_acceptance, name)(found, look) for name in OF_DRAFTS}
    for lane in ("microscope", "tree"):
        made |= {f"{lane}: {name}": getattr(microscope, name)(known[lane], look) for name in OF_ROUNDS}
        made |= {f"{lane}: {name}": getattr(draft_positions, name)(known[lane], look) for name in OF_PLACES}
    made |= {name: getattr(calibration, name)(seen, look) for name in OF_BELIEF}
    return made | {
        "cost": costs.cost(found, "target forwards", look),
        "shared": first_differences.shared_beginnings(found, look),
        "estimated": what_if.tokens_per_round(known["estimated"], 2, look),
        "exact": what_if.tokens_per_round(known["exact"], 1, look),
        "speed": what_if.speed(known["exact"], look),
        "proof": losslessness.distance_to_target(known["proof"], 1, look),
        "machine": other_machine.tokens_by_time(known["machine"], {1: "Greedy"}, look),
        "plain": other_machine.against_plain(known["machine"], look),
        "roofline": other_machine.roofline(DEVICE, {"target": TARGET, "draft": DRAFT}, look),
        "losses": losses.losses("llama-toy", LOSSES, look),
    }


def read(figure: go.Figure) -> dict[float, str]:
    """Place -> the sentence that is read there, in one line."""
    trace = next(one for one in figure.data if one.meta and one.meta.get("reads"))
    return dict(zip(trace.x, (unbroken(text) for text in trace.hovertext), strict=True))


def lanes(figure: go.Figure) -> dict[int | str, go.Scatter]:
    """Lane -> its line."""
    return {one.meta["lane"]: one for one in figure.data if one.meta and "lane" in one.meta}


def unbroken(text: str) -> str:
    """A hover card's text in one line."""
    return text.replace("<br>", " ")
