"""Chunking-free retrieval: which sentences are found, where their passages end, and that all is verbatim."""

import math

import pytest

from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.search.best_first.cfic import document_of, merge_ranges, sentences_of
from decoders.trace.events import Forward, Note
from decoders.trace.scores import Rank, Score
from decoders.trace.trace import malformed
from tests.helpers import tiny_models

WORDS = ["<end>", "the", "a", " cat", " dog", " bird", " sat", " ran", " flew", "\n", "?"]
END, THE, A, CAT, DOG, BIRD, SAT, RAN, FLEW, LINE, ASK = range(11)
SENTENCES = [[THE, CAT, SAT], [THE, DOG, RAN], [A, BIRD, FLEW]]


class Worded(TableModel):
    """A table whose texts are cut into the longest words that fit."""

    def cut(self, text: str) -> list[int]:
        tokens = []
        while text:
            word = max((w for w in self.words if text.startswith(w)), key=len, default=None)
            if word is None:
                return [END]
            tokens.append(self.words.index(word))
            text = text[len(word) :]
        return tokens


def table(ends: dict[int, float] | None = None):
    """P(the) .6, P(a) .3; after the: cat .2, dog .7; the text ends after these tokens with these."""

    def row(past: tuple[int, ...]) -> list[float]:
        said = past[past.index(ASK) + 1 :]
        known = {(): {THE: 0.6, A: 0.3}, (THE,): {CAT: 0.2, DOG: 0.7}}.get(said, {})
        known = {END: (ends or {}).get(said[-1], 0.05) if said else 0.01} | known
        rest = (1 - sum(known.values())) / (len(WORDS) - len(known))
        return [known.get(token, rest) for token in range(len(WORDS))]

    return row


def prompt_of(*numbers: int) -> list[int]:
    """A document of these sentences, a blank line, a question."""
    tokens = [token for n in numbers for token in (*SENTENCES[n], LINE)]
    return [*tokens, LINE, ASK]


def run(numbers, ends=None, new_tokens=30, **parameters):
    model = Worded(table(ends), len(WORDS), frozenset({END}), words=WORDS)
    return Lane("cfic", prompt_of(*numbers), {"target": model}, parameters, 0, Limits(new_tokens)).run()


def scores(trace, name: str) -> list[Score]:
    return [e for s in trace.steps for e in s.of(Rank) if e.name == name]


def text(trace) -> str:
    return trace.text().removesuffix("<end>")


def test_the_worked_example_by_the_mean_of_log_p():
    trace = run((0, 1, 2), {SAT: 0.9, RAN: 0.9, FLEW: 0.9}, passages=2)
    last = scores(trace, "sentence prefix")[-2:]
    assert [e.total for e in last] == pytest.approx([-0.434, -1.060], abs=5e-4)
    assert text(trace) == "the cat sat\nthe dog ran"
    bird = [e for e in scores(trace, "sentence prefix") if e.rank == 2][0]
    assert bird.total == pytest.approx(-1.204, abs=5e-4)


def test_the_worked_example_by_first_tokens():
    trace = run((0, 1, 2), {SAT: 0.9, RAN: 0.9, FLEW: 0.9}, passages=2, prefix="first-token")
    assert text(trace) == "the dog ran\na bird flew"


def test_three_passages_are_in_the_order_of_the_document():
    trace = run((2, 1, 0), {SAT: 0.9, RAN: 0.9, FLEW: 0.9}, passages=3)
    assert text(trace) == "a bird flew\nthe dog ran\nthe cat sat"


def test_a_passage_ends_where_the_end_of_the_text_is_likeliest():
    trace = run((0, 1, 2), {SAT: 0.1, RAN: 0.3, FLEW: 0.6}, passages=1)  # the dog ran ...
    assert text(trace) == "the dog ran\na bird flew"
    found = scores(trace, "end of text")
    assert [e.total for e in found] == pytest.approx([math.log(0.3), math.log(0.6)])
    assert [e.rank for e in found] == [None, 1]


def test_overlapping_passages_become_one():
    trace = run((0, 1, 2), {SAT: 0.1, RAN: 0.3, FLEW: 0.6}, passages=2)  # cat to bird, dog to bird
    assert text(trace) == "the cat sat\nthe dog ran\na bird flew"
    assert merge_ranges([(3, 5), (0, 1), (1, 2), (5, 6)]) == [(0, 2), (3, 6)]


def test_a_passage_is_never_shorter_than_its_sentence():
    trace = run((0, 1, 2), {SAT: 0.1, RAN: 0.3, FLEW: 0.6}, passages=1, passage_tokens=1)
    assert text(trace) == "the dog ran"


def forwards(trace) -> int:
    return sum(len(s.of(Forward)) for s in trace.steps)


def test_forwards_one_a_passage_and_one_a_level_of_the_trie():
    assert forwards(run((0,), {SAT: 0.5})) == 1  # one sentence: nothing to tell apart
    assert forwards(run((0, 1, 2), {RAN: 0.9}, passages=1)) == 2 + 1
    assert text(run((0,), {SAT: 0.5})) == "the cat sat"


def test_equal_sentences_are_found_where_they_stand_first():
    trace = run((1, 0, 1), {RAN: 0.9, SAT: 0.1}, passages=1)
    assert text(trace) == "the dog ran" and forwards(trace) == 2 + 1
    assert any("From sentence 1 on 3 sentences" in e.text for s in trace.steps for e in s.of(Note))


def test_a_sentence_that_begins_another_one_ends_its_prefix_early():
    """the cat sat, and before it the sentence: the cat."""
    tokens = [THE, CAT, LINE, THE, CAT, SAT, LINE, LINE, ASK]
    model = Worded(table({CAT: 0.9, SAT: 0.1}), len(WORDS), frozenset({END}), words=WORDS)
    trace = Lane("cfic", tokens, {"target": model}, {"passages": 1}, 0, Limits(9)).run()
    assert text(trace) == "the cat"
    assert malformed((e for s in trace.steps for e in s.events), len(tokens)) is None


@pytest.mark.parametrize("way", ["score", "first-token"])
@pytest.mark.parametrize("passages", [1, 2, 4])
def test_on_a_real_model_the_output_is_the_documents_own_text(way, passages):
    target = tiny_models.make()
    document = "The cat sat. The dog ran! A bird flew. The cat sat on a mat. Then? It rained."
    prompt = target.encode(document + "\n\nwho sat?")
    given = {"passages": passages, "prefix": way, "passage_tokens": 30}
    trace = Lane("cfic", prompt, {"target": target}, given, 0, Limits(120)).run()
    said = trace.text().removesuffix(tiny_models.END).strip()
    assert said
    begins = [document[slice(*span)] for span in sentences_of(document)]
    for passage in said.split("\n"):
        assert passage in document and any(passage.startswith(begin) for begin in begins)
    assert malformed((e for s in trace.steps for e in s.events), len(prompt)) is None


def test_without_a_document_or_an_end_it_is_greedy(prompt):
    target = tiny_models.make()
    plain = Lane("greedy", prompt, {"target": target}, {}, 0, Limits(9)).run()
    found = Lane("cfic", prompt, {"target": target}, {}, 0, Limits(9)).run()
    assert found.output() == plain.output()
    assert found.steps[0].of(Note)[0].text.startswith("There is no document here")


def test_documents_and_sentences():
    assert document_of("a. b\n\nc\n\nq?") == "a. b\n\nc" and document_of("no blank line") == ""
    doc = 'He said "no." Yes? 3.5 cm\nlast'
    assert [doc[slice(*span)] for span in sentences_of(doc)] == ['He said "no."', "Yes?", "3.5 cm", "last"]
