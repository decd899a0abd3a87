"""The step that comes before a strategy's own: given tokens are rated and committed, or the end of the prompt
is healed. To the strategy these tokens are part of the prompt.
"""

from collections.abc import Iterator
from typing import Any

from decoders import token_healing
from decoders.engine.capabilities import Capability
from decoders.plan import Plan
from decoders.trace import given_tokens
from decoders.trace.events import Commit, Forward


def steps(lane: Any, plan: Plan) -> Iterator[None]:
    """A step if the lane begins with tokens of its own; none else."""
    if plan.given:
        begin_with(lane, plan.given, plan.forced)
        yield
    elif plan.healing:
        heal(lane, plan.healing)
        yield


def begin_with(lane: Any, given: list[int], forced: list[int]) -> None:
    """Records the given tokens, and how the target rates those that a person chose."""
    prompt, places = len(lane.trace.prompt), forced[: given_tokens.MAX_RATED]
    lane.record(*given_tokens.proposals(given, forced, prompt))
    causal = lane.models["target"].model_kind == "causal"  # a canvas has no next token
    ratings = rate(lane, given, places) if places and causal else {}
    lane.record(*given_tokens.decisions(given, forced, prompt, ratings))


def rate(lane: Any, given: list[int], places: list[int]) -> dict[int, given_tokens.Rating]:
    """How the target rates the given tokens at these places; records its distributions there. It runs as one
    lens forward with a separate scorer, so that the costs of the lane itself stay the same.
    """
    nodes = [len(lane.trace.prompt) + place - 1 for place in places]
    scorer, start = lane.models["target"].engine.attach(lane.tree), lane.clock()
    scorer.taps = Capability.HIDDEN_STATES in lane.strategy.reads(lane.parameters).get("target", ())
    try:  # with the tip, since the strategy asks for its row first
        logits = scorer.score([*nodes, lane.tip])[:-1]  # [N, V]
    finally:
        scorer.close()
    work, seconds = scorer.work, lane.clock() - start
    counts = {"tokens": work.tokens + work.shared, "rows": work.rows, "shared": work.shared}
    lane.record(Forward("target", "lens", start=start, seconds=seconds, **counts))
    if not logits.amax(-1).isfinite().all():
        raise lane.no_numbers("target")
    raw = processed_logprobs = lane.distribution(nodes, logits)
    if any(part.kind == "processors" for part in lane.strategy.parts(lane.parameters)):
        processed = lane.process(logits, nodes, record=True)
        if processed is not logits and processed.isfinite().any(-1).all():
            processed_logprobs = lane.distribution(nodes, processed, "processed")
    return given_tokens.ratings(raw, processed_logprobs, given, places)


def heal(lane: Any, allowed: list[int]) -> None:
    """Writes the most likely token of `allowed`: the prompt's former last token, which comes first, and the
    tokens that begin with its text.
    """
    target, tree, node = lane.models["target"], lane.tree, lane.tip
    logits = lane.score([node])  # [1, V]
    logprobs = lane.distribution([node], logits)
    scores = token_healing.kept(logits, allowed)
    lane.distribution([node], scores, "processed", token_healing.LEVEL)
    token = int(scores[0].argmax())
    lane.note(token_healing.healing_note(target, allowed[0], token))
    lane.tip = lane.propose(node, token, float(logprobs[0, token]))
    lane.record(Commit([lane.tip], [float(logprobs[0, token])]))
    tree.trunk, lane.given, lane.budget = tree.trunk + 1, 1, lane.budget - 1
    lane.read_prompt_again()
