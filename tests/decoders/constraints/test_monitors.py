"""Monitors: the names that may follow a dot, the end of a name, and the number of arguments of a call."""

import pytest

from decoders.constraints.kinds import constraint_of
from decoders.constraints.matchers import Vocabulary
from decoders.constraints.monitors import BREAKS, ArgumentMonitor, MemberMonitor, Watch, monitored
from decoders.constraints.object_language import Analysis, chain_before
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.testing import random_table
from decoders.trace.events import Depend
from tests.helpers import tiny_models

WORDS = [
    "n", "na", "nick", "name", "n.", "name)", "names", "nam(", ".", "(", "ame", "x.foo", "nick ", "x", "p",
    ")", "nickname", "n.bad", ",", "name.bad", "2", "p.nick", "p.bad",
]  # fmt: skip
VOCABULARY = Vocabulary([word.encode() for word in WORDS], [], [], None)
R = frozenset({"name", "nickname", "n"})
EVERY, LAST = "every character", "last character"


def of_p(text: str) -> frozenset[str]:
    """p has three members, and nothing else has any."""
    return R if text.endswith("p.") else frozenset()


def spelt(allowed) -> set[str]:
    return {word for word, kept in zip(WORDS, allowed.tolist(), strict=True) if kept}


def after(monitor, *tokens: str):
    state = monitor.start()
    for token in tokens:
        state = monitor.advance(state, WORDS.index(token))
        assert state is not None
    return state


@pytest.mark.parametrize("mode", [EVERY, LAST])
def test_the_worked_example(mode):
    monitor = MemberMonitor(VOCABULARY, of_p, b"p.", mode)
    allowed = spelt(monitor.allowed(monitor.start()))
    assert {"n", "na", "nick", "name", "n.", "name)"} <= allowed
    assert not {"names", "nam(", ".", "(", "x", "nick "} & allowed
    state = after(monitor, "n")
    assert state.rest == {b"ame", b"ickname", b""}
    assert {"(", ".", ")", ",", "ame"} == spelt(monitor.allowed(state))
    assert monitor.may_end(state) and not monitor.may_end(monitor.start())
    assert after(monitor, "n", "(").rest is None and after(monitor, "name").rest == {b""}
    assert spelt(monitor.allowed(after(monitor, "name"))) == {"(", ".", ")", ","}


@pytest.mark.parametrize("mode", [EVERY, LAST])
def test_a_mask_is_what_may_be_advanced(mode):
    monitor = MemberMonitor(VOCABULARY, of_p, b"p.", mode)
    for tokens in ((), ("n",), ("na",), ("n", "("), ("n", "(", "p"), ("n.",), ("nick",)):
        state = after(monitor, *tokens)
        assert spelt(monitor.allowed(state)) == {
            word for token, word in enumerate(WORDS) if monitor.advance(state, token) is not None
        }


def test_the_hole_of_the_published_form_and_its_repair():
    """A name after the break, and a dot inside a token, are seen character by character alone."""
    chained = MemberMonitor(
        VOCABULARY, lambda text: R if text in ("p.", "p.n.", "p.name.") else frozenset(), b"p."
    )
    published = MemberMonitor(VOCABULARY, chained.members, b"p.", LAST)
    assert {"n.bad", "name.bad"} <= spelt(published.allowed(published.start()))
    assert not {"n.bad", "name.bad"} & spelt(chained.allowed(chained.start()))
    asleep, checked = (MemberMonitor(VOCABULARY, of_p, b"x", mode) for mode in (LAST, EVERY))
    assert spelt(asleep.allowed(asleep.start())) == set(WORDS)
    assert spelt(checked.allowed(checked.start())) == set(WORDS) - {"p.bad"}
    assert after(asleep, "p.nick").rest is None and after(checked, "p.nick").rest == {b"name"}


def test_a_prompt_that_stops_inside_a_name():
    """Read on from its dot; the published form looks at the last character only."""
    assert MemberMonitor(VOCABULARY, of_p, b"x = p.na").start().rest == {b"me"}
    assert MemberMonitor(VOCABULARY, of_p, b"x = p.na", LAST).start().rest is None
    assert MemberMonitor(VOCABULARY, of_p, b"x = q.na").start() == Watch(b"x = q.na", None)


def test_the_characters_that_end_a_name():
    assert ord("(") in BREAKS and ord(" ") in BREAKS and ord(".") in BREAKS
    assert not {ord(c) for c in "azAZ09_"} & BREAKS


