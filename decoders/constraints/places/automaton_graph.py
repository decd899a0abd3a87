"""The smallest automaton that accepts a constraint's texts, as a graph that can be drawn: states, and edges
labelled with characters, chains of which are one edge.
"""

from dataclasses import dataclass, replace

from decoders.constraints.places.grammar_text import Grammar, Rule
from decoders.constraints.places.network import Network
from decoders.constraints.places.syntax import (
    Call,
    Choice,
    Part,
    Ranges,
    Repeat,
    Sequence,
    Unread,
    complement,
    holds,
    ranges,
)

MAX_STATES = 600  # of an automaton before it is made smaller
MAX_EDGES = 48  # that a picture can hold
MAX_PARTS = 20_000  # of the top rule with all rules in their places
MAX_WORK = 1_000_000  # edges that are looked at for the states
SIGNS = {" ": "␣", "\n": "↵", "\t": "⇥"}
WIDE = 0x1000  # a set with more characters is named by those that it lacks


@dataclass(frozen=True)
class Edge:
    """An edge that reads one character after another; `labels`: the set for each of them."""

    source: int
    target: int
    labels: tuple[Ranges, ...]

    @property
    def label(self) -> str:
        """The characters that it reads, separated by spaces."""
        return " ".join(map(shown, self.labels))


@dataclass(frozen=True)
class Where:
    """A place in the graph: in a state, or `along` characters into an edge."""

    state: int | None
    edge: int | None = None
    along: int = 0


class AutomatonGraph:
    """State 0 is the start; `ends`: where a text may end."""

    def __init__(self, grammar: Grammar):
        """Raises Unread if rules call themselves, or the graph is too large to be drawn."""
        network = Network(replace(grammar, rules={grammar.top: inlined(grammar)}))
        self.classes = classes_of(network)
        self.moves, accepting = smallest(*subsets(network, self.classes))
        self.edges, self.where, self.edge_of = compressed(one_edge_each(self.moves, self.classes), accepting)
        self.ends = frozenset(self.where[state].state for state in accepting)
        if len(self.edges) > MAX_EDGES:
            raise Unread(f"The automaton has {len(self.edges)} edges, too many to be drawn.")

    def after(self, state: int, character: str) -> int | None:
        """The state of the whole automaton after one more character; its place in the graph is `where`."""
        code = ord(character)
        number = next((n for n, some in enumerate(self.classes) if holds(some, code)), None)
        return self.moves[state].get(number)


def inlined(grammar: Grammar) -> Rule:
    """The top rule with every called rule in its place. Raises Unread if one calls itself, or if this is too
    much.
    """
    parts = 0

    def within(part: Part, above: tuple[str, ...]) -> Part:
        nonlocal parts
        parts += 1
        if parts > MAX_PARTS:
            raise Unread("The automaton is too large to be drawn.")
        match part:
            case Call():
                if part.rule in above:
                    raise Unread(f"The rule {part.rule} calls itself, so no finite automaton can be drawn.")
                if part.rule not in grammar.rules:
                    raise Unread(f"The rule {part.rule} is not defined here.")
                return within(grammar.rules[part.rule].part, (*above, part.rule))
            case Sequence() | Choice():
                return replace(part, parts=tuple(within(one, above) for one in part.parts))
            case Repeat():
                return replace(part, part=within(part.part, above))
        return part

    top = grammar.rules[grammar.top]
    return Rule(within(top.part, (grammar.top,)), top.span)


def classes_of(network: Network) -> list[Ranges]:
    """Sets of characters that no edge tells apart; those of no edge are left out."""
    sets = list(dict.fromkeys(some for moves in network.moves for some, _, _ in moves))
    cuts = sorted({cut for some in sets for low, high in some for cut in (low, high + 1)})
    members: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for low, behind in zip(cuts, cuts[1:], strict=False):
        inside = tuple(n for n, some in enumerate(sets) if holds(some, low))
        if inside:
            members.setdefault(inside, []).append((low, behind - 1))
    return [ranges(pairs) for pairs in members.values()]


