"""The proof from the report: a visitor has a strategy write a program, token by token, by biases on the
sequence that are larger than anything a model says, and has it run by the scorer `tests`.
"""

import pytest

from explorer.runs.lane_factory import lane_maker
from explorer.runs.validation import check
from explorer.tasks import sandbox
from tests.helpers.ready_loader import ready_loader
from tests.helpers.sandbox_programs import Canaries

PROMPT = "# f(1) == 1\ndef f(x):\n"
WINDOW = 7  # tokens before the next one that tell which it is
ESCAPE = """\
 try: 1/0
 except Exception as e: g=e.__traceback__.tb_frame.f_back.f_globals
 g.get('HARMLESS',set()).add('open')
 g['os'].open('<MADE>',65)
 return x
"""
ASKED = {"scorer": "tests", "temperature": 1.0, "num_samples": 1, "num_beams": 1, "block_length": 0}


def biases(target, program: str) -> tuple[str, int]:
    """What a visitor types into `sequence_bias` so that nothing but the program is written after the prompt,
    and its number of tokens.
    """
    tokens, first = target.encode(PROMPT + program), len(target.encode(PROMPT))
    pieces = [target.bytes_of(token).decode() for token in tokens]
    found = ["".join(pieces[at - WINDOW : at + 1]) for at in range(first, len(tokens))]
    assert len(set(found)) == len(found)
    return ", ".join(f'"{window}": 1000' for window in found), len(found)


@pytest.mark.parametrize("checked", [True, False], ids=["as it comes", "past the check of its language"])
def test_a_program_that_a_visitor_forces_reaches_nothing(checked, monkeypatch):
    ran, call = [], sandbox.call
    monkeypatch.setattr(sandbox, "call", lambda *asked: ran.append(call(*asked)) or ran[-1])
    if not checked:
        monkeypatch.setattr(sandbox, "refusal", lambda source: None)
    loader = ready_loader()
    with Canaries() as canaries:
        program = canaries.filled(ESCAPE)
        bias, length = biases(loader.models["target"], program)
        lane = {"strategy": "rankgen", "seed": 0, "parameters": ASKED | {"sequence_bias": bias}}
        request = {"prompt": PROMPT, "max_new_tokens": length, "lanes": [lane]}
        assert lane_maker(loader)(check(request))[0].run().text() == program
        assert len(ran) == 1 and ran[0].values == []
        assert ("__traceback__" if checked else "PermissionError") in ran[0].failed
        canaries.check()
