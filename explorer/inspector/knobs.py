"""What the page's sliders need to recompute a lane's choices for other values of its parameters.

For each token of the text: the target's distribution before any processor that has a slider, the draft's
distribution and the test if there was one, and the random numbers of the position. The page computes the rest
(assets/web/page/what-if.js).
"""

import math
from dataclasses import replace

from decoders.chooser import uniform
from decoders.logits.processor_order import NEUTRAL, stages
from decoders.registry import strategies
from decoders.sampling.sampling_parameters import SHAPING
from decoders.strategy import Parameter, PartId, Strategy
from decoders.trace.events import Distribution
from decoders.trace.trace import Trace
from explorer.inspector.token_facts import Facts
from visualizers.analysis.draft_what_if import what_if

SAMPLER = ("temperature", "top_k", "top_p", "min_p")  # in the order in which they run
LENGTH = "num_assistant_tokens"
# Verifier of a chain -> those of its parameters that decide a test.
RULES = {
    PartId.GREEDY_MATCH: (),
    PartId.TOKEN_REJECTION: (),
    PartId.LENIENT_REJECTION: ("lenience",),
    PartId.TYPICAL_ACCEPTANCE: ("epsilon", "delta"),
}
# Upper ends of sliders that differ from the declared maximum.
HIGH = {"temperature": 2.0, "top_k": 20, "delta": 2.0, LENGTH: 16}
SAMPLED = "sample"  # the strategy that runs a lane whose own strategy has no temperature

NOT_HERE = "This lane came from a file, and no strategy of this app reproduces how its tokens were chosen."
OTHER_RULE = (
    "Sliders need a lane that draws each token from its own distribution, or one that verifies a chain from "
    "a draft model. This strategy decides differently."
)
PROCESSED = "Sliders cannot undo {}: the distribution before it was applied is not stored."
TRUNCATED = (
    "Tokens were removed before the draft sampled, and the trace records only what was left. What the draft "
    "would have sampled with other values is not known."
)
NO_PLACES = "Nothing has been decoded yet."
OTHER_SEED = "The random numbers of this lane do not follow from its seed, so the next ones are not known."


def knobs(trace: Trace) -> dict:
    """`{why}`, one sentence, if no slider applies to this lane, else

    rule      ["draw"], or the ids of the verifiers of a chain: [at temperature 0, above it]
    fixed     whether the draft's distributions are stored after truncation only
    values    of the run: what shapes a distribution, what decides a test
    knobs     `{name, value, low, high, step, help}` of each slider
    places    one for each token that the lane decoded, in order: `{node, position, token, p, u}`, with
              `draft` where one was tested: `{node, token, q, tested, accepted, entropy, u, drawn}`.
              p and q are distributions, see `offer`; `tested` is the target's probability at the test,
              `entropy` that of its distribution; u, the draft's u and `drawn` are the random numbers of the
              lane's own token, of the test and of the draft
    lengths   rounds [minimum, maximum] for drafts of 1, 2, ... tokens; None if the draft length has no slider
    texts     token id -> text
    run_as    the strategy that takes these values; parameters: those of the run that differ from the defaults
    """
    strategy = strategies().get(trace.strategy)
    trace = strategy and with_defaults(strategy, trace)
    if trace is None:
        return {"why": NOT_HERE}
    rule = rule_of(strategy, trace.parameters)
    if rule is None:
        return {"why": OTHER_RULE}
    blocking = [name for name in stages(trace.shaping) if name not in (*SAMPLER, "renormalize_logits")]
    late = [name for name in blocking if after_temperature(name)]
    if late or blocking and rule != ["draw"]:
        return {"why": PROCESSED.format((late or blocking)[0])}
    reading = Facts(trace)
    places = [place(reading, node) for node in decoded(reading)]
    if not places or any(one["p"] is None for one in places):
        return {"why": NO_PLACES if not places else OTHER_RULE}
    if not numbers_follow_seed(reading, places):
        return {"why": OTHER_SEED}
    fixed = rule != ["draw"] and truncated(trace)
    lengths = lengths_of(trace) if LENGTH in trace.parameters else None
    named = {token for one in places for token in tokens_of(one)}
    sliders = slider_parameters(strategy, rule, lengths, fixed)
    if not sliders:
        return {"why": TRUNCATED}
    given = {p.name: p.default for p in strategy.parameters}
    return {
        "rule": rule,
        "fixed": fixed,
        "values": values_of(trace, rule),
        "knobs": [knob(p, values_of(trace, rule)) for p in sliders],
        "places": places,
        "lengths": lengths,
        "texts": {token: reading.shown(token) for token in sorted(named)},
        "parameters": {name: value for name, value in trace.parameters.items() if value != given.get(name)},
        "run_as": strategy.name if "temperature" in trace.parameters else SAMPLED,
    }


