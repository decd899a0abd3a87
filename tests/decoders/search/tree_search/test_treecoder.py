"""TreeCoder and ASAp: plug-ins are the strategies themselves, what a constraint ends is never gone on with,
and draws under a grammar have the model's law among allowed texts.
"""

from collections import Counter

import pytest

from decoders.callbacks import Callbacks
from decoders.chooser import Exhaustive, Random
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.search.tree_search.asap import Asap
from decoders.search.tree_search.constraints import Gate, constraint_names
from decoders.search.tree_search.mcts import Edge
from decoders.search.tree_search.program_tree import Programs
from decoders.search.tree_search.treecoder import DECODERS, GatedSearch
from decoders.testing import random_table
from decoders.trace.events import Forward, Note, Propose, Verdict
from explorer.tasks import problems
from explorer.tasks.own_syntax import allowed
from explorer.tasks.own_tests import pass_rate
from tests.helpers import tiny_models

EXACT = {(0, 0): 9 / 17, (1, 1): 8 / 17}
TOY = TableModel(
    lambda past: {(): [0.9, 0.1], (0,): [0.1, 0.9], (1,): [0.2, 0.8]}[tuple(past[1:])], 2, words=["0", "1"]
)


OWN = Callbacks(pass_rate, allowed)


def grammar(*words: str) -> Callbacks:
    """Only these texts are allowed."""
    return Callbacks(allowed=lambda prompt, said, whole: said in words if whole else None)


def run(
    model, new_tokens, seed=0, strategy="treecoder", chooser=None, prompt=(0,), callbacks=OWN, **parameters
):
    asked = (strategy, list(prompt), {"target": model}, parameters, seed, Limits(max_new_tokens=new_tokens))
    return Lane(*asked, chooser, callbacks=callbacks).run()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.0])
def test_without_constraints_one_sample_is_plain_sampling(prompt, seed, temperature):
    model, given = tiny_models.make(), {"temperature": temperature}
    plain = run(model, 12, seed, "sample", prompt=prompt, **given)
    found = run(model, 12, seed, prompt=prompt, decoder="sampling", population=1, **given)
    assert found.output() == plain.output()


@pytest.mark.parametrize("beams", [1, 3, 4])
def test_without_constraints_beam_is_beam_search(prompt, beams):
    for endings in (1.0, 3.0):
        model = tiny_models.make(endings=endings)
        plain = run(model, 12, strategy="beam", prompt=prompt, num_beams=beams)
        found = run(model, 12, prompt=prompt, decoder="beam", population=beams)
        assert found.output() == plain.output()
        work = [t.costs.totals()["target_tokens"] for t in (plain, found)]
        assert work[0] == work[1]


@pytest.mark.parametrize("decoder", DECODERS)
def test_what_a_constraint_ends_is_never_gone_on_with(decoder):
    """No text has a #, and nothing was scored or proposed after one."""
    model = TableModel(random_table(4, 5, 0.6), 5, frozenset({0}), words=["<end>", "a", "b", "#", "c"])
    killed = 0
    for seed in range(3):
        given = {"constraints": "no comments", "decoder": decoder, "rollouts": 8}
        trace = run(model, 6, seed, **given)
        nodes = trace.nodes()
        dead = {e.node for s in trace.steps for e in s.of(Verdict) if e.status == "rejected" and e.reason}
        killed += len(dead)
        assert dead == {n for n, (_, token) in nodes.items() if token == 3}
        assert not {parent for parent, _ in nodes.values()} & dead
        assert 3 not in trace.output() and 1 <= len(trace.output()) <= 6
        reasons = {e.reason for s in trace.steps for e in s.of(Verdict) if e.node in dead}
        assert reasons <= {"the constraint no comments gives 0"}
    assert killed


