"""The comparison's numbers are those that the hand-made traces were written with."""

import json
import math

import pytest

from decoders.trace.events import Commit, Distribution, Forward, Propose, Step, Verdict
from decoders.trace.scores import Rank
from decoders.trace.trace import Trace
from visualizers.analysis.comparison import compare
from visualizers.analysis.token_classes import CLASSES, token_class

WORDS = [b"Once", b" the", b" dog", b" cat", b" ran", b"."]  # token 0 is the prompt
THE, DOG, CAT, RAN, STOP = 1, 2, 3, 4, 5
LN2 = math.log(2)


def lane(tokens, tops=None, ended="Done.", title="Any", **more) -> Trace:
    """A lane that commits one token a step and forward. `tops[i]`: the offer at token i, [token, p] pairs."""
    trace = Trace(title, title, more.pop("parameters", {}), more.pop("seed", 0), {"target": "t"}, [0])
    trace.vocabulary.update(enumerate(WORDS))
    for i, token in enumerate(tokens):
        offer = (tops or {}).get(i, [[token, 0.5]])
        top = [[t, math.log(p)] for t, p in offer]
        own = {t: math.log(p) for t, p in offer}[token]
        events = [Forward("target", "decode", 1, 1, i, 0.5), Distribution(i, "target", top, 0.0, LN2)]
        events += [Propose(i + 1, i, token, own, "target"), Commit([i + 1], [own])]
        trace.append(Step(i, events, 0.5 * (i + 1)))
    trace.ended = ended
    return trace


def drafting() -> Trace:
    """Two rounds of two drafts: both accepted and a bonus; the first rejected and replaced."""
    trace = lane([], title="Drafts")
    half = math.log(0.5)
    trace.append(
        Step(
            0,
            [
                Propose(1, 0, THE, half, "draft"),
                Propose(2, 1, DOG, half, "draft"),
                Forward("draft", "draft", 2, 1, 0.0, 0.1),
                Forward("target", "verify", 3, 1, 0.1, 0.1),
                Verdict(1, "accepted"),
                Verdict(2, "accepted"),
                Propose(3, 2, STOP, half, "target"),
                Verdict(3, "bonus"),
                Commit([1, 2, 3], [half] * 3),
            ],
            0.2,
        )
    )
    trace.append(
        Step(
            1,
            [
                Propose(4, 3, STOP, half, "draft"),
                Propose(5, 4, CAT, half, "draft"),
                Forward("draft", "draft", 2, 1, 0.2, 0.1),
                Forward("target", "verify", 3, 1, 0.3, 0.1),
                Verdict(4, "rejected"),
                Verdict(5, "never reached"),
                Propose(6, 3, RAN, half, "target"),
                Verdict(6, "resampled"),
                Commit([6], [half]),
            ],
            0.4,
            slots=7,
        )
    )
    return trace


def test_the_first_difference_with_both_tokens_their_chances_and_the_margin():
    offer = {1: [[DOG, 0.5], [CAT, 0.25]]}
    found = compare([lane([THE, DOG, STOP], offer), lane([THE, CAT, STOP], offer)])
    (pair,) = found["pairs"]
    assert (pair["same"], pair["position"], pair["nodes"]) == (1, 2, [2, 2])
    assert pair["tokens"] == ["␣dog", "␣cat"] and pair["p"] == pytest.approx([0.5, 0.25])
    assert pair["margin"] == pytest.approx(LN2) and pair["ranks"] == [1, 2] and pair["kind"] == "choice"
    assert pair["why"] == "a real difference: lane 2 took the token of rank 2"
    assert found["divergence"]["position"] == 2
    assert [(g["token"], g["lanes"]) for g in found["divergence"]["groups"]] == [("␣dog", [1]), ("␣cat", [2])]
    assert found["sentence"] == (
        "Lanes 1 and 2 begin with the same token; "
        "at position 2 lane 1 takes “␣dog” (p .50), lane 2 “␣cat” (p .25)."
    )
    assert found["lanes"][0]["relation"] is None
    assert found["lanes"][1]["relation"]["caption"] == "first difference from lane 1 at token 2, margin .69"
    assert found["lanes"][1]["greedy"]["position"] == 2


def test_a_tie_numerics_and_a_forced_token_are_told_apart_from_a_real_difference():
    def kind(first, second, a=DOG, b=CAT):
        found = compare([lane([a], {0: first}), lane([b], {0: second})])["pairs"][0]
        return found["kind"]

    tied = [[DOG, 0.3], [CAT, 0.3]]
    assert kind(tied, tied) == "tie"
    assert kind([[DOG, 0.30001], [CAT, 0.3]], [[CAT, 0.30001], [DOG, 0.3]]) == "numerics"
    assert kind([[DOG, 0.30001], [CAT, 0.3]], [[DOG, 0.30001], [CAT, 0.3]]) == "choice"
    assert kind([[DOG, 0.9], [CAT, 0.1]], [[CAT, 0.9], [DOG, 0.1]]) == "choice", "no rounding is that large"
    forced = lane([CAT], {0: tied})
    forced.steps[0].events.append(Verdict(1, "forced"))
    assert compare([lane([DOG], {0: tied}), forced])["pairs"][0]["kind"] == "forced"


