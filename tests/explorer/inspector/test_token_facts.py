"""The inspector's facts are those of the events, and the mass on offer is always accounted for."""

import json
import math

import pytest

from decoders.lane import Lane, Limits
from decoders.trace.events import Commit, Distribution, Propose, Step, Verdict
from decoders.trace.events import event_from_json as trace_event
from decoders.trace.scores import Rank
from decoders.trace.trace import Trace
from explorer.inspector.token_facts import PATH, ROWS, Facts, inspect, inspect_cell
from tests.helpers import tiny_models


def made() -> Trace:
    """A prompt of two tokens, a rejected draft (node 2) and the token that replaced it (node 3)."""
    vocabulary = {0: b"a", 1: b" b", 2: b"<i>", 3: b"\n"}
    trace = Trace("any", "Any", {}, 0, {"target": "t"}, [0, 1], vocabulary)
    events = [
        Propose(2, 1, 2, math.log(0.5), "draft"),
        Distribution(1, "draft", [[2, math.log(0.5)], [3, math.log(0.25)]], 0.25, 1.0, among=4),
        Distribution(1, "target", [[3, math.log(0.75)], [2, math.log(0.125)]], 0.125, 0.5, among=4),
        Verdict(2, "rejected", 0.125, 0.5, 0.9, "The draw is above p / q."),
        Propose(3, 1, 3, math.log(0.75), "target"),
        Verdict(3, "resampled", 0.8, u=0.3, reason="Drawn from the residual."),
        Rank(3, "sum_logprob", -0.3, rank=1),
        Commit([3], [math.log(0.75)]),
    ]
    trace.append(Step(0, events, 0.1))
    return trace


@pytest.fixture(scope="module")
def models():
    return {"target": tiny_models.make(endings=0.0), "draft": tiny_models.make(seed=1, endings=0.0)}


def decoded(models, strategy: str, **parameters) -> Trace:
    prompt = models["target"].encode("the cat sat on a mat; the cat")
    return Lane(strategy, prompt, models, parameters, 3, Limits(max_new_tokens=24)).run()


def test_a_rejected_token_is_explained_by_its_numbers_and_its_successor():
    found = inspect(made(), 2)
    assert (found["token"], found["id"], found["born"], found["source"]) == ("<i>", 2, 1, "draft")
    assert found["path"] == [{"node": 0, "text": "a"}, {"node": 1, "text": "␣b"}]
    assert found["state"] == "rejected" and found["position"] == 1
    (verdict,) = found["verdicts"]
    assert verdict == {
        "step": 1,
        "status": "rejected",
        "p": 0.125,
        "q": 0.5,
        "u": 0.9,
        "reason": "The draw is above p / q.",
    }
    told = [(s["text"], s["status"], s["p"], s["here"]) for s in found["siblings"]]
    assert told == [("<i>", "rejected", 0.125, True), ("↵", "resampled", 0.8, False)]
    model, draft = found["stages"]
    assert [(r["text"], round(r["p"], 6), r["here"]) for r in model["rows"]] == [
        ("↵", 0.75, False),
        ("<i>", 0.125, True),
    ]
    assert model["entropy"] == 0.5 / math.log(2) and model["rest"] == pytest.approx(0.125)
    assert (model["rank"], model["p"], model["more"]) == (2, pytest.approx(0.125), 2)
    assert (draft["title"], draft["rank"]) == ("draft", 1)


def test_a_chance_that_is_not_p_over_q_is_what_an_attempt_is_held_against():
    trace = made()
    trace.steps[0].events[3].acceptance = 0.75
    trace.steps[0].events[3].status = "accepted"
    (attempt,) = inspect(trace, 2)["attempts"]
    assert attempt["accept"] == 0.75 and attempt["shown"]["accept"] == ".75"


def test_an_attempt_says_p_q_acceptance_the_draw_and_what_is_left_over():
    (attempt,) = inspect(made(), 2)["attempts"]
    assert attempt["accept"] == 0.25 and attempt["u"] == 0.9 and attempt["status"] == "rejected"
    rows = {r["text"]: r for r in attempt["rows"]}
    assert (rows["<i>"]["p"], rows["<i>"]["q"], rows["<i>"]["left"]) == (0.125, 0.5, 0.0)
    assert rows["<i>"]["mark"] == "tested" and rows["↵"]["mark"] == "own"
    # what the target drew from was recorded for the token that it drew: .8 of what is left
    assert rows["↵"]["left"] == pytest.approx(0.8) and attempt["residual"] == "all"
    assert attempt["rest"] == pytest.approx({"p": 0.125, "q": 0.25, "left": 0.2})
    assert inspect(made(), 3)["attempts"] == [attempt]
    assert inspect(made(), 3)["draw"] == {"u": 0.3, "low": None, "high": None}


