"""The sentence of a run's result: which text is likeliest, at what cost, and where texts part."""

from visualizers.analysis.result import sentence


def lane(number: int, label: str, forwards: int, logprob: float, tokens: int = 4, **more) -> dict:
    return {
        "lane": number,
        "label": label,
        "ended": "Reached max_new_tokens = 4.",
        "given": 0,
        "tokens": ["x"] * tokens,
        "logprob": [logprob] * tokens,
        "race": {"forwards": [0, forwards]},
        "relation": None,
        "parting": None,
        **more,
    }


def said(*lanes: dict) -> str:
    return sentence(list(lanes), [{"lane": one["lane"], "logprob": one["logprob"][0]} for one in lanes])


GREEDY = lane(1, "Greedy", 4, -0.5)


def test_a_lane_alone_has_its_tokens_forwards_and_likelihood():
    assert said(lane(1, "Speculative decoding", 2, -0.5)) == (
        "4 tokens in 2 target forwards, 2.00 per forward; mean log p per token −0.50."
    )


def test_the_same_text_for_fewer_forwards():
    same, fewer = {"equal": True}, "Speculative decoding writes the text of Greedy in 2 instead of 4 target"
    assert said(GREEDY, lane(2, "Speculative decoding", 2, -0.5, relation=same)) == f"{fewer} forwards."
    first = lane(1, "Speculative decoding", 2, -0.5)
    assert said(first, lane(2, "Greedy", 4, -0.5, relation=same)) == f"{fewer} forwards."


def test_the_likeliest_text_and_the_first_difference():
    other = lane(2, "Beam search", 4, -0.25, relation={"equal": False}, parting={"position": 3})
    assert said(GREEDY, other) == (
        "The text of Beam search is likeliest: mean log p per token −0.25; Greedy −0.50. "
        "The first difference is at token 3."
    )


def test_texts_that_are_as_likely_are_named_together_and_lanes_of_one_name_by_number():
    others = [lane(n, "Sampling", 4, -2.0, relation={"equal": False}) for n in (2, 3)]
    assert said(GREEDY | {"logprob": [-2.001] * 4}, *others) == ""
    assert said(lane(1, "Sampling", 4, -1.0), *others) == (
        "The text of lane 1 is likeliest: mean log p per token −1.00; lane 2 −2.00, lane 3 −2.00."
    )


def test_nothing_is_said_while_a_lane_goes_on_or_has_no_token():
    assert said(GREEDY, lane(2, "Beam search", 4, -0.5, ended=None)) == ""
    assert said(lane(1, "Greedy", 4, -0.5, tokens=1) | {"tokens": []}) == ""


def test_an_unknown_likelihood_is_not_compared():
    points = [{"lane": 1, "logprob": -0.5}, {"lane": 2, "logprob": None}]
    other = lane(2, "From a file", 0, -0.5, relation={"equal": False}, parting={"position": 1})
    assert sentence([GREEDY, other], points) == "The first difference is at token 1."


def test_a_lane_whose_label_is_long_is_named_by_its_number():
    long = lane(2, "Sampling temperature 0, top_p 1, no_repeat_ngram_size 3", 4, -2.0)
    assert said(GREEDY, long | {"relation": {"equal": False}}) == (
        "The text of Greedy is likeliest: mean log p per token −0.50; lane 2 −2.00."
    )
