"""Sliders of the inspector: what the browser computes from stored distributions is what decoding would do."""

import itertools
import json
import math
import re
from functools import partial

import pytest
import torch
from playwright.sync_api import expect

from decoders.chooser import invert
from decoders.logits.distributions import entropies, probabilities, processors, summarise
from explorer.export.page_files import ASSETS, text
from explorer.export.replay_page import replay_html
from explorer.inspector.knobs import knobs, unnamed_before
from tests.browser.bare import handed
from tests.browser.test_inspector import committed, inspect, lane, open_inspector, panel, with_lanes
from tests.browser.test_page import finished, press, ready, trace
from tests.helpers.shipped_pair import decode

NEUTRAL = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
VALUES = [
    *({"temperature": t} for t in (0.0, 0.3, 0.7, 0.9, 1.1, 1.6)),
    *({"top_k": k} for k in (1, 4, 8, 12)),
    *({"top_p": p} for p in (0.3, 0.8, 0.95)),
    *({"min_p": p} for p in (0.02, 0.1, 0.4)),
    {"temperature": 0.6, "top_k": 5, "top_p": 0.9, "min_p": 0.05},
    {"temperature": 1.4, "top_k": 6, "top_p": 0.7},
]


@pytest.fixture(scope="module")
def bare(chromium):
    """A page with nothing but the arithmetic, which keeps nothing."""
    page = chromium.new_page()
    page.evaluate = partial(handed, page.evaluate)
    page.add_script_tag(content=text(ASSETS / "web" / "page" / "what-if.js"))
    yield page
    page.close()


def offer(logits: torch.Tensor, named: int, low: float | None = None) -> dict:
    """What a trace holds of logits [V], at temperature 1."""
    logprobs = logits.log_softmax(-1)
    ((top, rest, _),) = summarise(logprobs[None], named)
    ids, logs = zip(*top, strict=True)
    others = len(logits) - len(ids)
    made = {"ids": ids, "logs": logs, "rest": rest if others else 0.0, "others": others, "extra": None}
    nats = float(entropies(logprobs)) + sum(math.exp(log) * log for log in logs)
    return made | {
        "nats": nats,
        "temperature": 1.0,
        "beside": unnamed_before(made, int(logits.argmax()), low),
    }


def processed(logits: torch.Tensor, values: dict) -> torch.Tensor:
    """Probabilities [V] after transformers' own processors; all on the most likely at temperature 0."""
    if values.get("temperature") == 0.0:
        return torch.zeros(len(logits), dtype=torch.float64).index_fill_(0, logits.argmax(), 1.0)
    process = processors(values, len(logits))
    return probabilities(process(logits[None], []) if process else logits[None])[0]


SHARES = """cases => cases.map(([offer, values, us, chosen]) => {
  const all = ExplorerPage.whatIf.cases(offer, values, chosen), shares = ExplorerPage.whatIf.shares(all);
  return { of: offer.ids.map((id) => shares.ids.includes(id) ? shares.of(id) : [0, 0]), rest: shares.rest,
    drawn: us.map((u) => ExplorerPage.whatIf.draw(u, offer, values, chosen)) };
})"""
US = [(i + 0.5) / 40 for i in range(40)]


@pytest.mark.parametrize(("vocabulary", "named"), [(8, 8), (8, 12), (300, 8)])
def test_the_browser_reshapes_as_the_processors_do(bare, vocabulary, named):
    torch.manual_seed(vocabulary + named)
    rows = [torch.randn(vocabulary) * scale for scale in (0.5, 1.5, 3.0)]
    asked = list(itertools.product(rows, [{**NEUTRAL, **values} for values in VALUES]))
    found = bare.evaluate(SHARES, [[offer(row, named), values, US, None] for row, values in asked])
    sure = 0
    for (row, values), answer in zip(asked, found, strict=True):
        real, ids = processed(row, values), offer(row, named)["ids"]
        for token, (low, high) in zip(ids, answer["of"], strict=True):
            assert low - 1e-5 <= float(real[token]) <= high + 1e-5
            if vocabulary <= named:  # nothing is left out: no range
                assert high - low < 1e-5
        others = 1.0 - sum(float(real[token]) for token in ids)
        assert answer["rest"][0] - 1e-5 <= others <= answer["rest"][1] + 1e-5
        for u, drawn in zip(US, answer["drawn"], strict=True):
            token = invert(real, u)
            assert token in drawn["could"] or (drawn["other"] and token not in ids)
            assert drawn["token"] in (None, token)
            sure += drawn["token"] is not None
    assert sure > (0.99 if vocabulary <= named else 0.3) * len(asked) * len(US)