@pytest.mark.parametrize("decoder", DECODERS)
def test_every_decoder_finds_what_only_a_few_texts_are(decoder):
    """Of sixteen texts two pass; where chance finds none, greedy writes one and a note says so."""
    only = grammar("abba", "baab")
    model = TableModel(lambda past: [0.6, 0.4], 2, words=["a", "b"])
    right = 0
    for seed in range(6):
        given = {"constraints": "syntax", "decoder": decoder, "rollouts": 64, "population": 8}
        trace = run(model, 4, seed, callbacks=only, **given)
        said = [e.text for s in trace.steps for e in s.of(Note)]
        passes = trace.text() in ("abba", "baab")
        right += passes
        assert passes or said[-1].startswith("No complete text passes the constraints")
    assert right >= 2


def test_phi_is_the_product_and_the_best_is_taken():
    """Two of three keywords and half of the equations: a third; the text with the highest Phi wins."""
    model = TableModel(lambda past: [0.25] * 4, 4, words=["1=1", "1=2", " cat ", " dog "])
    given = {"constraints": "keyword, arithmetic", "keywords": "cat, dog, cow"}
    lane = Lane("treecoder", [2], {"target": model}, given, limits=Limits(4))
    gate, node = Gate(lane), lane.tip
    for token in (0, 2, 3):
        node = lane.propose(node, token, 0.0)
    assert gate.phi(node, 2) == pytest.approx(2 / 3)
    assert gate.phi(node, 1) == pytest.approx(2 / 3 * 0.5)
    lane.close()
    given = {"constraints": "keyword", "keywords": "cat, dog", "decoder": "sampling", "population": 16}
    trace = run(model, 2, 2, **given)
    assert sorted(trace.output()) == [2, 3]


@pytest.mark.parametrize("decoder", DECODERS)
def test_the_answer_has_the_highest_phi_of_all_complete_texts(decoder):
    """Also where a text with a lower Phi is more likely, or was drawn last."""
    given = {"constraints": "keyword", "keywords": "b, c", "decoder": decoder, "population": 2, "rollouts": 8}
    various = 0
    for seed in range(65, 77):
        model = TableModel(random_table(seed, 4, 1.0), 4, frozenset({0}), words=["<end>", " a", " b", " c"])
        trace = run(model, 6, seed, **given)
        nodes, ended = trace.nodes(), []
        for event in (e for s in trace.steps for e in s.of(Verdict) if e.status == "finished"):
            node, words = event.node, set()
            while node in nodes and node >= len(trace.prompt):
                node, token = nodes[node]
                words.add(token)
            ended.append(((2 in words) + (3 in words)) / 2)
        answer = set(trace.output())
        assert not ended or ((2 in answer) + (3 in answer)) / 2 == max(ended)
        various += len(set(ended)) > 1
    assert various


def test_a_tree_search_backs_up_the_win_rate_or_the_best():
    model = TableModel(lambda past: [0.6, 0.4], 2, words=["a", "b"])
    lane = Lane("treecoder", [0], {"target": model}, {"decoder": "mcts"}, limits=Limits(2))
    search, edge = GatedSearch(Programs(lane, Gate(lane))), Edge(0, 0.5)
    for edge.visits, value in enumerate((1.0, 0.0, 0.5), 1):
        search.back_up(edge, value)
    assert edge.value == pytest.approx(0.5)
    lane.parameters["backup"] = "maximum"
    for value in (1.0, 0.0):
        search.back_up(edge, value)
    assert edge.value == 1.0
    lane.close()


def test_particles_are_drawn_again_from_the_living():
    """Half of all first tokens die; as many texts go on as before, and copies of one draw for themselves."""
    no_b = Callbacks(allowed=lambda prompt, said, whole: not said.startswith("b"))
    model = TableModel(lambda past: [0.5, 0.5], 2, words=["a", "b"])
    trace = run(model, 3, 5, decoder="smc", constraints="syntax", population=8, callbacks=no_b)
    texts = trace.steps[1].of(Propose)
    dead = [e for e in trace.steps[0].of(Verdict) if e.status == "rejected"]
    assert dead and len(texts) == 8 and trace.steps[1].of(Forward)[0].rows <= 8 - len(dead)
    assert trace.text().startswith("a")


