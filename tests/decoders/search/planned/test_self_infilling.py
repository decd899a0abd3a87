"""Self-infilling: on tables with known probabilities each jump, cut and fall-back is known by hand; on a tiny
model what holds for any text.
"""

import pytest
import torch

from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.search.planned.fill_in_middle import (
    before_last,
    is_degenerate,
    latter_half,
    sentinels,
    suffix_context,
    suffix_prompt,
)
from decoders.trace.events import Note, Propose, Verdict
from decoders.trace.scores import Measure
from tests.helpers import tiny_models

WORDS = ["<PRE>", "<SUF>", "<MID>", "<EOT>", ".", "a", "b", "c", "R", "\n"]
PRE, SUF, MID, EOT, END, A, B, C, R, LINE = range(10)


def law(**chances: float) -> list[float]:
    """Probabilities of all tokens: those given by their names, the rest shared by the others."""
    given = {"end": END, "eot": EOT, "mid": MID, "suf": SUF, "a": A, "b": B, "c": C, "r": R, "line": LINE}
    row = [0.0] * len(WORDS)
    for name, chance in chances.items():
        row[given[name]] = chance
    left = (1 - sum(row)) / row.count(0.0)
    return [chance or left for chance in row]


def story(text: tuple[int, ...]) -> list[float]:
    """a, then unsure; after the suffix c and its end; the middle is b; left to right it is a b R c."""
    if MID in text:
        return law(eot=0.9) if text[-1] == B else law(b=0.9)
    if SUF in text:
        return law(end=0.9) if text[-1] == C else law(c=0.9)
    after = {A: law(b=0.15, c=0.12), B: law(r=0.9), R: law(c=0.9), C: law(end=0.9), LINE: law(a=0.9)}
    return after.get(text[-1], law(a=0.9))


def model(table=story, eos=(END,)) -> TableModel:
    return TableModel(table, len(WORDS), frozenset(eos), words=WORDS)


def run(target, prompt=(LINE,), tokens=20, seed=0, **parameters):
    given = {"suffix_prompt": "R", "iterations": 0, "tau": 0.25, **parameters}
    return Lane("self_infilling", list(prompt), {"target": target}, given, seed, Limits(tokens)).run()


def written(trace) -> list[tuple[str, int]]:
    """(zone, token) in the order of writing, what was only placed left out."""
    events = [e for step in trace.steps for e in step.of(Propose)]
    return [(e.source, e.token) for e in events if e.source != "placed"]


def reasons(trace, status: str) -> dict[int, str]:
    found = [v for step in trace.steps for v in step.of(Verdict) if v.status == status]
    return {verdict.node: verdict.reason for verdict in found}


def test_the_end_is_written_before_the_middle_where_the_model_is_unsure():
    trace = run(model())
    assert [token for _, token in written(trace)] == [A, SUF, R, C, END, MID, B, EOT]
    assert trace.output() == [A, B, R, C, END]
    zones = [zone for zone, _ in written(trace)]
    assert zones == ["prefix", *["suffix"] * 4, *["middle"] * 3]


def test_forced_tokens_say_so_and_sentinels_never_reach_the_text():
    trace = run(model())
    nodes, forced = trace.nodes(), reasons(trace, "forced")
    assert all(reason.startswith("forced") for reason in forced.values())
    assert [nodes[node][1] for node in forced] == [SUF, R, MID, R, END]
    assert not {PRE, SUF, MID, EOT} & set(trace.output())


@pytest.mark.parametrize("iterations", [0, 1])
def test_with_tau_0_it_never_jumps_and_is_plain_decoding(iterations):
    trace = run(model(), tau=0.0, iterations=iterations)
    greedy = Lane("greedy", [LINE], {"target": model()}, limits=Limits(20)).run()
    assert trace.output() == greedy.output() == [A, B, R, C, END]
    assert {zone for zone, _ in written(trace)} == {"prefix"}


def test_with_tau_1_it_jumps_at_the_first_token():
    assert written(run(model(), tau=1.0))[0] == ("suffix", SUF)


def test_the_largest_probability_is_that_after_the_sentinels_are_masked():
    """Unmasked .2 of b is below tau; without the sentinel's .6 it is .5."""
    masked = model(lambda text: law(suf=0.6, b=0.2) if text[-1] == A else story(text))
    trace = run(masked, tau=0.4)
    scores = [s.total for step in trace.steps for s in step.of(Measure) if s.name == "largest probability"]
    left = 1 - 0.6 - 3 * (0.2 / 8)  # without all four sentinels
    assert scores[1] == pytest.approx(0.2 / left) and SUF not in [t for _, t in written(trace)]


def test_it_does_not_jump_in_a_line_that_has_the_suffix_prompt():
    text = (LINE, R, A)
    trace = run(model(lambda t: law(r=0.9) if t[-1] == LINE else law(end=0.2)), tau=0.5)
    assert text and SUF not in [token for _, token in written(trace)]


def test_an_infill_that_never_ends_loses_its_suffix():
    endless = model(lambda text: law(b=0.9) if MID in text else story(text))
    trace = run(endless, tokens=8)
    assert trace.output() == [A, *[B] * 5, R, C]  # what the suffix had room for goes on left to right
    assert any("did not end properly" in n.text for step in trace.steps for n in step.of(Note))
    assert set(reasons(trace, "pruned").values()) >= {"the infill did not end properly"}


