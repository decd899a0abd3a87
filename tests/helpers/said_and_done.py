"""Reads a step's sentence and says what in it is unlike the step's events: every number is counted again
here, from the events alone, by other code than that which wrote the sentence.
"""

import math
import re

from decoders.trace.costs import Costs
from decoders.trace.events import Cell, Commit, Distribution, Note, Propose, Step, Verdict
from decoders.trace.scores import Rank

TESTED = ("accepted", "rejected", "never reached")
DONE = ("settled", "committed", "anchor", "fixed", "relaxed", "forced", "filtered", "verified", "lookahead")


class Done:
    """What a lane's events say, up to and in the newest step."""

    def __init__(self, prompt: list[int], vocabulary: dict[int, bytes]):
        self.vocabulary = vocabulary
        self.token = dict(enumerate(prompt))
        self.born: dict[int, Propose] = {}
        self.offers: dict[int, Distribution] = {}
        self.masks: set[int] = set()
        self.costs = Costs()
        self.steps = self.given = 0
        self.before = False  # whether a token was output in an earlier step

    def read(self, step: Step) -> None:
        """Takes the next step."""
        self.before = self.steps > 0 and (self.before or bool(self.committed))
        self.steps, self.step = self.steps + 1, step
        made = self.costs.add(step)
        self.sent = made.nodes if made else ()
        for event in step.of(Propose):
            self.born[event.node], self.token[event.node] = event, event.token
            self.given = self.given or int(event.given)
        for event in step.of(Distribution):
            if event.view == "target" and event.level is None:
                self.offers[event.node] = event
        self.cells = [cell for cell in step.of(Cell) if cell.level is None]
        self.masks |= {cell.position for cell in self.cells if cell.state == "mask"}
        self.masks -= {cell.position for cell in self.cells if cell.state in (*DONE, "trimmed")}
        self.verdicts = {verdict.node: verdict.status for verdict in step.of(Verdict)}
        self.committed = [
            (node, logprob)
            for event in step.of(Commit)
            for node, logprob in zip(event.nodes, event.logprobs, strict=True)
        ]

    def states(self, *states: str) -> int:
        """How many cells of the newest iteration have one of these states."""
        newest = max(cell.iteration for cell in self.cells)
        return sum(cell.iteration == newest and cell.state in states for cell in self.cells)

    def filled(self) -> set[int]:
        """The positions of a canvas that were filled in this step."""
        return {cell.position for cell in self.cells if cell.state in DONE}

    def cut(self) -> set[int]:
        """The positions that were found to stand after the end of the text."""
        return {cell.position for cell in self.cells if cell.state == "trimmed"}

    def tested(self, *statuses: str) -> int:
        """How many of the tokens that the target was sent in this step got one of these verdicts. Which were
        sent is what the costs count; their own tests say whether that is right.
        """
        return sum(self.verdicts[node] in statuses for node in self.sent)

    def text(self, node: int) -> str:
        """A node's token, with the signs that sentences use for white space."""
        raw = self.vocabulary[self.token[node]].decode("utf-8", "replace")
        return raw.replace(" ", "␣").replace("\n", "↵").replace("\t", "⇥")


def unlike(sentence: str, done: Done) -> str | None:
    """The first thing in the sentence that the events do not say, or None."""
    for note in done.step.of(Note):
        if note.text not in sentence:
            return f"the note {note.text!r} is missing"
        sentence = sentence.replace(note.text, "").rstrip()
    for pattern, check in FORMS.items():
        if found := re.fullmatch(pattern, sentence, re.DOTALL):
            wrong = [
                f"{sentence!r}: {was} is said, {should} is true"
                for was, should in check(found, done)
                if was != should
            ]
            return wrong[0] if wrong else None
    return f"{sentence!r} is a sentence that nobody reads"


def number(text: str | None) -> int:
    """A count of a sentence; 0 where it is not mentioned."""
    return int(text.replace(",", "")) if text else 0


def iteration(found: re.Match, done: Done) -> list[tuple]:
    """An iteration: its number, what is final, what changed, and the masks that are left."""
    said = [(number(found["number"]), max(cell.iteration for cell in done.cells))]
    said.append((number(found["done"]), done.states(*DONE)))
    said += [(number(found[name]), done.states(name)) for name in ("changed", "kept")]
    said.append((number(found["guessed"]), done.states("guess")))
    said.append((number(found["masks"]), len(done.masks)))
    drafts = [event.node for event in done.step.of(Propose) if event.source == "canvas"]
    said.append((number(found["drafts"]), len(drafts)))
    said.append((number(found["accepted"]), sum(done.verdicts.get(node) == "accepted" for node in drafts)))
    return said


def round_(found: re.Match, done: Done) -> list[tuple]:
    """A round: what the target was given, what it accepted and rejected, and its own token."""
    said = [
        (number(found["number"]), done.steps - done.given),
        (number(found["tested"]), done.tested(*TESTED)),
    ]
    said.append((number(found["accepted"]), done.tested("accepted")))
    said.append((number(found["others"]) + (found["lost"] is not None), done.tested("rejected")))
    last = done.committed[-1][0] if done.committed else None
    own = done.verdicts.get(last)
    for word, name in (("resampled", "instead"), ("bonus", "bonus")):
        said.append((found[name], done.text(last) if own == word else None))
    if found["lost"] is not None:
        end = done.born[last].parent if own == "resampled" else last
        lost = [
            n
            for n, s in done.verdicts.items()
            if s == "rejected" and (end is None or done.born[n].parent == end)
        ]
        said.append((found["lost"], done.text(lost[0])))
        verdict = next(v for v in reversed(done.step.of(Verdict)) if v.node == lost[0])
        values = dict(re.findall(r"([pqu]) ([\d.]+)", found["numbers"] or ""))
        said.append((set(values), {name for name in "pqu" if getattr(verdict, name) is not None}))
        said += [(close(float(shown), getattr(verdict, name)), True) for name, shown in values.items()]
    return said


