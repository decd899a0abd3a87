"""What the drawer with the code that runs is made of."""

import pytest

from decoders.trace.code import Function
from decoders.trace.events import Verdict
from decoders.trace.trace import Trace
from explorer.inspector.code_drawer import NO_CODE, docstring, drawer, highlighted, shown
from tests.helpers.shipped_pair import PROMPTS, decode


def test_every_test_of_a_token_is_an_event_of_its_own_with_its_numbers_and_its_step():
    trace = decode("speculative", PROMPTS[0], {"temperature": 0.8}, 16)
    made = drawer(trace)
    for step, rows in zip(trace.steps, made["steps"], strict=True):
        for verdict in step.of(Verdict):
            if verdict.u is None or verdict.q is None:
                continue
            about = [row for row in rows if row[4] == verdict.node and row[3][-1][0] == "u"]
            ((place, number, what, values, _, why),) = about
            assert verdict.status in what and [name for name, _ in values] == ["p", "q", "u"] and why
            assert "passes if" in made["algorithm"][number]
            assert made["functions"][made["places"][place][-1][0]]["name"] == "ratio_test"


def test_what_one_line_records_in_a_row_is_one_event():
    trace = decode("beam", PROMPTS[0], {"num_beams": 4}, 4)
    rows = drawer(trace)["steps"][1]
    proposed = [what for _, _, what, *_ in rows if "proposed" in what]
    assert len(proposed) == 1 and proposed[0].startswith("8 tokens proposed by target: ")
    assert any(what.startswith("4 tokens pruned: ") for _, _, what, *_ in rows)


def test_a_page_gets_what_it_does_not_have():
    trace = decode("greedy", PROMPTS[0], {}, 6)
    whole, rest = drawer(trace), drawer(trace, steps=4, functions=1, places=2)
    assert rest["steps"] == whole["steps"][4:] and len(rest["steps"]) == 2
    assert rest["functions"] == whole["functions"][1:] and rest["places"] == whole["places"][2:]


def test_a_trace_without_code_says_so():
    assert drawer(Trace("greedy", "Greedy", {}, 0, {}, [0])) == {"problem": NO_CODE}


def test_lines_keep_their_numbers_without_the_docstring():
    trace = decode("greedy", PROMPTS[0], {}, 2)
    function = trace.code.functions[trace.code.places[trace.steps[0].places[-1]][0][0]]
    html = shown(function)["html"]
    assert f"<li value='{function.first}'><b>def</b> greedy(" in html and "Takes the most likely" not in html
    at = next(n for n, line in enumerate(function.source.splitlines()) if "lane.commit" in line)
    assert f"<li value='{function.first + at}'>        lane.commit(" in html


def test_source_is_escaped_and_its_texts_go_over_lines():
    first, second = highlighted('x = """<b>\ny"""  # <i>\n')
    assert first == 'x = <em>"""&lt;b&gt;</em>'
    assert second.startswith("<em>y") and second.endswith("<i># &lt;i&gt;</i>")


@pytest.mark.parametrize(
    "source", ["", "not python (", "\0", "(" * 40_000, "-" * 40_000 + "1", "def f():\n" * 900]
)
def test_a_function_that_is_no_python_is_shown_as_text(source):
    assert docstring(source) == range(0)
    html = shown(Function("<b>f", "my.py", 1, source))["html"]
    assert html.startswith("<li") and "<b>f" not in html
