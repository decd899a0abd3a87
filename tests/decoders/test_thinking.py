"""Reasoning in a lane: the budget forces its end, and the probability of the end is recorded."""

import math

import pytest

from decoders.explain.moments import moment_sentences
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.refusal import Refusal
from decoders.thinking import FORCED, own_delimiters
from decoders.trace.events import Commit
from decoders.trace.scores import Measure, ScoreName

PIECES = [b"<think>", b"</think>", b"a", b"b", b"</", b"think>"]
OPEN, CLOSE, A, B = range(4)


class Reasoner(TableModel):
    """A table over PIECES with a tokenizer: mostly `a`, and `</think>` with probability .2."""

    spelled = {"</think>": [CLOSE]}
    chat_template = "a template"

    def __init__(self):
        super().__init__(lambda past: [0.0, 0.2, 0.5, 0.2, 0.05, 0.05], len(PIECES))

    def bytes_of(self, token: int) -> bytes:
        return PIECES[token]

    def cut(self, text: str) -> list[int]:
        return self.spelled.get(text, [A])


class Speller(Reasoner):
    """The same, where the end is two tokens."""

    spelled = {"</think>": [4, 5]}


def measures(trace, name: str) -> list[Measure]:
    return [event for step in trace.steps for event in step.of(Measure) if event.name == name]


def decode(model, strategy: str = "greedy", tokens: int = 8, prompt: tuple[int, ...] = (OPEN,), **parameters):
    models = {"target": model, "draft": model}
    return Lane(strategy, [*prompt], models, parameters, limits=Limits(tokens)).run()


def test_a_budget_forces_the_end_after_so_many_tokens_of_reasoning():
    trace = decode(Reasoner(), thinking_budget=3)
    assert trace.output()[:5] == [A, A, A, CLOSE, A]
    [forced] = measures(trace, ScoreName.THINKING_BUDGET)
    assert (forced.total, forced.limit, forced.level) == (3, 3, FORCED)


def test_an_end_of_several_tokens_is_forced_token_by_token_and_is_one_moment():
    trace = decode(Speller(), thinking_budget=2)
    assert trace.output()[:5] == [A, A, 4, 5, A]
    assert len(measures(trace, ScoreName.THINKING_BUDGET)) == 2
    said = "The budget is spent: after 2 tokens of reasoning its end is forced."
    assert [(step, says) for step, says in moment_sentences(trace) if "budget" in says] == [(3, said)]


@pytest.mark.parametrize("strategy", ["sample", "speculative", "beam"])
def test_every_strategy_with_processors_keeps_the_budget(strategy):
    trace = decode(Reasoner(), strategy, thinking_budget=4)
    before = trace.output()[: trace.output().index(CLOSE)]
    assert len(before) <= 4


def test_a_text_that_ends_its_reasoning_itself_is_left_alone():
    trace = decode(Reasoner(), prompt=(OPEN, A, CLOSE), thinking_budget=1)
    assert trace.output() == [A] * 8
    assert measures(trace, ScoreName.THINKING_BUDGET) == []


def test_the_probability_of_the_end_is_recorded_while_reasoning_is_open():
    trace = decode(Reasoner(), thinking_budget=3)
    nodes = [node for step in trace.steps for commit in step.of(Commit) for node in commit.nodes]
    found = measures(trace, ScoreName.END_OF_THINKING)
    assert [one.node for one in found] == [0, *nodes[:3]]
    assert all(math.isclose(one.total, 0.2, rel_tol=1e-6) for one in found)


def test_an_end_of_several_tokens_has_no_single_probability():
    assert measures(decode(Speller()), ScoreName.END_OF_THINKING) == []


def test_a_budget_needs_a_tokenizer():
    model = TableModel(lambda past: [0.5, 0.5], 2)
    with pytest.raises(Refusal, match="tokenizer"):
        Lane("greedy", [0], {"target": model}, {"thinking_budget": 3}, limits=Limits(4))


def test_delimiters_can_be_set_and_are_checked():
    trace = decode(Reasoner(), thinking_budget=1, span_delimiters="b a", prompt=(B,))
    assert trace.output()[:1] == [A]  # which closes it
    with pytest.raises(Refusal, match="span_delimiters"):
        decode(Reasoner(), span_delimiters="b")


def test_a_chat_template_adds_delimiters_unless_the_lane_sets_its_own():
    template = "[THINK] [/THINK]"
    assert own_delimiters({}, template)["span_delimiters"].endswith("reasoning: [THINK] [/THINK]")
    assert own_delimiters({"span_delimiters": "a b"}, template) == {}
    model = Reasoner()
    model.chat_template = template
    assert decode(model).shaping["span_delimiters"].endswith("[/THINK]")
