"""Self-infilling: where the model is uncertain it writes the end of the text first, then what lies between.

Needs a model that was trained to infill. Zheng et al. (2023), Self-Infilling Code Generation. The tree holds
the tokens, sentinels included, in the order in which they are written; at the end the text is copied below
the prompt in reading order.
"""

import math
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace

import torch

from decoders.lane import Lane
from decoders.logits.distributions import log_softmax
from decoders.parameters import choice, free_text, integer, real, switch
from decoders.prompt_variant import OtherPrompt
from decoders.registry import strategy
from decoders.sampling.next_token import pick
from decoders.sampling.sampling_parameters import SHAPING
from decoders.search.planned import fill_in_middle
from decoders.search.planned.fill_in_middle import MODES, Sentinels, others
from decoders.strategy import Part
from decoders.trace.scores import ScoreName

PREFIX, SUFFIX, MIDDLE, ONWARD = "prefix", "suffix", "middle", "left to right"
BEGINS = "forced: the suffix begins with it"
Written = Generator[None, None, bool]


def badge(parameters: dict) -> str:
    """Nothing is drawn at temperature 0, unless the jumps are."""
    return "sampled" if parameters["temperature"] or parameters["random_interrupt"] else "deterministic"


@dataclass
class Infill:
    """One self-infill: the nodes of each segment without sentinels, and the path of all tokens in the order
    of writing.
    """

    tip: int
    prefix: list[int] = field(default_factory=list)
    suffix: list[int] = field(default_factory=list)
    middle: list[int] = field(default_factory=list)
    path: list[int] = field(default_factory=list)
    jumped: bool = False  # the end was written before the middle
    closed: bool = False  # the model itself ended the middle

    def __len__(self) -> int:
        """Tokens of text."""
        return len(self.prefix) + len(self.suffix) + len(self.middle)


