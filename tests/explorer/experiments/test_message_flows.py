"""Flows: one alone is its strategy, wiring keeps its laws, nobody reads another's state, all is logged."""

import pytest

from explorer.experiments.asked import decoded
from explorer.experiments.message_flows import (
    Flow,
    Log,
    branching,
    checker,
    circular,
    decoding,
    generator_critic,
    ran,
    sequential,
)


def adds(name: str, reads: str, gives: str, much: int) -> Flow:
    return checker(name, (reads,), (gives,), lambda **said: {gives: said[reads] + much})


def counter(name: str = "counter") -> Flow:
    """Says how often it was asked, which it keeps in its state."""

    def work(content, state, ask):
        state["calls"] = state.get("calls", 0) + 1
        return {"n": state["calls"]}

    return Flow(name, (), ("n",), work)


@pytest.fixture
def models(tiny_model):
    return {"target": tiny_model("llama")}


def test_a_single_flow_is_its_strategy_alone(models):
    """The same text and cost, and a fresh seed in every call."""
    flow = decoding("writer", models, "sample", 6, seed=3, temperature=0.9)
    for seed in (3, 4):
        trace = decoded(models, "sample", "the cat", 6, seed, temperature=0.9)
        said = ran(flow, {"prompt": "the cat"})
        assert said == {
            "text": trace.text().split("<|end|>")[0],
            "cost": trace.costs.totals()["target_tokens"],
        }


def test_one_after_the_other_is_associative():
    a, b, c = adds("a", "x", "y", 1), adds("b", "y", "z", 2), adds("c", "z", "x", 4)
    left = sequential("left", sequential("ab", a, b), c)
    right = sequential("right", a, sequential("bc", b, c))
    assert ran(left, {"x": 1}) == ran(right, {"x": 1}) == {"y": 2, "z": 4, "x": 8}
    assert left.reads == right.reads == ("x",) and set(left.gives) == set(right.gives)


def test_one_round_of_a_circle_is_one_pass():
    parts = adds("a", "x", "y", 1), adds("b", "y", "x", 1)
    once = ran(circular("circle", parts, 1, lambda said: False), {"x": 5})
    assert once == ran(sequential("pass", *parts), {"x": 5}) | {"rounds": 1}


def test_a_circle_goes_on_until_it_is_told_to_stop():
    parts = adds("a", "x", "y", 1), adds("b", "y", "x", 1)
    assert ran(circular("circle", parts, 9, lambda said: said["x"] >= 9), {"x": 5})["rounds"] == 2
    assert ran(circular("circle", parts, 3, lambda said: False), {"x": 5})["x"] == 11


def test_what_the_critic_says_is_read_by_the_generator_in_the_next_round():
    def write(content, state, ask):
        state["heard"] = [*state.get("heard", []), content["critique"]]
        return {"text": " ".join(state["heard"])}

    generator = Flow("generator", ("critique",), ("text",), write)
    critic = checker("critic", ("text",), ("critique",), lambda text: {"critique": f"{len(text)}"})
    said = ran(generator_critic("pair", generator, critic, 3, lambda said: False, {"critique": "."}), {})
    assert said == {"text": ". 1 3", "critique": "5", "rounds": 3}


def test_a_branch_is_taken_by_what_was_said():
    parts = [adds("up", "x", "y", 1), adds("down", "x", "y", -1)]
    flow = branching("sign", lambda said: "up" if said["x"] >= 0 else "down", parts, ("x",))
    assert ran(flow, {"x": 3}) == {"y": 4} and ran(flow, {"x": -3}) == {"y": -4}


def test_no_flow_reads_another_s_state():
    """Neither through the object, nor by keys, nor through what was said."""
    mine = counter()
    ran(mine, {})
    with pytest.raises(AttributeError):
        mine.state  # noqa: B018

    def spy(content, state, ask):
        assert state == {} and "calls" not in content
        return {"found": content["calls"]}

    with pytest.raises(KeyError):
        ran(sequential("both", counter(), Flow("spy", ("n",), ("found",), spy)), {})

    def spoils(content, state, ask):
        content["list"].append("spoiled")
        return {"done": True}

    said = {"list": ["as it was"]}
    log = Log()
    ran(Flow("spoiler", ("list",), ("done",), spoils), said, log)
    assert said == log.messages[0].content == {"list": ["as it was"]}


def test_two_flows_of_one_kind_have_states_of_their_own():
    one, other = counter("one"), counter("other")
    assert [ran(one, {})["n"], ran(one, {})["n"], ran(other, {})["n"]] == [1, 2, 1]


def test_all_that_is_said_is_logged_with_who_when_and_why():
    log = Log()
    ran(sequential("pass", adds("a", "x", "y", 1), adds("b", "y", "z", 1)), {"x": 1}, log)
    said = [(m.sender, m.receiver, m.parent) for m in log.messages]
    assert said == [
        ("you", "pass", None),
        ("pass", "a", 0),
        ("a", "pass", 1),
        ("pass", "b", 0),
        ("b", "pass", 3),
        ("pass", "you", 0),
    ]
    assert [m.number for m in log.messages] == list(range(6))
    assert [m.time for m in log.messages] == sorted(m.time for m in log.messages)
    assert log.messages[-1].content == {"y": 2, "z": 3}


def test_what_is_missing_is_said():
    with pytest.raises(ValueError, match="There is no 'x' in the message to a; it holds nothing."):
        ran(adds("a", "x", "y", 1), {})
    with pytest.raises(ValueError, match="There is no 'y' in the answer of b; it holds z."):
        ran(Flow("b", (), ("y",), lambda content, state, ask: {"z": 1}), {})