def test_where_the_drawn_token_stood_narrows_what_may_change(bare):
    torch.manual_seed(1)
    row, u = torch.randn(300) * 2, 0.4
    real = processed(row, NEUTRAL)
    token = int(row.argmax())
    low = float(real[:token].sum())
    u = low + float(real[token]) / 2
    (known, blind) = bare.evaluate(
        SHARES,
        [[offer(row, 8, at), {**NEUTRAL, "temperature": 0.95}, [u], token] for at in (low, None)],
    )
    assert known["drawn"][0]["token"] == token == invert(processed(row, {"temperature": 0.95}), u)
    assert blind["drawn"][0]["token"] is None


def first_difference(one: list[int], other: list[int]) -> int:
    pairs = itertools.zip_longest(one, other)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), max(len(one), len(other)))


RELAXED = [{"lenience": x} for x in (0.02, 0.2, 0.5, 0.8, 1.0)]
TYPICAL = [{"epsilon": e, "delta": d} for e in (0.02, 0.2, 0.6) for d in (0.1, 1.0)]


@pytest.mark.parametrize(
    ("strategy", "own", "values"),
    [
        ("sample", {}, VALUES),
        ("sample", {"temperature": 0.7, "top_k": 5, "top_p": 0.9}, [*VALUES, {"top_k": 0, "top_p": 1.0}]),
        ("sample", {"repetition_penalty": 1.3, "temperature": 0.8}, VALUES[:8]),
        ("greedy", {}, VALUES[2:14]),
        ("speculative", {"temperature": 1.0}, [*VALUES[:6], VALUES[-1]]),
        ("speculative", {}, VALUES[:6]),
        ("lenient", {}, RELAXED),
        ("lenient", {"temperature": 1.0}, RELAXED),
        ("typical_acceptance", {}, TYPICAL),
        ("typical_acceptance", {"temperature": 1.0, "top_k": 6}, TYPICAL),
    ],
)
def test_a_run_with_the_values_does_what_the_sliders_predict(bare, strategy, own, values):
    """Up to the first place that may change the run with the values and the seed of the lane is the same; no
    later than at the place that changes for sure it is another, and a token that is known stands there.
    """
    prompt, sure, tokens = "Once upon a time there was a little", 0, 0
    for seed in (0, 1):
        before = decode(strategy, prompt, own, 24, seed=seed)
        data = knobs(before)
        was = before.output()
        shaped = data["values"] if data["run_as"] == strategy else NEUTRAL
        for one in values:
            walk = bare.evaluate(
                "([data, values]) => ExplorerPage.whatIf.walked(data, values)",
                [data, {**shaped, **one}],
            )
            rest, opened, change = own if data["run_as"] == strategy else {}, walk["open"], walk["change"]
            # What comes later says nothing; rounds of drafts end differently where the limit is near.
            enough = change["at"] + 1 if change and data["run_as"] in ("greedy", "sample") else 24
            now = decode(data["run_as"], prompt, {**rest, **one}, enough, seed=seed).output()
            at = first_difference(was, now)
            firsts = [found["at"] for found in (opened, change) if found]
            assert min(firsts, default=len(was)) <= at
            if opened and opened["at"] == at:
                assert opened["other"] or now[at] in opened["could"]
            if change:
                assert at <= change["at"]
                if at == change["at"] and change["token"] is not None:
                    assert now[at] == change["token"]
            sure += min(firsts, default=len(was)) == (change["at"] if change else len(was))
            tokens += min(firsts, default=len(was))
    assert sure >= 2 and tokens > 0  # it says something


def test_a_run_that_does_not_follow_from_its_distributions_gets_no_answer(bare):
    fits = "data => ExplorerPage.whatIf.fits(data)"
    data = json.loads(json.dumps(knobs(decode("sample", "Once upon a time", {"top_k": 4}, 12, seed=1))))
    assert bare.evaluate(fits, data)
    place = data["places"][5]
    place["token"] = next(token for token in place["p"]["ids"] if token != place["token"])
    assert not bare.evaluate(fits, data)


