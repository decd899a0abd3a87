"""Python under constraints: the grammar has every right answer, and what is counted is what is said."""

from decoders.constraints.grammars import Grammar
from decoders.constraints.kinds import vocabulary_of
from decoders.models import load
from explorer.experiments.sweeps.python_constrained import GRAMMAR, parses, strange
from explorer.tasks.python_programs import TEMPLATES


def test_every_right_answer_is_a_sentence_of_the_grammar():
    model = load("llama-tiny", "cpu")
    vocabulary = vocabulary_of(model, model.eos)
    constraint = Grammar("lark", GRAMMAR, vocabulary)

    def passes(text: str) -> bool:
        state = constraint.start()
        for token in model.cut(text):
            if (state := constraint.advance(state, token)) is None:
                return False
        return constraint.may_end(state)

    refused = [body for _, _, body, _ in TEMPLATES if not passes("    return " + body.format(k=3))]
    assert not refused
    assert not passes("    return s.") and not passes("    return os.system(s)")


def test_what_parses_and_what_is_strange():
    assert parses("def f(s):", "    return s.upper()") and not parses("def f(s):", "    return s.")
    assert strange("    return s.capitals()") and not strange("    return s.upper().split()")