class Writer:
    """Writes the segments of one lane. `form`: its model's sentinels; `begin`: the text with which a suffix
    begins.
    """

    def __init__(self, lane: Lane, form: Sentinels):
        self.lane, self.form, target = lane, form, lane.models["target"]
        start = [form.pre, *lane.tree.tokens[: lane.tree.trunk]]
        self.longest = target.context - len(start) + 1  # tokens that a path may have, sentinels included
        self.begin = fill_in_middle.suffix_prompt(lane.parameters["suffix_prompt"], self.words(start[1:]))
        self.stop = lane.parameters["stop"].replace("\\n", "\n")
        self.logprobs: dict[int, float] = {}  # the target's own, of nodes that were written left to right
        self.forced: set[int] = set()
        lane.scorers[PREFIX] = OtherPrompt(lane, start)

    def words(self, tokens: list[int]) -> str:
        """The text of tokens, without end-of-text tokens."""
        bytes_of, eos = self.lane.models["target"].bytes_of, self.lane.eos
        return b"".join(bytes_of(t) for t in tokens if t not in eos).decode("utf-8", "replace")

    def text(self, *segments: list[int]) -> str:
        """The text of the nodes of some segments."""
        return self.words([self.lane.tree.tokens[node] for segment in segments for node in segment])

    def cut(self, text: str) -> list[int]:
        """The tokens of a text that is to be inserted."""
        target = self.lane.models["target"]
        return (target.cut or target.encode)(text) if text else []

    def ended(self, nodes: list[int]) -> bool:
        """The stop rule: an end-of-text token, or the stop text."""
        last = self.lane.tree.tokens[nodes[-1]] if nodes else None
        return last in self.lane.eos or bool(self.stop) and self.stop in self.text(nodes)

    def has_room(self, infill: Infill) -> bool:
        """Whether one more token may be written."""
        return len(infill) < self.lane.left and len(infill.path) < self.longest

    # ---- tokens

    def row(self, node: int, level: str, forbidden: list[int]) -> torch.Tensor:
        """Logits [1, V] after a node as written, without the forbidden sentinels."""
        logits = without_tokens(self.lane.score([node], role=PREFIX), forbidden)
        self.lane.distribution([node], logits, "processed", level)
        return logits

    def choose(self, node: int, level: str, logits: torch.Tensor) -> int:
        """A new node: the most likely token, or one that is drawn."""
        lane = self.lane
        processed = lane.process(logits, [node])
        token = pick(lane, processed[0], ("sample", level, len(lane.tree.tokens)))
        offered = log_softmax(logits)[0]
        new = lane.propose(node, token, float(offered[token]), level)
        sure = float(offered.max().exp())
        lane.record_measure(
            new, ScoreName.LARGEST_PROBABILITY, sure, level=level, limit=lane.parameters["tau"]
        )
        return new

    def put(self, infill: Infill, tokens: list[int], level: str, why: str) -> list[int]:
        """Forces tokens after the newest one; returns their nodes."""
        nodes = []
        for token in tokens:
            infill.tip = self.lane.propose(infill.tip, token, None, level, fill="fixed")
            self.lane.verdict(infill.tip, "forced", reason=why)
            nodes.append(infill.tip)
        infill.path += nodes
        self.forced.update(nodes)
        return nodes

    # ---- segments

    def prefix(self, infill: Infill) -> Written:
        """Writes from left to right until the model is uncertain. False if the text is complete without a
        jump.
        """
        while self.has_room(infill):
            logits = self.row(infill.tip, PREFIX, others(self.form, *self.lane.eos))
            sure = float(log_softmax(logits).max().exp())
            if self.interrupts(infill, sure):
                tau = self.lane.parameters["tau"]
                why = f"forced: {ScoreName.LARGEST_PROBABILITY} {sure:.2f} is below tau {tau:g}"
                (node,) = self.put(infill, [self.form.suf], SUFFIX, why)
                self.lane.record_measure(node, ScoreName.LARGEST_PROBABILITY, sure, level=SUFFIX, limit=tau)
                return True
            infill.tip = self.choose(infill.tip, PREFIX, logits)
            infill.prefix.append(infill.tip)
            infill.path.append(infill.tip)
            yield
            if self.ended(infill.prefix):
                break
        return False

    def interrupts(self, infill: Infill, sure: float) -> bool:
        """Whether the end of the text is written next."""
        tau, line = self.lane.parameters["tau"], self.text(infill.prefix).split("\n")[-1]
        needed = 2 + len(self.cut(self.begin))  # two sentinels, and a token of the middle's row
        if sure >= tau or (self.begin and self.begin in line) or self.ended(infill.prefix):
            return False
        if len(infill.path) + needed >= self.longest or len(infill) + needed - 2 >= self.lane.left:
            return False
        probability = 1 - sure / (2 * tau) if self.lane.parameters["random_interrupt"] else 1.0
        return probability == 1.0 or bool(
            self.lane.chooser.bernoulli(probability, ("interrupt", infill.tip)).value
        )

    def suffix(self, infill: Infill) -> Written:
        """Writes the end of the text, up to the stop rule or the middle sentinel. False if it never ends."""
        forbidden = others(self.form, self.form.mid, *self.lane.eos)
        while len(infill) + 1 < self.lane.left and len(infill.path) + 1 < self.longest:
            node = self.choose(infill.tip, SUFFIX, self.row(infill.tip, SUFFIX, forbidden))
            token = self.lane.tree.tokens[node]
            if token in self.lane.eos:  # the stop rule: the middle sentinel stands in its place
                self.lane.verdict(node, "pruned", reason="the suffix is complete: the middle comes next")
                self.put(infill, [self.form.mid], MIDDLE, "forced: the suffix is complete")
                return True
            infill.tip = node
            infill.path.append(node)
            if token == self.form.mid:
                self.lane.verdict(node, "finished", reason="the suffix is complete")
                return True
            infill.suffix.append(node)
            yield
            if self.ended(infill.suffix):
                self.put(infill, [self.form.mid], MIDDLE, "forced: the suffix is complete")
                return True
        return False

    def middle(self, infill: Infill) -> Written:
        """Writes what lies between, until the model marks it as complete. False if it never does."""
        end = self.form.eot
        while self.has_room(infill):
            logits = self.row(infill.tip, MIDDLE, others(self.form, end))
            infill.tip = self.choose(infill.tip, MIDDLE, logits)
            infill.path.append(infill.tip)
            if self.lane.tree.tokens[infill.tip] == end:
                self.lane.verdict(infill.tip, "finished", reason="the middle is complete")
                infill.closed = True
                yield
                return True
            infill.middle.append(infill.tip)
            yield
            if self.lane.tree.tokens[infill.tip] in self.lane.eos:
                break
        return False

    def infill(self, context: str | None = None, whole: bool = False) -> Generator[None, None, Infill]:
        """One self-infill; with a `context` after the suffix sentinel the jump is made at once."""
        infill, given = Infill(self.lane.tip), self.begin if context is None else context
        if context is None:
            jumped = yield from self.prefix(infill)
            if not jumped:
                return infill
        else:
            self.put(infill, [self.form.suf], SUFFIX, "forced: the suffix is given")
        infill.jumped = True
        infill.suffix += self.put(infill, self.cut(given), SUFFIX, BEGINS)
        if whole:
            complete = True
            self.put(infill, [self.form.mid], MIDDLE, "forced: the suffix is given whole")
        else:
            complete = yield from self.suffix(infill)
        if complete:
            yield from self.middle(infill)
        if not infill.closed:
            self.lane.note("The infill did not end properly: its suffix is dropped.")
            self.lose(infill.suffix, "the infill did not end properly")
            infill.suffix = []
        return infill

    def onward(self, nodes: list[int]) -> Iterator[None]:
        """Decodes from left to right after a path of nodes, which it extends."""
        lane, forbidden = self.lane, others(self.form, *self.lane.eos)
        while len(nodes) < lane.left and not self.ended(nodes):
            tip = nodes[-1] if nodes else lane.tip
            logits = lane.score([tip])  # [1, V]
            raw = lane.distribution([tip], logits)[0]
            node = self.choose(tip, ONWARD, without_tokens(logits, forbidden))
            self.logprobs[node] = float(raw[lane.tree.tokens[node]])
            nodes.append(node)
            yield

    # ---- texts

    def body(self, infill: Infill) -> list[int]:
        """Prefix and middle in the order of the text. Where another iteration follows, an infill that did not
        end counts only up to its last suffix prompt.
        """
        nodes = infill.prefix + infill.middle
        if infill.jumped and not infill.closed and self.lane.parameters["iterations"]:
            kept = fill_in_middle.before_last(self.text(nodes), self.begin)
            while nodes and len(self.text(nodes)) > len(kept):
                self.lane.verdict(nodes.pop(), "pruned", reason="the infill did not end properly")
        before = nodes[: len(infill.prefix)]
        return [*before, *self.copied(before, nodes[len(before) :])]

    def copied(self, above: list[int], nodes: list[int]) -> list[int]:
        """Copies of nodes below a path; the old ones are merged into them."""
        lane, tip, copies = self.lane, above[-1] if above else self.lane.tip, []
        for node in nodes:
            tip = lane.propose(tip, lane.tree.tokens[node], None, "placed", fill="fixed")
            copies.append(tip)
            if node in self.forced:
                lane.verdict(tip, "forced", reason=BEGINS)
            else:
                lane.verdict(node, "merged", into=tip, reason="it takes its place in the text")
        return copies

    def lose(self, nodes: list[int], why: str) -> None:
        """Records that these nodes are not part of the text."""
        for node in nodes:
            if node not in self.forced:
                self.lane.verdict(node, "pruned", reason=why)

    def finish(self, nodes: list[int], whole: bool) -> Iterator[None]:
        """Ends a text that its suffix completes, lets any other continue, and makes it the output."""
        lane = self.lane
        if whole and lane.eos and len(nodes) < lane.left and not self.ended(nodes):
            end = lane.propose(nodes[-1] if nodes else lane.tip, min(lane.eos), None, "placed", fill="fixed")
            lane.verdict(end, "forced", reason="forced: the text ends with its suffix")
            nodes.append(end)
        yield from self.onward(nodes)
        above = dict(zip(nodes, [lane.tip, *nodes], strict=False))
        unknown = [node for node in nodes if node not in self.logprobs]
        if unknown:
            places = [above[node] for node in unknown]
            rows = lane.distribution(places, lane.score(places, kind="lens"))  # [N, V]
            for node, row in zip(unknown, rows, strict=True):
                self.logprobs[node] = float(row[lane.tree.tokens[node]])
        if len(nodes) < lane.left and lane.tree.tokens[nodes[-1]] not in lane.eos:
            lane.ended_by = "The text reached the stop text."
        lane.commit(nodes, [self.logprobs[node] for node in nodes])


