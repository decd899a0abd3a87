"""Text: what a lane has written, one chip per token, with where each token came from and how probable it was.

A fold over Propose, Verdict, Distribution, Rank, Measure, Commit and Depend(kind "copy" or "match"): what a
step's draft was copied from is marked while that step is shown. Chips are never moved: a rejected token
stands before the token that replaced it, and the tail that is not final yet (the best beam) is hidden and
written again where it changes.
"""

import codecs
import math

from decoders.explain import moments as worded
from decoders.trace.events import Commit, Depend, Distribution, Propose, Verdict
from decoders.trace.moments import Moments
from decoders.trace.scores import Measure, Rank, ScoreName
from visualizers import scene
from visualizers.analysis.distribution_stages import tolerated
from visualizers.scene.layout import Layout
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.text_spans import TextSpans
from visualizers.scene.verdict_marks import STATES
from visualizers.scene.view import Header, view
from visualizers.scene.words import probability
from visualizers.views.any_lane.step_captions import Sentences

SPACES = str.maketrans("␣↵⇥", " \n\t")  # the signs for white space, and what they stand for
ELSEWHERE = ("guess", "canvas")  # sources of nodes whose place in the text is not after their parent
SHOWN_REJECTED = 3  # rejected tokens shown at one position; the draft rounds show all