def close(shown: float, value: float) -> bool:
    """Whether a number that was written with two digits is this one."""
    return math.isclose(shown, value, rel_tol=0.051, abs_tol=0.0051 if value >= 0.01 else 6e-7)


def ranked(found: re.Match, done: Done) -> list[tuple]:
    """A step of a search: the score of the best, and how many texts are live, pruned and finished."""
    scores = [score for score in done.step.of(Rank) if score.rank is not None]
    best = next(score for score in scores if score.rank == 1)
    over = {node for node, status in done.verdicts.items() if status in ("pruned", "finished")}
    gone = over | {node for node, _ in done.committed}
    live = {(s.node, s.level) for s in scores if s.node not in (gone if s.level is None else over)}
    statuses = list(done.verdicts.values())
    score = float(found["score"].replace("−", "-"))
    return [
        (number(found["number"]), done.steps),
        (math.isclose(score, best.total, abs_tol=0.0051), True),
        (number(found["live"]), len(live)),
        (number(found["pruned"]), statuses.count("pruned")),
        (number(found["finished"]), statuses.count("finished")),
    ]


def tokens(found: re.Match, done: Done) -> list[tuple]:
    """Committed tokens, each with its probability, the best other token and the entropy."""
    said = [(number(found["number"]), done.steps)]
    words = found["tokens"]
    more = re.search(r"; and (\d+) more$", words)
    words = words[: more.start()] if more else words
    shown = done.committed[:4] if more else done.committed
    said.append((number(more[1]) if more else 0, len(done.committed) - len(shown)))
    at = 0
    for node, logprob in shown:
        name = f"“{done.text(node)}”"
        said.append((words[at : at + len(name)], name))
        at += len(name)
        numbers = re.match(r" \((p .*?)\)(?=; “|$)", words[at:], re.DOTALL)
        said.append((numbers is not None, logprob is not None))
        if numbers:
            said += choice(numbers[1], node, logprob, done)
            at += len(numbers[0])
        at += len("; ")
    return said


def choice(numbers: str, node: int, logprob: float, done: Done) -> list[tuple]:
    """The numbers in the brackets behind a token."""
    said = [(close(float(re.match(r"p ([\d.]+)", numbers)[1]), math.exp(min(0.0, logprob))), True)]
    offer = done.offers.get(done.born[node].parent)
    entropy = re.search(r"entropy ([\d.]+) bits$", numbers)
    said.append((entropy is not None, offer is not None))
    if offer and entropy:
        said.append((math.isclose(float(entropy[1]), offer.entropy / math.log(2), abs_tol=0.0051), True))
        other = next((p for token, p in offer.top if token != done.token[node]), None)
        best = re.search(r"(next|top-1:) “.*” ([\d.]+)", numbers, re.DOTALL)
        said.append((best is not None, other is not None))
        if best:
            said.append((close(float(best[2]), math.exp(min(0.0, other))), True))
            said.append((best[1], "next" if other <= logprob else "top-1:"))
    return said


FORMS = {
    r"(?:Iteration (?P<number>\d+)|First guess): "
    r"(?:(?P<accepted>\d+) of (?P<drafts>\d+) drafted canvas(?:es)? accepted,? ?)?"
    r"(?:(?P<done>\d+) positions? (?:settled|filled)(?: \(“.*”(?:, and \d+ more)?\))?,? ?)?"
    r"(?:(?P<changed>\d+) changed,? ?)?(?:(?P<kept>\d+) kept,? ?)?(?:(?P<guessed>\d+) guessed,? ?)?"
    r"(?:(?P<masks>\d+) masks? left)?\.": iteration,
    r"Round (?P<number>\d+): (?P<accepted>\d+) of (?P<tested>\d+) drafted tokens? accepted"
    r"(?:; “(?P<lost>.*?)” rejected(?: \((?P<numbers>[pqu][^)]*)\))?)?"
    r"(?:, (?P<others>\d+) (?:others? )?rejected)?"
    r"(?:[,;] “(?P<instead>.*)” written instead)?(?:; bonus token “(?P<bonus>.*)”)?\.": round_,
    r"Step (?P<number>\d+): (?:“…(?P<ending>.*)” leads with .*?|the best .* is) (?P<score>−?[\d.]+\d)(?:; )?"
    r"(?:(?P<live>\d+) live)?(?:, )?(?:(?P<pruned>\d+) pruned)?(?:, )?"
    r"(?:(?P<finished>\d+) finished)?\.": ranked,
    r"Step (?P<number>\d+): nothing is final yet\.": lambda found, done: [
        (number(found["number"]), done.steps),
        (done.before or bool(done.committed), False),
    ],
    r"Step (?P<number>\d+): no other token is final\.": lambda found, done: [
        (number(found["number"]), done.steps),
        (done.before and not done.committed, True),
    ],
    r"Step (?P<number>\d+): (?P<tokens>“.*)\.": tokens,
}