# --- the analysis ------------------------------------------------------------------------------------------

CODE = """
class Place:
    city: str
    street: str = ""

class Color(Enum):
    RED = 1
    BLUE = 2

class Person:
    name: str
    home: Place
    def greet(self, other, loud=False) -> Place:
        hidden = 1
        return self.home
    def twin(self) -> Person: ...

def find(name, limit: int = 3) -> Person:
    return 0

def every(*names): ...

p = Person("Ann", Place("Rome"))
q: Person
"""


def test_members_and_classes_follow_from_what_is_written():
    found = Analysis(CODE)
    assert found.members("p") == found.members("q") == {"name", "home", "greet", "twin"}
    assert found.members("p.home") == found.members("p.greet(q)") == {"city", "street"}
    assert found.members("find('x')") == found.members("p.twin()") == found.members("q")
    assert found.members("Color") == {"RED", "BLUE"} and found.members("Color.RED") == {"RED", "BLUE"}
    assert found.members("p.twin") == found.members("nobody") == found.members("p.name") == frozenset()
    assert Analysis(CODE + "p = 3\n").members("p") == frozenset()
    assert Analysis("class A:\n    def f(self):\n        x = self").members("self") == {"f"}


FILE = """
class File:
    # protocol: start -> open; open -> read, close; read -> read, close
    name: str
    def open(self): ...
    def read(self): ...
    def close(self): ...

f = File("a")
"""


@pytest.mark.parametrize(
    "written,line,allowed",
    [
        ("", "", {"name", "open"}),
        ("f.open()\n", "", {"name", "read", "close"}),
        ("f.open()\n", "f.read(); ", {"name", "read", "close"}),
        ("f.open()\nx = f.read()  # f.close()\n", "", {"name", "read", "close"}),
        ("f.open()\ng.f.close()\nf.close()\n", "", {"name"}),
        ("f.open()\nf.close()\nf = File(2)\n", "", {"name", "open"}),
        ("f.open()\ndef use(f: File):\n", "", {"name", "open"}),
    ],
)
def test_a_protocol_says_which_call_comes_next(written, line, allowed):
    assert Analysis(FILE + written).members("f", line) == allowed


def test_where_nothing_may_follow_there_is_no_dot():
    """Only a variable has a state that is known; as published, the monitor sleeps where it has no names."""
    closed = Analysis(FILE.replace("    name: str\n", "") + "f.open()\nf.close()\n")
    assert closed.members("f") is None and closed.members("nobody") == frozenset()
    assert closed.members("File('b')") == {"open"}
    members = monitored(FILE.replace("    name: str\n", ""))[0]
    text = b"f.open()\nf.close()\nf"
    assert not spelt(MemberMonitor(VOCABULARY, members, text).allowed(Watch(text, None))) & {".", "n."[1:]}
    published = MemberMonitor(VOCABULARY, members, text, LAST)
    assert "." in spelt(published.allowed(published.start()))
    assert published.advance(published.start(), WORDS.index(".")) == Watch(text + b".", None)


def test_a_name_is_recorded_with_the_token_that_declares_it():
    """The prompt declares two names; of those of another file no token is on screen."""
    words = ["class A:", "\n    ", "pea", ": int", "\n    ", "pod", ": int\n", "a = A(1, 2)\n", "a."]
    words += [".", "p", "ea", "od", " "]
    script = [*range(9), 10, 11, 13, 8, 10, 12, 13, 13]

    def table(text: tuple[int, ...]) -> list[float]:
        return [float(token == script[len(text)]) for token in range(len(words))]

    target = TableModel(table, len(words), words=words)
    lane = Lane("monitor", script[:9], {"target": target}, {}, 0, Limits(len(script) - 9))
    trace = lane.run()
    links = [(e.source, e.target) for s in trace.steps for e in s.events if isinstance(e, Depend)]
    assert trace.text() == "pea a.pod  " and links == [(2, 9), (5, 13)]
    elsewhere = "".join(words[:7])
    lane = Lane("monitor", [8], {"target": shifted(target, 8)}, {"project": elsewhere}, 0, Limits(3))
    assert not [e for s in lane.run().steps for e in s.events if isinstance(e, Depend)]


def shifted(model: TableModel, by: int) -> TableModel:
    """The same model after a text of this many tokens."""
    return TableModel(lambda text: model.table((0,) * by + text), model.vocabulary, words=model.words)