def slide(page, name: str, value: float) -> None:
    page.get_by_role("slider", name=name, exact=True).fill(str(value))


def what_if(page):
    return panel(page).get_by_role("region", name="What if")


WIDTHS = """() => [...document.querySelectorAll('.what-if .bar.sure')]
  .map((bar) => bar.getBoundingClientRect().width)"""
WALK = """() => { const { data, values } = decodingExplorer.app.inspector.knobs;
  return ExplorerPage.whatIf.walked(data, values); }"""
FITS = """() => [document.documentElement, document.querySelector('.inspector-body')]
  .every((box) => box.scrollWidth <= box.clientWidth)"""
MARKED = "() => [...document.querySelectorAll('.lane [data-what-if]')].map((chip) => chip.dataset.whatIf)"


def test_bars_and_chips_answer_while_a_slider_moves_and_a_run_goes_on_from_there(shared):
    page = shared()
    with_lanes(page, {"strategy": "sample", "seed": 3})
    was = trace(page, 0)
    inspect(page, 1, committed(page, 1)[2])
    expect(what_if(page)).to_contain_text("Move a slider")
    expect(what_if(page).get_by_role("button", name="Run in a new lane")).to_be_disabled()
    assert page.evaluate(MARKED) == []
    seen = []
    for temperature in (0.8, 0.5, 0.2):
        slide(page, "temperature", temperature)
        seen.append(page.evaluate(WIDTHS))
    assert len({tuple(widths) for widths in seen}) == 3  # at once: nothing was waited for
    numbers = what_if(page).locator(".offer-row .number, .rest").all_inner_texts()
    found = re.search(r"(\d*\.\d+)–(\d*\.\d+)", " ".join(numbers))
    assert found  # a range, which is explained where it stands
    expect(what_if(page)).to_contain_text(f"{found[0]} means: somewhere between {found[1]} and {found[2]}.")
    slide(page, "top_k", 1)
    walk = page.evaluate(WALK)
    at, token = walk["change"]["at"], walk["change"]["token"]
    text = page.evaluate("token => decodingExplorer.app.inspector.knobs.data.texts[token]", token)
    expect(what_if(page)).to_contain_text(f"“{text}” would be written instead of")
    assert page.evaluate(MARKED) == ["→ " + text]
    assert trace(page, 0) == was  # nothing that happened is another thing now
    what_if(page).get_by_role("button", name="Run in a new lane").click()
    page.wait_for_function("decodingExplorer.lanes.length === 2 && decodingExplorer.lanes[1].count > 0")
    finished(page)
    one, two = (trace(page, i) for i in (0, 1))
    assert [two["parameters"][name] for name in ("temperature", "top_k")] == [0.2, 1]
    outputs = []
    for made in (one, two):
        by_node = {
            e["node"]: e["token"] for s in made["steps"] for e in s["events"] if e["type"] == "Propose"
        }
        commits = [e for s in made["steps"] for e in s["events"] if e["type"] == "Commit"]
        outputs.append([by_node[n] for e in commits for n in e["nodes"]])
    assert first_difference(*outputs) == at and outputs[1][at] == token
    assert page.evaluate(MARKED) == []
    expect(panel(page)).to_be_hidden()


def test_reset_and_closing_leave_no_mark(shared):
    page = shared()
    with_lanes(page, {"strategy": "sample", "seed": 3})
    inspect(page, 1, committed(page, 1)[2])
    for leave in ("Reset", "Close inspector"):
        slide(page, "top_k", 1)
        assert page.evaluate(MARKED)
        panel(page).get_by_role("button", name=leave).click()
        assert page.evaluate(MARKED) == []
    inspect(page, 1, committed(page, 1)[3])
    expect(page.get_by_role("slider", name="top_k")).to_have_value("0")