def with_defaults(strategy: Strategy, trace: Trace) -> Trace | None:
    """The trace with defaults for parameters that were added to the strategy after the recording; None if the
    strategy could not have run with these settings, which may come from a file.
    """
    taken = [value for name, value in trace.model_defaults.items() if name in SAMPLER]
    try:
        parameters = strategy.check(trace.parameters)
        same = all(parameters[name] == value for name, value in trace.parameters.items())
        if not same or not all(map(math.isfinite, taken)):
            return None
    except (TypeError, ValueError):
        return None
    return replace(trace, parameters=parameters)


def rule_of(strategy: Strategy, parameters: dict) -> list[str] | None:
    """["draw"] where each token is drawn from its own distribution, the ids of [verifier at temperature 0,
    verifier above it] where chains from a draft model are verified; None for all other strategies.
    """
    parts = strategy.parts(parameters)
    kinds = {part.kind for part in parts}
    if parts and kinds <= {"processors", "contrast"} and parameters.get("num_return_sequences", 1) == 1:
        return None if parameters.get("token_healing") else ["draw"]
    if kinds != {"drafter", "verifier", "processors"} or "temperature" not in parameters:
        return None
    verifiers: list[str] = []
    for temperature in (0.0, parameters["temperature"] or 1.0):
        parts = {part.kind: part.id for part in strategy.parts({**parameters, "temperature": temperature})}
        chain = parts["drafter"] == PartId.DRAFT_MODEL_CHAIN and not parameters.get("token_healing")
        if not chain or parts["verifier"] not in RULES:
            return None
        verifiers.append(parts["verifier"])
    return verifiers


def after_temperature(name: str) -> bool:
    """Whether a processor runs after the temperature."""
    order = list(NEUTRAL)
    return order.index(name) > order.index("temperature")


def slider_parameters(
    strategy: Strategy, rule: list[str], lengths: list | None, fixed: bool
) -> list[Parameter]:
    """The parameters that get a slider: those that decide tests, the draft length, those that shape
    distributions.
    """
    own = {p.name: p for p in strategy.parameters}
    if rule == ["draw"]:  # a greedy lane gets them too: what if its tokens were drawn?
        return [own.get(p.name, p) for p in SHAPING if p.name in SAMPLER]
    decides = [name for name in own if any(name in RULES[verifier] for verifier in rule)]
    sampler = () if fixed or PartId.TYPICAL_ACCEPTANCE in rule else SAMPLER
    return [own[name] for name in (*decides, *([LENGTH] if lengths else []), *sampler)]


def truncated(trace: Trace) -> bool:
    """Whether a processor removed tokens before one was drawn."""
    return any(name in SAMPLER[1:] for name in stages(trace.shaping))


def values_of(trace: Trace, rule: list[str]) -> dict:
    """The values of the run: those that shape a distribution, and those that decide a test."""
    shaped = {name: trace.shaping.get(name, NEUTRAL[name]) for name in SAMPLER}
    shaped["temperature"] = trace.parameters.get("temperature", 0.0)
    names = (LENGTH, *(name for verifier in rule for name in RULES.get(verifier, ())))
    return shaped | {name: trace.parameters[name] for name in names if name in trace.parameters}


def knob(parameter: Parameter, values: dict) -> dict:
    """One slider: its value, its range and its step."""
    name, value = parameter.name, values[parameter.name]
    ends = [end for end in (HIGH.get(name), parameter.high) if end is not None]
    return {
        "name": name,
        "value": value,
        "low": parameter.low,
        "high": max(min(ends), value),
        "step": 1 if parameter.kind == "int" else 0.01,
        "help": parameter.help,
    }


def decoded(reading: Facts) -> list[int]:
    """The nodes of the text that the lane decoded itself, in order."""
    born = {node: event.source for node, (_, event) in reading.births.items()}
    return [n for n in reading.committed if n in born and born[n] not in ("copied", "person")]


def place(reading: Facts, node: int) -> dict:
    """One token of the text with its recorded distributions, see `knobs`. p is None where nothing was
    recorded.
    """
    parent, trace = reading.nodes.parent[node], reading.trace
    depth = reading.nodes.position[node] + reading.nodes.root
    offers = reading.offers.get(parent, {})
    before, temperature = before_knobs(offers, trace)
    result = {
        "node": node,
        "position": reading.nodes.position[node],
        "token": reading.nodes.token[node],
        "p": None,
        "u": uniform(trace.seed, ("sample", depth)),
    }
    if before is None or not before.top:
        return result
    known = offer(reading, before, temperature, node)
    result["p"] = known | {
        "beside": unnamed_before(known, reading.nodes.token[node], drawn_above(reading, node))
    }
    guess = next((n for n in reading.children.get(parent, []) if was_tested(reading, n)), None)
    drafted = offers.get(("draft", None))
    if guess is not None and drafted and drafted.top:
        root = reading.nodes.position[round_of(reading, guess)] + reading.nodes.root
        verdict = reading.verdicts[guess][-1][1]
        result["draft"] = {
            "node": guess,
            "token": reading.nodes.token[guess],
            "q": offer(reading, drafted, trace.parameters["temperature"] or 1.0, guess),
            "tested": verdict.p,
            "accepted": verdict.status == "accepted",
            "entropy": (offers.get(("processed", None)) or before).entropy,
            "u": uniform(trace.seed, ("accept", depth, 0)),
            "drawn": uniform(trace.seed, ("draft", root, depth, 0, 0)),
        }
    return result


