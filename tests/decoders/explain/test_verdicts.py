"""Sentences of verdicts: one for each code, with numbers that agree; verifiers themselves hold none."""

import ast
import inspect
from pathlib import Path

import pytest
import torch

from decoders.explain import verdicts
from decoders.explain.verdicts import reason_of, sentence, sentence_or_none
from decoders.speculative import verifiers
from decoders.trace.events import Verdict
from decoders.trace.number_format import compared
from decoders.trace.reasons import NUMBERS, Code, Reason

REJECTED = {"p": 0.0352, "q": 0.0651, "u": 0.79, "accepted": False, "slot": 0}


def test_every_code_has_a_sentence_of_exactly_its_numbers():
    assert set(verdicts.SENTENCES) == set(Code) - {Code.OTHER_PREFERRED}  # which needs the words of a token
    for code, wording in verdicts.SENTENCES.items():
        taken = {} if isinstance(wording, str) else inspect.signature(wording).parameters
        assert taken.keys() == NUMBERS.get(code, {}).keys(), code
        kinds = {
            name: p.annotation for name, p in taken.items() if p.annotation is not inspect.Parameter.empty
        }
        assert kinds.items() <= NUMBERS.get(code, {}).items(), code


def test_a_verdict_says_what_is_stored_or_what_its_codes_say():
    preferred = Reason(Code.OTHER_PREFERRED, {"preferred": 7, "p_preferred": 0.162, "p": 0.05})
    verdict = Verdict(3, "rejected", why=(preferred,))
    assert reason_of(verdict, {7: b" picked"}) == "Rejected: the target prefers “␣picked” (.162)."
    assert reason_of(Verdict(3, "rejected", reason="As an older file says."), {}) == "As an older file says."
    assert reason_of(Verdict(3, "finished"), {}) is None


def test_printed_numbers_agree_with_each_other():
    generator = torch.Generator().manual_seed(0)
    rows = (torch.rand(2000, 3, generator=generator, dtype=torch.float64) ** 2).tolist()
    rows += [(0.4995, 1.0, 0.5), (0.5004, 1.0, 0.5), (1 / 3, 1.0, 0.3333), (2e-9, 0.1, 1e-9)]
    for one, other, u in rows:
        p, q = sorted((one, other))
        shown_p, shown_q, passes, draw = compared(p, q, u)
        assert f"{float(shown_p) / float(shown_q):.3g}" == f"{float(passes):.3g}"
        assert float(draw) != float(passes) and (float(draw) < float(passes)) == (u < p / q)


@pytest.mark.parametrize(
    ("reason", "wanted"),
    [
        (
            Reason(Code.TOKEN_REJECTION, REJECTED),
            "The draft gave .0651, the target .0352: it is accepted with probability p/q = .541; "
            "u = .79 is larger: rejected.",
        ),
        (
            Reason(Code.TOKEN_REJECTION, REJECTED | {"p": 0.0, "slot": 1}),
            "Among the tokens not yet tried the draft gave .0651, the residual of the target nothing: it "
            "cannot be accepted.",
        ),
        (
            Reason(Code.LENIENT, dict(p=0.1, q=0.4, discounted=0.2, probability=0.5, u=0.3, accepted=True)),
            "The target gave .1, the draft .4, which counts as .2: it is accepted with probability .5. It "
            "was accepted, and without lenience it would not be.",
        ),
        (
            Reason(Code.BLOCK, dict(length=1, kept=2, weight=0.5, probability=0.25, passed=False)),
            "The first token weighs .5 and passes with probability .25: it did not pass, and a longer prefix "
            "did.",
        ),
        (
            Reason(Code.TRANSPORT_BOUND, {"draws": 2, "taken": 0.84, "bound": 0.89}),
            "K-SEQ keeps one of 2 such draws with probability .84 here; with the best plan of optimal "
            "transport it would be .89.",
        ),
        (
            Reason(Code.RANK, {"rank": 3, "count": 2}),
            "It is not among the target's 2 most likely: its rank is 3.",
        ),
        (
            Reason(Code.ALL_ACCEPTED, {"p": 0.4}),
            "All drafted tokens were accepted; the target drew one more, with probability .4.",
        ),
    ],
)
def test_a_sentence_is_made_of_a_code_and_its_numbers(reason, wanted):
    assert sentence(reason) == wanted


def test_reasons_follow_each_other_in_their_order():
    judged = Reason(Code.JUDGE, {"score": 0.9, "delta": 0.5})
    assert sentence(Reason(Code.IS_NOT_ARGMAX), judged) == (
        "The target prefers another token here. The judge rates it .9, limit .5: it is accepted all the same."
    )
    assert sentence_or_none((), {}) is None


def test_no_sentence_stands_in_a_verifier():
    """A string with a space in it, other than the descriptions of modules, classes and functions."""
    found = []
    for file in sorted(Path(verifiers.__file__).parent.glob("*.py")):
        tree = ast.parse(file.read_text("utf-8"))
        described = (ast.Module, ast.ClassDef, ast.FunctionDef)
        docs = {ast.get_docstring(n, clean=False) for n in ast.walk(tree) if isinstance(n, described)}
        texts = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        found += [f"{file.name}, line {n.lineno}" for n in texts if " " in n.value and n.value not in docs]
    assert found == []