def test_a_test_of_p_against_q_moves_with_lenience(shared):
    page = shared()
    setup = {"strategy": "lenient", "parameters": {"temperature": 1.0, "lenience": 1.0}, "seed": 2}
    with_lanes(page, setup, tokens=24)
    events = [e for step in trace(page, 0)["steps"] for e in step["events"]]
    tests = [e for e in events if e["type"] == "Verdict" and e["status"] == "rejected"]
    rejected = next(e for e in tests if e["u"] * 0.01 * e["q"] < 0.9 * e["p"])
    inspect(page, 1, rejected["node"])
    bar = what_if(page).locator(".test-fill")
    slide(page, "lenience", 0.9)
    before = bar.bounding_box()["width"]
    slide(page, "lenience", 0.01)
    assert bar.bounding_box()["width"] > before
    expect(what_if(page)).to_contain_text("it is accepted.")
    tick, box = (what_if(page).locator(s).bounding_box() for s in (".test-tick", ".test-box"))
    assert (tick["x"] + 1.5 - box["x"]) / box["width"] == pytest.approx(rejected["u"], abs=0.01)
    expect(what_if(page)).to_contain_text("tests pass")


def test_another_draft_length_leaves_greedy_text_and_changes_the_rounds(shared):
    page = shared()
    with_lanes(page, {"strategy": "speculative", "parameters": {"num_assistant_tokens": 2}})
    rounds = page.evaluate("decodingExplorer.lanes[0].count")
    inspect(page, 1, committed(page, 1)[2])
    slide(page, "num_assistant_tokens", 1)
    expect(what_if(page)).to_contain_text("The text stays.")
    expect(what_if(page)).to_contain_text(f"Drafts of 2 took {rounds}.")


def test_a_lane_without_sliders_says_why(shared):
    page = shared()
    with_lanes(page, {"strategy": "beam"})
    inspect(page, 1, committed(page, 1)[2])
    expect(what_if(page)).to_contain_text("This strategy decides differently.")
    expect(panel(page).get_by_role("slider")).to_have_count(0)


def test_the_lanes_parameters_lead_to_the_sliders_and_keys_move_them(shared):
    page = shared()
    with_lanes(page, {"strategy": "sample", "seed": 3})
    lane(page, 1).get_by_role("button", name="Parameters").click()
    lane(page, 1).get_by_role("button", name="What if …").click()
    slider = page.get_by_role("slider", name="temperature", exact=True)
    slider.focus()
    page.keyboard.press("ArrowLeft")
    expect(slider).to_have_value("0.99")
    expect(panel(page)).to_contain_text("Lane 1, position 12")  # the arrow moved the slider and nothing else


def test_on_a_phone_sliders_are_as_large_as_fingers_and_hide_nothing(visit):
    page = visit(390, 844, has_touch=True)
    ready(page)
    setup = {"max_new_tokens": 12, "lanes": [{"strategy": "sample", "seed": 3}]}
    page.evaluate("setup => decodingExplorer.app.applySetup(setup)", setup)
    press(page, "Run")
    page.wait_for_function("decodingExplorer.lanes[0].ended && decodingExplorer.state === 'done'")
    inspect(page, 1, committed(page, 1)[2])
    expect(panel(page).get_by_role("slider")).to_have_count(0)
    what_if(page).locator("summary").tap()
    slide(page, "temperature", 0.4)
    for control in panel(page).get_by_role("slider").all():
        assert control.bounding_box()["height"] >= 44
    assert page.evaluate(FITS)
    bars, outcome = (what_if(page).locator(s).bounding_box()["y"] for s in (".what-if-here", ".what-if-lane"))
    assert bars < outcome  # what is dragged and what answers are on screen together


def test_a_saved_page_answers_without_a_network(chromium, tmp_path):
    made = decode("sample", "Once upon a time", {"temperature": 1.0}, 12, seed=1)
    path = tmp_path / "run.html"
    path.write_text(replay_html([made]), "utf-8")
    context = chromium.new_context(offline=True)
    page = context.new_page()
    page.goto(path.as_uri())
    page.wait_for_function("window.decodingExplorer && decodingExplorer.drawn")
    open_inspector(page, 1, len(made.prompt) + 2)
    slide(page, "top_k", 2)
    expect(what_if(page)).to_contain_text("what if")
    expect(what_if(page).locator(".draw-piece")).to_have_count(2)
    expect(what_if(page).get_by_role("button", name="Run here")).to_have_count(0)
    context.close()