def was_tested(reading: Facts, node: int) -> bool:
    """Whether a node is a draft that the target tested."""
    if node not in reading.births or reading.births[node][1].source != "draft":
        return False
    last = reading.verdicts[node][-1][1] if node in reading.verdicts else None
    return last is not None and last.status in ("accepted", "rejected") and last.p is not None


def round_of(reading: Facts, node: int) -> int:
    """The node to which the draft of a drafted node's round is attached."""
    born = reading.births[node][0]
    while node in reading.births and reading.births[node][0] == born:
        node = reading.nodes.parent[node]
    return node


def before_knobs(offers: dict, trace: Trace) -> tuple[Distribution | None, float]:
    """The last recorded distribution before any truncation, and its temperature."""
    names = stages(trace.shaping)
    free = [name for name in names if name not in SAMPLER[1:] and name != "renormalize_logits"]
    last = ("processed", None if names and names[-1] in free[-1:] else free[-1]) if free else None
    if last in offers:
        return offers[last], trace.parameters["temperature"] if "temperature" in free else 1.0
    raw = offers.get(("combined", None)) or offers.get(("target", None))
    return (raw, 1.0) if set(free) <= {"temperature"} else (None, 1.0)


def drawn_above(reading: Facts, node: int) -> float | None:
    """The running sum at which the node's token begins; None if a truncation came before its draw."""
    if truncated(reading.trace):
        return None
    draw = reading.draw(node)
    return draw["low"] if draw else None


def offer(reading: Facts, recorded: Distribution, temperature: float, node: int) -> dict:
    """A recorded distribution in the form with which the page computes: token ids and log-probabilities, most
    likely first; `rest` and `others`, the mass and the number of all other tokens; `nats`, their part of the
    entropy; and its temperature. `extra`: `{id, log}` of the token of `node` where it is not among the most
    likely and another event records its probability.
    """
    ids, logs = [int(token) for token, _ in recorded.top], [logprob for _, logprob in recorded.top]
    others, token = (recorded.among or len(ids)) - len(ids), reading.nodes.token[node]
    own = reading.probability(node, recorded) if others and token not in ids else None
    named = [*logs, math.log(own)] if own else logs
    return {
        "ids": ids,
        "logs": logs,
        "extra": {"id": token, "log": math.log(own)} if own else None,
        "rest": max(0.0, recorded.rest - (own or 0.0)) if others else 0.0,
        "others": others - bool(own),
        "nats": recorded.entropy + math.fsum(math.exp(log) * log for log in named),
        "temperature": temperature,
    }


def unnamed_before(known: dict, token: int, low: float | None) -> dict | None:
    """How many of the tokens that a distribution does not name come before the named `token` in the
    vocabulary, and their mass: `{id, below, count}`. `low` is the running sum at which `token` begins; None
    where that is unknown.
    """
    named = dict(zip(known["ids"], known["logs"], strict=True))
    if known["extra"]:
        named[known["extra"]["id"]] = known["extra"]["log"]
    if low is None or token not in named:
        return None
    before = [one for one in named if one < token]
    below = low - math.fsum(math.exp(named[one]) for one in before)
    count = min(known["others"], token - len(before))
    return {"id": token, "below": min(known["rest"], max(0.0, below)), "count": count}


def tokens_of(one: dict) -> list[int]:
    """All tokens that a place names."""
    draft = one.get("draft")
    return [one["token"], *one["p"]["ids"], *([draft["token"], *draft["q"]["ids"]] if draft else [])]


def numbers_follow_seed(reading: Facts, places: list[dict]) -> bool:
    """Whether the recorded random numbers are those that follow from the seed."""
    for one in places:
        draw, born = reading.draw(one["node"]), reading.births[one["node"]][1]
        if draw and draw["u"] != one["u"]:
            return False
        if born.fill == "sampled" and born.source == "target" and not draw:
            return False  # drawn elsewhere, with a number that was not recorded
        draft = one.get("draft")
        verdict = reading.verdicts[draft["node"]][-1][1] if draft else None
        if verdict and verdict.u is not None and verdict.u != draft["u"]:
            return False
    return True


def lengths_of(trace: Trace) -> list[list[int]] | None:
    """Rounds [minimum, maximum] for drafts of 1, 2, ... tokens; None if the text could depend on the
    length.
    """
    if trace.badge != "lossless: equal to greedy":
        return None
    other = what_if(trace, None, [1])
    return [row["rounds"] for row in other["chains"]] if other["known"] and other["exact"] else None