def test_a_loop_writes_the_end_anew_from_left_to_right():
    trace = run(model(), iterations=1)
    assert trace.output() == [A, B, R, C, END]
    assert [token for zone, token in written(trace) if zone == "left to right"] == [R, C, END]


def test_a_degenerate_text_falls_back_to_the_infilled_one():
    without = model(lambda text: law(end=0.9) if text[-1] == B and MID not in text else story(text))
    trace = run(without, iterations=1)
    assert trace.output() == [A, B, R, C, END]  # left to right it was a b, without the suffix prompt
    assert "degenerate: the infilled text is taken" in reasons(trace, "pruned").values()


def test_a_second_loop_begins_with_the_new_suffix():
    trace = run(model(), iterations=2)
    tokens = [token for _, token in written(trace)]
    assert tokens.count(SUF) == 2 and trace.output()[-1] == END
    again = tokens[len(tokens) - tokens[::-1].index(SUF) :]
    assert again[:2] == [R, C]  # vanilla: what is given ends with the last suffix prompt


def test_random_interrupts_have_the_chance_of_the_paper():
    """At m = .2 and tau = .25 it jumps with probability 1 - .2/.5; the row has nothing of a sentinel."""

    def unsure(text):
        row = story(text)
        if text[-1] == A and not {SUF, MID} & set(text):
            row = [0.0] * 4 + [0.2] * 5 + [0.0]
        return row

    trials = 200
    jumped = sum(
        SUF in [t for _, t in written(run(model(unsure), seed=seed, random_interrupt=True))]
        for seed in range(trials)
    )
    assert abs(jumped / trials - 0.6) < 3 * (0.6 * 0.4 / trials) ** 0.5


def test_degenerate_texts():
    assert is_degenerate("x" * 400, "x") and not is_degenerate("a story with some words", "story")
    assert all(is_degenerate(text, "") for text in ("", "  ", " pass\n", "return"))
    assert is_degenerate("no such word", "return")


def test_what_is_kept_of_a_new_suffix():
    text = "one\ntwo\nreturn x\n\nfour return y"
    assert latter_half(text) == "return x\nfour return y"
    assert suffix_context("vanilla", text, " four return y", "return") == (" four return", False)
    assert suffix_context("extended", text, " y", "return") == ("return x\nfour return", False)
    assert suffix_context("half", text, " y", "return") == ("return x\nfour return y", True)
    for mode in ("vanilla", "extended", "half"):
        assert suffix_context(mode, "a\nb", "b", "return") == ("return", False)
    assert before_last("a return b return c", "return") == "a return b " and before_last("a", "b") == ""


def test_the_suffix_prompt_follows_the_prompt():
    assert suffix_prompt("", "def f(xs):\n") == "return" and suffix_prompt("", "program for\n1") == "\n"
    assert suffix_prompt("so", "x") == "so" and suffix_prompt("\\n", "x") == "\n"
    assert suffix_prompt("none", "x") == ""


@pytest.mark.parametrize(
    "names",
    [
        "<PRE> <SUF> <MID> <EOT>",
        "▁<PRE> ▁<SUF> ▁<MID> ▁<EOT>",
        "<fim_prefix> <fim_suffix> <fim_middle> <|endoftext|>",
        "<|fim_prefix|> <|fim_suffix|> <|fim_middle|> <|endoftext|>",
    ],
)
def test_sentinels_are_found_by_their_names(names):
    words = names.split()
    assert sentinels(TableModel(story, 4, words=words)).eot == 3
    assert sentinels(TableModel(story, 3, words=words[:3])) is None


def test_a_model_that_was_not_trained_to_fill_in_is_refused(tiny_model):
    with pytest.raises(ValueError, match=r"has no tokens for infilling; choose one .* llama-tiny-forms\.$"):
        Lane("self_infilling", [1], {"target": tiny_model("llama")})


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("iterations", [0, 3])
@pytest.mark.parametrize("context", ["vanilla", "half"])
def test_on_any_model_sentinels_come_in_their_order_and_the_zones_make_the_text(seed, iterations, context):
    target = tiny_models.make("forms", seed)
    form = sentinels(target)
    prompt = tiny_models.tokenizer()("ab\nc")["input_ids"]
    settings = {"tau": 0.7, "temperature": 0.8, "suffix_prompt": "th", "iterations": iterations}
    lane = Lane(
        "self_infilling", prompt, {"target": target}, {**settings, "context": context}, seed, Limits(30)
    )
    trace = lane.run()
    assert not {form.pre, form.suf, form.mid, form.eot} & set(trace.output())
    order = [
        t for zone, t in written(trace) if zone != "left to right" and t in (form.suf, form.mid, form.eot)
    ]
    for before, after in zip([form.eot, *order], order, strict=False):
        assert after == form.suf or (before, after) in ((form.suf, form.mid), (form.mid, form.eot))


def test_with_tau_0_it_is_what_transformers_writes_behind_the_prefix_sentinel(tiny_model):
    target = tiny_model("forms")
    form, prompt = sentinels(target), tiny_models.tokenizer()("ab\nc")["input_ids"]
    wanted, bad = [form.pre, *prompt], [form.pre, form.suf, form.mid, form.eot]
    for _ in range(12):
        row = target.model(torch.tensor([wanted])).logits[0, -1]
        row[bad] = -torch.inf
        wanted.append(int(row.argmax()))
        if wanted[-1] in target.eos:
            break
    lane = Lane("self_infilling", prompt, {"target": target}, {"tau": 0.0}, limits=Limits(12))
    assert lane.run().output() == wanted[1 + len(prompt) :]