def test_several_siblings_are_several_attempts_with_the_numbers_of_each(models):
    trace = decoded(models, "speculative_tree", widths="3,2", temperature=1.0)
    facts, several = Facts(trace), 0
    for node in facts.births:
        blocks = facts.of(node)["attempts"]
        several += len(blocks) > 1
        for block in blocks:
            row = next(r for r in block["rows"] if r["mark"] == "tested")
            assert (row["p"], row["q"]) == (block["p"], block["q"])
            assert block["accept"] == pytest.approx(min(1.0, block["p"] / block["q"]))
            assert (block["u"] < block["accept"]) == (block["status"] == "accepted")
            rejected = block["status"] == "rejected"
            assert block["residual"] == ("all" if rejected else None)
            for side in ("p", "q", "left") if rejected else ("p", "q"):
                whole = math.fsum(r[side] or 0.0 for r in block["rows"]) + block["rest"][side]
                assert whole == pytest.approx(1.0, abs=1e-6)
            assert math.fsum(r["left"] or 0.0 for r in block["rows"]) <= 1 + 1e-6
        for before, after in zip(blocks, blocks[1:], strict=False):  # what is left is the next attempt's p
            left = {r["id"]: r["left"] for r in before["rows"] if r["left"] is not None}
            for row in after["rows"]:
                if row["id"] in left:
                    assert row["p"] == pytest.approx(left[row["id"]], abs=1e-9)
    assert several > 3


def test_derived_numbers_are_those_that_the_verifier_used(models):
    """p and q of a second attempt come out of the first one's, without a look at the second verdict."""
    from explorer.inspector.verification_tests import known, without_tried

    trace = decoded(models, "speculative_tree", widths="4", temperature=1.0)
    facts, seen = Facts(trace), 0
    for parent, offers in facts.offers.items():
        tried = [n for n in facts.children.get(parent, []) if facts.births[n][1].source == "draft"]
        judged = [facts.verdicts[n][0][1] for n in tried]
        if len(tried) < 2 or judged[0].status != "rejected" or judged[1].p is None:
            continue
        q = known(offers["draft", None]) | {facts.nodes.token[tried[0]]: judged[0].q}
        later = without_tried(q, facts.nodes.token[tried[0]], "sampled without replacement")
        if facts.nodes.token[tried[1]] in later:
            assert later[facts.nodes.token[tried[1]]] == pytest.approx(judged[1].q, rel=1e-4)
            seen += 1
    assert seen


def test_a_sampled_token_shows_every_stage_its_rank_and_where_the_draw_fell(models):
    trace = decoded(models, "sample", temperature=0.7, top_k=6, top_p=0.9)
    facts = Facts(trace)
    for node in facts.births:
        found = facts.of(node)
        assert [s["title"] for s in found["stages"]] == ["model", "temperature 0.7", "top_k 6", "top_p 0.9"]
        for stage in found["stages"]:
            assert math.fsum(r["p"] for r in stage["rows"]) + stage["rest"] == pytest.approx(1, abs=1e-6)
            assert stage["rank"] is None or stage["rows"][stage["rank"] - 1]["here"]
        model, cooled, cut, last = found["stages"]
        assert model["removed"] is None and cooled["removed"] is None
        kept = {r["id"] for r in cut["rows"]}
        assert len(kept) == 6 and cut["more"] == 0
        share = math.fsum(r["p"] for r in cooled["rows"] if r["id"] in kept)
        assert cut["removed"] == pytest.approx(1 - share, abs=1e-4)
        draw = found["draw"]
        assert draw["low"] <= draw["u"] < draw["high"]
        assert draw["high"] - draw["low"] == pytest.approx(last["p"], abs=1e-5)


