"""Reasoning in a lane: which delimiters it has, how probable its end is at every token, and where a budget
forces it.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from decoders.model_interface import Model
from decoders.observer import Observer
from decoders.trace import spans
from decoders.trace.scores import ScoreName
from decoders.trace.spans import Part, Spans

if TYPE_CHECKING:  # only for annotations: the page is made before torch is imported
    import torch

FORCED = "the end is forced"


def own_delimiters(parameters: Mapping[str, Any], template: str) -> dict[str, str]:
    """The delimiters that a chat template names besides the usual ones, as a parameter that the lane takes
    from the model. Raises Refusal with one sentence if its own cannot be read.
    """
    if typed := parameters.get(spans.PARAMETER):
        spans.parse(typed)
        return {}
    typed = spans.typed_for(template)
    return {spans.PARAMETER: typed} if typed else {}


class Thinking(Observer):
    """Records, while reasoning is open, how probable its end is as the next token, if the closing delimiter
    is one token; and each token that the budget forces. ends: opening delimiter -> that token.
    """

    def __init__(self, read: Spans, budget: int, ends: dict[str, int]):
        self.read, self.budget, self.ends = read, budget, ends

    def predicted(self, lane: Any, nodes: list[int], logprobs: "torch.Tensor") -> None:
        end = self.ends.get(self.read.opened.opens) if self.read.opened else None
        if end is None:
            return
        for node, p in zip(nodes, logprobs[:, end].exp().tolist(), strict=True):
            lane.record_measure(node, ScoreName.END_OF_THINKING, p, scale=1.0)

    def committed(self, lane: Any, nodes: list[int]) -> None:
        for node in nodes:
            spent = self.read.open_spent
            if self.budget and self.read.reasoning and spent >= self.budget:
                limit = float(self.budget)
                lane.record_measure(
                    node, ScoreName.THINKING_BUDGET, float(self.budget), level=FORCED, limit=limit
                )
            self.read.feed(lane.models["target"].bytes_of(lane.tree.tokens[node]))


def observer(lane: Any) -> Thinking:
    """The observer of a lane, which has read its prompt."""
    target: Model = lane.models["target"]
    delimiters = spans.delimiters_of(lane.shaping)
    read = Spans(delimiters, map(target.bytes_of, lane.tree.tokens))
    cut = target.cut  # a table of probabilities has none
    spelled = {one.opens: cut(one.closes) for one in delimiters if cut and one.part is Part.REASONING}
    single = {opens: tokens[0] for opens, tokens in spelled.items() if len(tokens) == 1}
    return Thinking(read, int(lane.shaping.get("thinking_budget") or 0), single)