def test_naive_masking_bends_the_law_and_asap_mends_it():
    only = grammar("00", "11")

    def law(samples: int, dead_end: str) -> dict:
        given = {"constraints": "syntax", "samples": samples, "dead_end": dead_end, "callbacks": only}
        return Exhaustive().distribution(
            lambda chooser: tuple(run(TOY, 2, 0, "asap", chooser, **given).output())
        )

    assert law(1, "go back") == pytest.approx({(0, 0): 0.9, (1, 1): 0.1})
    far = [abs(law(n, "go back")[0, 0] - EXACT[0, 0]) for n in (1, 2, 4)]
    assert far[1] < far[0] / 10 and far[2] < 0.06
    for samples in (1, 2):
        assert law(samples, "start over") == pytest.approx(EXACT, abs=1e-12)


def test_asap_converges_to_the_grammatical_law():
    """5,000 texts after what can be learned is learned: total variation below .03."""
    only = grammar("00", "11")
    asked = ("asap", [0], {"target": TOY}, {"constraints": "syntax"}, 0, Limits(2), Random(3))
    lane = Lane(*asked, callbacks=only)
    programs = Programs(lane, Gate(lane))
    decoder = Asap(programs, 5200, False)
    texts = []
    while decoder.turn():
        if decoder.last is not None and decoder.number > len(texts):
            texts.append(tuple(lane.tree.text(decoder.last)[1:]))
    futures = decoder.futures
    assert futures.of(programs.root) == pytest.approx(0.17)
    seen = Counter(texts[-5000:])
    far = sum(abs(seen[text] / 5000 - p) for text, p in EXACT.items()) / 2
    assert far < 0.03 and set(seen) == set(EXACT)
    lane.close()


@pytest.mark.parametrize("decoder", ["beam", "sampling", "mcts"])
def test_programs_pass_the_tests_that_their_prompt_brings(decoder):
    """Of all programs of two operations, one that gives what the examples say."""
    prompt = "program for\n3 1 2 -> 3 2 1\n5 9 -> 9 5\n0 4 1 -> 4 1 0\nis\n"
    callbacks = Callbacks(
        lambda _, said: pass_rate(prompt, said), lambda _, said, whole: allowed(prompt, said, whole)
    )
    words = ["<end>", "\n", "sort", "reverse", "double", "fly", "add ", "1"]
    model = TableModel(lambda past: [1 / 8] * 8, 8, frozenset({0}), words=words)
    given = {"constraints": "syntax, tests", "decoder": decoder, "population": 16, "rollouts": 200}
    trace = run(model, 5, 3, callbacks=callbacks, **given)
    text = trace.text().removesuffix("<end>")
    assert pass_rate(prompt, text) == 1.0 and allowed(prompt, text, True)
    reasons = {e.reason for s in trace.steps for e in s.of(Verdict) if e.status == "rejected"}
    assert "the constraint syntax gives 0" in reasons


def test_no_answer_of_a_task_is_refused_and_wrong_ones_are():
    for task in ("list_program", "python"):
        for problem in problems(task, 12, 1):
            text = problem.answer
            assert all(allowed(problem.prompt, text[:n], False) for n in range(len(text) + 1)), text
            assert allowed(problem.prompt, text, True)
    lists, python = problems("list_program", 1, 1)[0].prompt, problems("python", 1, 1)[0].prompt
    for wrong in ("sorted", "take", "take 33", "add 1\nfly"):
        assert not allowed(lists, wrong, True)
    assert allowed(lists, "take ", False) and not allowed(lists, "take x", False)
    for wrong in ("    return )", "    retur n x", "return 1"):
        assert not allowed(python, wrong, True)
    assert not allowed(python, "    return [)", False) and allowed(python, "    return [", False)
    assert allowed("Once upon a time", "anything", True) is None


def test_what_cannot_be_is_said(monkeypatch):
    assert constraint_names({"constraints": "syntax, , tests, syntax"}) == ["syntax", "tests"]
    for given, said in (
        ({"constraints": "style"}, "There is no constraint 'style'; choose any of: syntax, no comments"),
        ({"constraints": "keyword"}, "The constraint keyword needs keywords"),
    ):
        with pytest.raises(ValueError, match=said):
            run(TOY, 2, **given)
    with pytest.raises(ValueError, match="Nothing is there that knows a syntax"):
        run(TOY, 2, callbacks=None, constraints="syntax")