def test_raw_events_are_those_that_name_the_node():
    lines = [json.loads(line["json"]) for line in inspect(made(), 3)["events"]]
    assert [line["type"] for line in lines] == ["Propose", "Verdict", "Rank", "Commit"]
    assert trace_event(lines[1]) == Verdict(3, "resampled", 0.8, u=0.3, reason="Drawn from the residual.")


def test_scores_belong_to_their_node():
    (score,) = inspect(made(), 3)["scores"]
    assert score == {"step": 1, "name": "sum_logprob", "total": -0.3, "rank": 1, "parts": {}}
    assert inspect(made(), 2)["scores"] == []


def test_a_walk_along_the_tree_is_possible():
    found = inspect(made(), 1)
    assert (found["parent"], found["child"], found["siblings"]) == (0, 3, [])
    assert inspect(made(), 3)["child"] is None


def test_the_prompt_was_given():
    found = inspect(made(), 0)
    assert (found["source"], found["state"], found["born"]) == ("prompt", "prompt", None)
    assert found["path"] == [] and found["stages"] == [] and found["attempts"] == []


def test_an_unknown_node_is_one_sentence():
    with pytest.raises(ValueError, match="not a token of the trace"):
        inspect(made(), 99)


def test_a_cell_is_explained_by_what_stood_in_its_place(models):
    trace = decoded(models, "jacobi", block_size=6)
    position = len(trace.prompt) + 3
    first = inspect_cell(trace, position, 0)
    assert first["cell"]["state"] == "guess" and first["position"] == 4
    assert first["id"] == trace.output()[3]  # the token that became final there
    history = first["cell"]["history"]
    assert [c["iteration"] for c in history] == sorted(c["iteration"] for c in history)
    assert history[-1]["state"] == "settled" and history[-1]["token"] == first["token"]
    with pytest.raises(ValueError, match="was empty in this iteration"):
        inspect_cell(trace, position, 999)


def test_long_lists_are_cut_but_keep_the_token_itself_and_all_mass():
    count = 4 * ROWS
    trace = Trace("any", "Any", {}, 0, {}, list(range(3 * PATH)), {t: b"x%d" % t for t in range(200)})
    tip = len(trace.prompt) - 1
    share = 0.9 / count
    top = [[t, math.log(share)] for t in range(count)]
    proposed = Propose(tip + 1, tip, count - 1, math.log(share), "target")
    trace.append(
        Step(0, [Distribution(tip, "target", top, 0.1, 3.0), proposed, Commit([tip + 1], [0.0])], 0.1)
    )
    found = inspect(trace, tip + 1)
    (stage,) = found["stages"]
    assert len(found["path"]) == PATH and found["path"][-1]["text"] == f"x{tip}"
    assert len(stage["rows"]) == ROWS and stage["rank"] == count
    assert stage["rows"][-1] == {
        "text": f"x{count - 1}",
        "id": count - 1,
        "p": pytest.approx(share),
        "here": True,
    }
    assert sum(r["p"] for r in stage["rows"]) + stage["rest"] == pytest.approx(1)


@pytest.mark.parametrize("strategy", ["greedy", "beam", "contrastive_search", "prompt_lookup", "speculative"])
def test_every_node_of_a_trace_can_be_inspected(strategy, models):
    trace = decoded(models, strategy)
    facts = Facts(trace)
    assert facts.nodes.token.keys() == trace.nodes().keys()
    for node in facts.nodes.token:
        found = json.loads(json.dumps(facts.of(node), allow_nan=False))
        assert found["id"] == facts.nodes.token[node] and found["token"] == facts.word(node)
        above = [one["node"] for one in found["path"]]
        assert above[-1:] == ([] if found["parent"] is None else [found["parent"]])


def test_a_copied_draft_says_of_what_it_is_a_copy(models):
    trace = decoded(models, "prompt_lookup")
    facts = Facts(trace)
    copies = [n for n, (_, born) in facts.births.items() if born.source == "prompt"]
    assert copies
    for node in copies:
        told = facts.of(node)["copied"]
        assert facts.nodes.token[told["node"]] == facts.nodes.token[node] and told["text"] == facts.word(node)
        assert told["place"].startswith(("token ", "position ")) and told["after"]
        first = facts.births[node][1].parent not in copies
        tail = facts.path(facts.nodes.parent[node])[-len(told["after"]) :]
        assert not first or told["after"] == [facts.word(n) for n in tail]
    assert facts.of(0)["copied"] is None