def test_lanes_of_different_length_agree_as_far_as_both_have_come():
    long, short = lane([THE, DOG, RAN]), lane([THE, DOG])
    found = compare([long, short])
    assert found["divergence"] is None and found["pairs"][0] == {"lanes": [1, 2], "same": 2, "position": None}
    assert found["sentence"] == "Lanes 1 and 2 write the same 2 tokens; lane 1 continues after them."
    relation = found["lanes"][1]["relation"]
    assert relation["caption"] == "equal to lane 1 in 2 tokens, then one of them ends"
    assert relation["equal"] is False and relation["position"] is None
    assert compare([long, lane([THE, DOG, RAN])])["lanes"][1]["relation"]["caption"] == (
        "equal to lane 1 for all 3 tokens"
    )
    open_lane = lane([THE], ended=None)
    assert (
        compare([long, open_lane])["lanes"][1]["relation"]["caption"] == "equal to lane 1 in 1 token so far"
    )


def test_three_lanes_are_grouped_by_the_token_they_take():
    found = compare([lane([DOG]), lane([CAT]), lane([DOG])])
    assert [g["lanes"] for g in found["divergence"]["groups"]] == [[1, 3], [2]]
    assert found["sentence"].startswith(
        "Lanes 1, 2 and 3 differ from the first token on: lanes 1 and 3 take “␣dog”"
    )
    assert len(found["pairs"]) == 3


def test_empty_lanes_one_lane_and_other_prompts_say_so():
    assert "one lane" in compare([lane([THE])])["sentence"]
    found = compare([lane([THE]), lane([], ended=None)])
    assert "Nothing to compare yet" in found["sentence"] and found["likelihood"] == {
        "tokens": 0,
        "points": [],
    }
    assert found["lanes"][1]["race"]["reached"] == [0] and found["lanes"][1]["relation"]["equal"] is None
    other = lane([DOG])
    other.prompt = [0, 1]
    assert "different prompts" in compare([lane([DOG]), other])["sentence"]
    other = lane([DOG])
    other.models = {"target": "another"}
    found = compare([lane([CAT]), other])
    assert "different target models" in found["sentence"] and found["divergence"] is None
    json.dumps(found, allow_nan=False)


def test_only_the_steps_that_are_shown_count():
    offer = {1: [[DOG, 0.5], [CAT, 0.25]]}
    traces = [lane([THE, DOG, STOP], offer), lane([THE, CAT, STOP], offer)]
    found = compare(traces, [1, 2])
    assert found["divergence"] is None and found["likelihood"]["tokens"] == 1
    assert [len(x["tokens"]) for x in found["lanes"]] == [1, 2] and found["lanes"][0]["ended"] is None
    names = [column["name"] for column in found["table"]["columns"]]
    cells = found["table"]["rows"][1]["cells"]
    assert cells[names.index("steps")] == {"value": 2, "label": "2"}
    assert names[0] == "tokens / target forward" and cells[0] == {"value": 1.0, "label": "1.00"}
    assert compare(traces, [3, 3]) == compare(traces)


def test_the_race_and_the_likelihood_at_equal_length():
    found = compare([lane([THE, DOG, STOP]), drafting()])
    plain, drafts = (x["race"] for x in found["lanes"])
    assert plain["reached"] == [0, 1, 2, 3] and plain["forwards"] == [0, 1, 2, 3]
    assert drafts["reached"] == [0, 3, 4] and drafts["forwards"] == [0, 1, 2]
    assert drafts["target_tokens"] == [0, 3, 6] and drafts["positions"] == [0, 5, 10]
    assert drafts["seconds"] == [0, 0.2, 0.4]
    assert drafts["logprob"] == pytest.approx([0, -3 * LN2, -4 * LN2])
    points = found["likelihood"]["points"]
    assert found["likelihood"]["tokens"] == 3
    assert [p["logprob"] for p in points] == pytest.approx([-LN2, -LN2])
    assert [p["forwards"] for p in points] == pytest.approx([1, 1 / 3])
    assert [p["seconds"] for p in points] == pytest.approx([0.5, 0.2 / 3])
    assert found["lanes"][0]["entropy"] == pytest.approx([1, 1, 1])


def test_a_beam_that_is_not_final_counts_as_reached_and_not_as_committed():
    trace = lane([], ended=None)
    trace.append(Step(0, [Propose(1, 0, THE, -0.1, "target"), Rank(1, "sum", -0.1, rank=1)], 0.1))
    trace.append(Step(1, [Propose(2, 1, DOG, -0.1, "target"), Rank(2, "sum", -0.2, rank=1)], 0.2))
    race = compare([trace])["lanes"][0]["race"]
    assert race["reached"] == [0, 1, 2] and race["committed"] == [0, 0, 0]