def test_signatures():
    found = Analysis(CODE)
    counts = {
        name: found.call(name) for name in ("find", "Place", "Person", "p.greet", "every", "Color", "x")
    }
    known = {name: (made.min_arguments, made.max_arguments) for name, made in counts.items() if made}
    assert known.pop("every")[1] > 99 and counts["Color"] is None and counts["x"] is None
    assert known == {"find": (1, 2), "Place": (1, 2), "Person": (2, 2), "p.greet": (1, 2)}


@pytest.mark.parametrize(
    "text,chain",
    [
        ("x = p", "p"),
        ("f(a, p.home", "p.home"),
        ("p.greet(q)", "p.greet(q)"),
        ("# p", ""),
        ("3", ""),
        ("", ""),
    ],
)
def test_the_expression_before_a_dot(text, chain):
    assert chain_before(text) == chain


def calls(text: str) -> ArgumentMonitor:
    return ArgumentMonitor(VOCABULARY, monitored(CODE)[1], text.encode())


@pytest.mark.parametrize(
    "text,allowed,forbidden",
    [
        ("find(", "x 2 p (", ", )"),
        ("find(x", ", ) p", ""),
        ("find(x, ", "x p", ", "),
        ("find(x, 2", ")", ","),
        ("p.twin(", ")", "x , ( 2"),
        ("Person(x", ",", ")"),
        ("Person(Place(x), 2", ")", ","),
        ("Place('a, b', x", ")", ","),
        ("find((x, p, 2", ", )", ""),
        ("unknown(x, 2, p", ", )", ""),
        ("def find(x, 2, p", ", )", ""),
        ("every(x, 2, p", ", )", ""),
    ],
)
def test_a_call_has_as_many_arguments_as_its_function_takes(text, allowed, forbidden):
    monitor = calls(text)
    state = monitor.start()
    found = spelt(monitor.allowed(state))
    assert set(allowed.split()) <= found and not set(forbidden.split()) & found
    assert found == {w for t, w in enumerate(WORDS) if monitor.advance(state, t) is not None}


def test_a_text_may_not_end_inside_a_known_call():
    assert not calls("find(x").may_end(calls("find(x").start())
    assert calls("other(x").may_end(calls("other(x").start())


# --- lanes -------------------------------------------------------------------------------------------------


def run(strategy, target, prompt, new_tokens=12, seed=0, **parameters):
    lane = Lane(strategy, target.encode(prompt), {"target": target}, parameters, seed, Limits(new_tokens))
    return lane.run()


@pytest.mark.parametrize("seed", range(3))
def test_without_a_dot_the_text_is_that_without_a_monitor(seed):
    """Until the first dot or bracket, at least; here there is none that the analysis knows."""
    target = tiny_models.make()
    plain = run("sample", target, "the cat", seed=seed, temperature=0.9)
    for mode in (EVERY, LAST):
        found = run("monitor", target, "the cat", seed=seed, temperature=0.9, monitor=mode, project=CODE)
        assert found.output() == plain.output()


LETTERS = ["p", ".", "n", "a", "m", "e", "h", "o", "\n", "(", ")", "x"]


@pytest.mark.parametrize("strategy,given", [("monitor", {}), ("sample", {}), ("awrs", {}), ("beam", {})])
def test_every_name_after_a_dot_is_a_member(strategy, given):
    if strategy != "monitor":
        given = given | {"constraint": "members", "constraint_text": CODE}
    else:
        given = given | {"project": CODE, "temperature": 1.0}
    for seed in range(10):
        target = TableModel(random_table(seed, 12), 12, words=LETTERS)
        text = "p." + run(strategy, target, "p.", 24, seed, **given).text()
        known = {"name", "home", "greet", "twin"}
        name = text.removeprefix("p.").split("\n")[0].split(".")[0].split("(")[0].split(")")[0]
        whole = len(text) > len("p." + name)
        assert name in known if whole else any(word.startswith(name) for word in known)


def test_the_kind_reads_the_prompt_too():
    target = TableModel(random_table(1, 12), 12, words=LETTERS)
    given = {"constraint": "members", "constraint_text": "class A:\n    pea: int\n"}
    constraint = constraint_of(given, target, target.eos, b"a = A(1)\na.")
    allowed = constraint.allowed(constraint.start())
    assert [LETTERS[t] for t in allowed.nonzero()[:, 0].tolist()] == ["p"]