def without_tokens(logits: torch.Tensor, forbidden: list[int]) -> torch.Tensor:
    """The same logits [1, V], in which some tokens cannot be chosen."""
    left = logits.clone()
    left[:, forbidden] = -math.inf
    return left


@strategy(
    name="self_infilling",
    title="Self-infilling",
    family="search",
    papers=("self-infilling-code-generation",),
    parameters=(
        real(
            "tau",
            0.25,
            "When the largest probability is below this, the end of the text is written next.",
            low=0.0,
            high=1.0,
        ),
        integer(
            "iterations",
            1,
            "Number of iterations: each writes the end again from left to right, then the middle.",
            low=0,
            high=8,
        ),
        free_text(
            "suffix_prompt",
            "",
            "The text with which the end begins, \\n for a line break; empty: chosen to fit the prompt; "
            "none: no such text.",
        ),
        choice(
            "context",
            "vanilla",
            "What the next infill keeps: the new end up to its last suffix prompt (vanilla), the second half "
            "of all lines up to that prompt (extended), or that whole half (half).",
            MODES,
        ),
        switch(
            "random_interrupt", False, "Below tau the end is written only with probability 1 − m / (2 tau)."
        ),
        free_text("stop", "", "The text that completes the end, \\n for a line break."),
        replace(SHAPING[0], default=0.0),
    ),
    suits=fill_in_middle.suits,
    view="writing_order",
    badge=badge,
    parts=lambda parameters: [
        Part("trigger", "largest probability", "Below tau the model jumps to the end of the text."),
        Part("expansion", "infilling", "Sentinels tell the model which part of the text it writes."),
    ],
)
def self_infilling(lane: Lane) -> Iterator[None]:
    """Where the model becomes uncertain, it writes the end of the text first and then fills in the middle.

    1. The model reads `PRE prompt` and writes from left to right, all sentinels forbidden. `m` is the largest
       probability of a distribution.
    2. Where `m < tau`, SUF is forced, then the suffix prompt, unless this line already contains it. The
       suffix is decoded freely after it.
    3. When the suffix is complete (end of text, the stop text, or the model's own MID), MID is forced, and
       the middle is written up to the token that marks it as complete (EOT).
    4. The text is prefix + middle + suffix. If an infill never ends, its suffix is dropped, and the text
       continues from left to right.
    5. Each iteration writes the suffix again from left to right after prefix + middle. A degenerate text
       (empty, `pass`, `return`, zlib ratio below .1, without the suffix prompt) falls back to the infilled
       one. The new suffix, cut as `context` says, is the start of the next infill; the last text is the
       answer.

    It needs a model that was trained to infill. Without a jump there is nothing to fill in, and no loop. The
    output's log-probabilities come from one extra forward, which influences no decision.
    """
    writer = Writer(lane, fill_in_middle.sentinels(lane.models["target"]))
    iterations = lane.parameters["iterations"]
    infill = yield from writer.infill()
    text, whole = writer.body(infill), infill.closed
    if infill.closed and not iterations:
        text += writer.copied(text, infill.suffix)
    for number in range(1, iterations + 1 if infill.jumped else 1):
        body, text = text, list(text)
        yield from writer.onward(text)
        fallen = infill.closed and fill_in_middle.is_degenerate(writer.text(text), writer.begin)
        if fallen:
            writer.lose(text[len(body) :], "degenerate: the infilled text is taken")
            lane.note(f"Iteration {number}: the new text is degenerate, the infilled one stays.")
            text = body + writer.copied(body, infill.suffix)
        else:
            writer.lose(infill.suffix, f"iteration {number}: written again from left to right")
        whole = fallen
        if number == iterations:
            break
        suffix = writer.text(text[len(body) :])
        given = fill_in_middle.suffix_context(
            lane.parameters["context"], writer.text(text), suffix, writer.begin
        )
        writer.lose(text, f"iteration {number}: written again with a suffix from this text")
        infill = yield from writer.infill(*given)
        text = writer.body(infill)
    yield from writer.finish(text, whole)