def test_tokens_that_a_lane_began_with_cost_nothing():
    trace = lane([], ended="Done.")
    trace.append(Step(0, [Propose(1, 0, THE, None, "copied"), Commit([1], [None])], 0.1))
    events = [
        Forward("target", "decode", 1, 1, 0.1, 0.1),
        Propose(2, 1, DOG, -0.5, "target"),
        Commit([2], [-0.5]),
    ]
    trace.append(Step(1, events, 0.3))
    found = compare([trace, lane([THE, DOG])])
    race, point = found["lanes"][0]["race"], found["likelihood"]["points"][0]
    assert found["lanes"][0]["given"] == 1 and race["reached"] == [1, 1, 2] and race["forwards"] == [0, 0, 1]
    assert point["forwards"] == 1 and point["logprob"] is None, "nobody measured the given token"
    assert found["sentence"] == "Lanes 1 and 2 write the same 2 tokens."


def test_lanes_keep_the_numbers_that_the_page_gives_them():
    found = compare([lane([DOG]), lane([CAT])], numbers=[2, 4])
    assert found["pairs"][0]["lanes"] == [2, 4] and [x["lane"] for x in found["lanes"]] == [2, 4]
    assert found["lanes"][1]["relation"]["to"] == 2
    assert found["sentence"].startswith("Lanes 2 and 4 differ from the first token on: lane 2 takes “␣dog”")


def test_acceptance_by_depth_with_its_theory_and_by_class():
    found = compare([drafting()])["lanes"][0]
    # Depth 1: two rounds, one accepted; depth 2: two rounds, one tested and accepted. alpha = 2 / 3.
    assert found["alpha"] == pytest.approx(2 / 3)
    assert [(d["rounds"], d["tried"], d["reached"], d["share"]) for d in found["depth"]] == [
        (2, 2, 1, 0.5),
        (2, 1, 1, 0.5),
    ]
    assert [d["theory"] for d in found["depth"]] == pytest.approx([2 / 3, 4 / 9])
    assert found["classes"] == [
        {"name": "word start", "tested": 2, "accepted": 2, "share": 1.0},
        {"name": "punctuation", "tested": 1, "accepted": 0, "share": 0.0},
    ]
    assert compare([lane([THE])])["lanes"][0]["depth"] == []


def test_the_table_has_every_metric_defined_and_a_dash_for_what_a_lane_has_not():
    table = compare([lane([THE]), drafting()])["table"]
    names = [column["name"] for column in table["columns"]]
    assert {"target forwards", "Σ log p", "draft_acceptance_rate", "acceptance_histogram"} <= set(names)
    for column in table["columns"]:
        assert column["how"] in ("measured", "derived") and column["title"].endswith(".")
    plain, drafts = (dict(zip(names, row["cells"], strict=True)) for row in table["rows"])
    for name in ("draft forwards", "proposed", "mean_acceptance_length", "acceptance_histogram", "KV slots"):
        assert plain[name] == {"value": None, "label": "—"}
    assert drafts["proposed"]["value"] == 4 and drafts["accepted"]["value"] == 2
    assert drafts["mean_acceptance_length"] == {"value": 2.0, "label": "2.00"}
    assert drafts["acceptance_histogram"]["label"] == "1 0 1" and drafts["KV slots"]["label"] == "7"
    assert drafts["log p / token"]["label"] == "−0.693"


def test_lanes_with_one_title_are_told_apart():
    a = lane([THE], title="Sampling", parameters={"temperature": 1.0, "top_k": 0})
    b = lane([THE], title="Sampling", parameters={"temperature": 0.5, "top_k": 0}, seed=2)
    labels = [x["label"] for x in compare([a, b, lane([THE], title="Greedy")])["lanes"]]
    assert labels == ["Sampling temperature 1, seed 0", "Sampling temperature 0.5, seed 2", "Greedy"]


def test_a_long_text_in_a_name_is_cut_and_an_empty_one_is_left_out():
    a = lane([THE], parameters={"constraint": "regex", "constraint_text": "[a-z]+\n" * 9})
    b = lane([THE], parameters={"constraint": "none", "constraint_text": ""})
    labels = [x["label"] for x in compare([a, b])["lanes"]]
    assert labels == ["Any constraint regex, constraint_text [a-z]+ [a-z]+ [a-z]+ [a…", "Any constraint none"]


@pytest.mark.parametrize(
    ("token", "name"),
    [
        (b" dog", "word start"),
        (b"\ndog", "word start"),
        (b"dog", "word continuation"),
        ("é".encode(), "word continuation"),
        (b" ,", "punctuation"),
        (b"\"'", "punctuation"),
        ("—".encode(), "punctuation"),
        ("。".encode(), "punctuation"),
        (b" 7", "digit"),
        (b"42nd", "digit"),
        (b"  \n", "whitespace"),
        (b"", "other"),
        (b"\xe2\x96", "other"),
        ("🐶".encode(), "other"),
        (b"<img src=x>", "punctuation"),
    ],
)
def test_token_classes(token, name):
    assert token_class(token) == name and name in CLASSES