@view("text", "Text")
class Text:
    """Chips in order: the prompt, what is committed, the live tail."""

    def __init__(self, header: Header):
        self.header, self.nodes = header, Nodes(header)
        self.sentences, self.moments = Sentences(self.nodes), Moments(self.nodes)
        self.spans = TextSpans(header)
        self.forced: set[int] = set()  # tokens that the budget of thinking wrote
        self.source: dict[int, str] = {}
        self.logprob: dict[int, float | None] = {}
        self.entropy: dict[int, float] = {}  # of the target's distribution after a node
        self.verdicts: dict[int, object] = {}
        self.tolerated: set[int] = set()  # accepted, though the target would have written another token
        self.rejected: dict[int, list[int]] = {}  # parent -> rejected children, in the order tried
        self.tail: list[int] = []  # nodes with live chips
        # node -> the first bytes of a character that the next token continues
        self.split: dict[int, bytes] = {}
        self.chips: dict[int, str] = {}  # node -> id of its chip now in the text
        self.marked: list[str] = []  # ids of the chips that the last step copied from
        self.made = 0
        self.best: int | None = None

    def head(self) -> Layout:
        """Title, question and the prompt's chips."""
        nodes, parts = self.nodes, self.spans.of_prompt()
        ops = [
            scene.Chip(
                f"p{i}",
                state="prompt",
                node=i,
                text=nodes.text(i),
                position=nodes.position[i],
                part=parts.get(i),
                **self._plain(i),
            )
            for i in range(len(self.header.prompt))
        ]
        return Layout(question="What is the text, and where does each piece come from?", ops=ops)

    def feed(self, step) -> list[Op]:
        """New chips, chips that are final now, the live tail where it changed, the step in words, moments."""
        commits, ranked, spans, marks = [], None, {}, {}
        self.tolerated |= tolerated(step, self.header.parameters)
        for event in step.events:
            match event:
                case Propose():
                    self.nodes.add(event)
                    self.source[event.node], self.logprob[event.node] = event.source, event.logprob
                case Verdict():
                    self.verdicts[event.node] = event
                    if event.status == "rejected" and self.source.get(event.node) not in ELSEWHERE:
                        self.rejected.setdefault(self.nodes.parent.get(event.node, -1), []).append(event.node)
                case Distribution() if event.view == "target" and event.level is None:
                    self.entropy[event.node] = event.entropy
                case Measure(name=ScoreName.WATERMARK):
                    marks[event.node] = event.level
                case Measure(name=ScoreName.THINKING_BUDGET):
                    self.forced.add(event.node)
                case Rank(rank=1):
                    ranked = event.node
                case Commit():
                    commits += list(zip(event.nodes, event.logprobs, strict=False))
                case Depend() if event.kind == "match":
                    spans |= dict.fromkeys((event.source, event.target), "matched")
                case Depend() if event.kind == "copy":
                    spans[event.source] = "copied"
        ops = [*self._mark(spans), *self._commit(commits)]
        ops += [scene.Change(self.chips[n], span=mark) for n, mark in marks.items() if n in self.chips]
        ops += self._belong([node for node, _ in commits])
        said = scene.Say(self.sentences.feed(step))
        return [*ops, *self._rewrite_tail(ranked), said, *self._moments(step)]

    def _moments(self, step) -> list[Op]:
        """What happens at the step that is worth a stop."""
        made = []
        for found in self.moments.feed(step, self.sentences.made):
            sentence = worded.sentence(found, self.nodes.text, self.nodes.word)
            made.append(scene.Moment(found.kind, sentence, found.node, found.position, found.size))
        return made

    def _mark(self, spans: dict[int, str]) -> list[Op]:
        """Marks the chips of these nodes as "copied" or "matched", and unmarks those of the step before."""
        ops = [scene.Change(chip, span=None) for chip in self.marked]
        chips = {n: f"p{n}" if n < len(self.header.prompt) else self.chips.get(n) for n in spans}
        self.marked = [chip for chip in chips.values() if chip]
        return ops + [scene.Change(chips[n], span=span) for n, span in spans.items() if chips[n]]

    def _belong(self, nodes: list[int]) -> list[Op]:
        """What new tokens belong to; a delimiter or a loop is known only when it is whole."""
        found: dict[int, dict] = {}
        for node in nodes:
            for other, fields in self.spans.feed(node, self.nodes.token.get(node, -1)).items():
                found.setdefault(other, {}).update(fields)
        chips = {n: f"p{n}" if n < len(self.header.prompt) else self.chips.get(n) for n in found}
        return [scene.Change(chip, **found[n]) for n, chip in chips.items() if chip]

    def _commit(self, commits) -> list[Op]:
        ops = []
        for node, logprob in commits:
            if logprob is not None:
                self.logprob[node] = logprob
            replaced = (
                [] if self.tail else self.rejected.pop(self.nodes.parent.get(node, -1), [])[:SHOWN_REJECTED]
            )
            if self.tail and self.tail[0] == node:
                self.tail.pop(0)
                ops.append(scene.Change(self.chips[node], state=self._state(node), **self._numbers(node)))
                continue
            ops += self._hide(self.tail)
            self.tail = []
            ops += [self._chip(n, "rejected") for n in replaced] + [self._chip(node, self._state(node))]
        return ops

    def _rewrite_tail(self, ranked: int | None) -> list[Op]:
        """The best beam's tokens that are not final yet; only the part that differs from before is written
        again.
        """
        if ranked is None and not self.tail:
            return []
        self.best = ranked if ranked is not None else self.best
        tail = [n for n in self.nodes.path(self.best) if n not in self.chips or n in self.tail]
        status = getattr(self.verdicts.get(self.best), "status", None)
        if status == "pruned":
            tail = []
        same = 0
        while same < min(len(tail), len(self.tail)) and tail[same] == self.tail[same]:
            same += 1
        ops = self._hide(self.tail[same:]) + [self._chip(n, "live") for n in tail[same:]]
        self.tail = tail
        return ops

    def _hide(self, nodes: list[int]) -> list[Op]:
        return [scene.Change(self.chips.pop(n), gone=True) for n in nodes]

    def _state(self, node: int) -> str:
        verdict = self.verdicts.get(node)
        if self.source.get(node) == "copied":
            return "prompt"  # given, not decoded
        if node in self.forced:
            return "forced"
        if node in self.tolerated:
            return "tolerated"
        return (
            "chosen"
            if verdict is None or verdict.status in ("finished", "pruned")
            else STATES[verdict.status]
        )

    def _numbers(self, node: int) -> dict:
        numbers = {}
        logprob, entropy = self.logprob.get(node), self.entropy.get(self.nodes.parent.get(node, -1))
        if logprob is not None:
            numbers["logprob"] = round(logprob, 4)
        if entropy is not None:
            numbers["entropy"] = round(entropy, 4)
        return numbers

    def _chip(self, node: int, state: str) -> Op:
        self.made += 1
        self.chips[node] = f"c{self.made}"
        return scene.Chip(
            f"c{self.made}",
            node=node,
            state=state,
            text=self.nodes.text(node),
            **self._plain(node),
            position=self.nodes.position.get(node, 0),
            source=self.source.get(node, "target"),
            hover=self._hover(node, state),
            **self._numbers(node),
        )

    def _plain(self, node: int) -> dict:
        """The token as it reads in the text, unless that is the chip's text with its signs as white space. A
        character whose bytes are split over tokens belongs to the token that completes it.
        """
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        decoder.setstate((self.split.get(self.nodes.parent.get(node, -1), b""), 0))
        plain = decoder.decode(self.header.vocabulary.get(self.nodes.token.get(node), b"?"))
        if left := decoder.getstate()[0]:
            self.split[node] = left
        return {} if plain == self.nodes.text(node).translate(SPACES) else {"plain": plain}

    def _hover(self, node: int, state: str) -> list[str]:
        logprob, verdict = self.logprob.get(node), self.verdicts.get(node)
        p = math.exp(min(0.0, logprob)) if logprob is not None else None
        lines = [f"{self.nodes.text(node)}  p {probability(p)}, {state}"]
        reason = self.nodes.reason(verdict)
        return lines + ([reason] if reason else [])