def subsets(network: Network, classes: list[Ranges]) -> tuple[list[dict[int, int]], set[int]]:
    """The automaton whose states are sets of the network's: moves by class, and where a text may end."""

    def reached(states: list[int]) -> frozenset[int]:
        found, waiting = set(), list(states)
        while waiting:
            state = waiting.pop()
            if state not in found:
                found.add(state)
                waiting += network.skips[state]
        return frozenset(found)

    first = reached([network.start[network.top]])
    number, moves, accepting, queue, work = {first: 0}, [{}], set(), [first], 0
    for states in queue:
        at = number[states]
        work += len(classes) * sum(1 + len(network.moves[state]) for state in states)
        if work > MAX_WORK:
            raise Unread("The automaton is too large to be drawn.")
        if any(network.end.get(state) == network.top for state in states):
            accepting.add(at)
        for n, some in enumerate(classes):
            code = some[0][0]
            onward = [to for state in states for on, _, to in network.moves[state] if holds(on, code)]
            if not onward:
                continue
            below = reached(onward)
            if below not in number:
                if len(number) >= MAX_STATES:
                    raise Unread("The automaton is too large to be drawn.")
                number[below] = len(moves)
                moves.append({})
                queue.append(below)
            moves[at][n] = number[below]
    return moves, accepting


def smallest(moves: list[dict[int, int]], accepting: set[int]) -> tuple[list[dict[int, int]], set[int]]:
    """States that allow the same texts become one (Moore 1956)."""
    block = [int(state in accepting) for state in range(len(moves))]
    while True:
        keys = [
            (block[state], tuple(sorted((on, block[to]) for on, to in moves[state].items())))
            for state in range(len(moves))
        ]
        names = {key: n for n, key in enumerate(dict.fromkeys(keys))}  # state 0 stays 0
        finer = [names[key] for key in keys]
        if len(names) == len(set(block)):
            break
        block = finer
    made: list[dict[int, int]] = [{} for _ in names]
    for state, name in enumerate(finer):
        made[name] = {on: finer[to] for on, to in moves[state].items()}
    return made, {finer[state] for state in accepting}


def one_edge_each(moves: list[dict[int, int]], classes: list[Ranges]) -> list[Edge]:
    """One edge for all characters that lead from a state to another."""
    edges = []
    for state, onward in enumerate(moves):
        for target in dict.fromkeys(onward.values()):
            some = [pair for on, to in onward.items() if to == target for pair in classes[on]]
            edges.append(Edge(state, target, (ranges(some),)))
    return edges


def compressed(
    edges: list[Edge], accepting: set[int]
) -> tuple[list[Edge], dict[int, Where], dict[tuple[int, int], int]]:
    """Turns chains into single edges and numbers the states again; also returns where each old state is now,
    and which edge leads from one old state to the next.
    """
    out, into = {}, {}
    for edge in edges:
        out.setdefault(edge.source, []).append(edge)
        into.setdefault(edge.target, []).append(edge)
    inner = {
        state
        for state in out
        if state != 0
        and state not in accepting
        and len(out[state]) == len(into.get(state, [])) == 1
        and out[state][0].target != state
    }
    kept = [0, *(s for s in dict.fromkeys(e.target for e in edges) if s not in inner and s != 0)]
    number = {state: n for n, state in enumerate(kept)}
    where: dict[int, Where] = {state: Where(n) for state, n in number.items()}
    made: list[Edge] = []
    edge_of: dict[tuple[int, int], int] = {}
    for edge in edges:
        if edge.source in inner:
            continue
        labels, target = list(edge.labels), edge.target
        edge_of[edge.source, target] = len(made)
        while target in inner:
            where[target] = Where(None, len(made), len(labels))
            onward = out[target][0]
            labels += onward.labels
            edge_of[target, onward.target] = len(made)
            target = onward.target
        made.append(Edge(number[edge.source], number[target], tuple(labels)))
    return made, where, edge_of


def shown(some: Ranges) -> str:
    """`a`, `[a-z]`, `[^.!?]`, `.` for any character of a line."""
    if len(some) == 1 and some[0][0] == some[0][1]:
        return sign(some[0][0])
    lacks = complement(some)
    if lacks == ranges([(10, 10)]):
        return "."
    inverted = sum(high - low + 1 for low, high in some) > WIDE
    pairs = lacks if inverted else some
    inside = "".join(
        sign(low) if low == high else sign(low) + ("-" if high > low + 1 else "") + sign(high)
        for low, high in pairs
    )
    return f"[{'^' * inverted}{inside}]"


def sign(code: int) -> str:
    """The form in which a character is shown."""
    return SIGNS.get(chr(code), chr(code) if chr(code).isprintable() else f"\\x{code:02x}")
