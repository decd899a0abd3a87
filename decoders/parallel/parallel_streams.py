"""The Parallel Decoder Transformer: several streams write one answer at the same time, over one frozen trunk.

Robbins (2025), Parallel Decoder Transformer: Model-Internal Parallel Decoding with Speculative Invariance via
Note Conditioning, section 3 (the loop: 3.8). The trained modules are heads/scorers/streams.py.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from decoders.heads.scorers.streams import rolled_back, window
from decoders.lane import Lane
from decoders.parallel.stream_trunk import Row, StreamTrunk
from decoders.parameters import integer, real, switch
from decoders.registry import strategy
from decoders.strategy import Part
from decoders.trace.scores import ScoreName

NONE_HERE = (
    "The target {!r} has no modules for parallel streams; choose llama-tiny, for which "
    "`python -m explorer train llama-tiny-streams` makes them."
)
FORCED = "Stream {} was rolled back for {} tokens, the horizon: its block is committed at readiness {:.2f}."
BEYOND = "It follows the end of the merged text."


@dataclass(eq=False)
class Stream:
    """A stream: the section that it writes, with its committed and its provisional nodes."""

    row: Row
    nodes: list[int] = field(default_factory=list)  # nodes of committed blocks
    block: list[int] = field(default_factory=list)  # nodes of the current block
    logprobs: dict[int, float] = field(default_factory=dict)
    state: Any = None  # [d], after the block's last token was chosen
    sees: list[int] = field(default_factory=list)  # indices of the notes that are visible in this round
    looked: list[float] = field(default_factory=list)  # attention weight of the last token on each of them
    thrown: int = 0  # tokens rolled back since the last commit
    tries: int = 0
    ended: bool = False

    @property
    def name(self) -> str:
        return f"stream {self.row.section + 1}"


class Bus:
    """The Dynamic Notes Bus: notes in the order of their rounds. `sources`: the node after which each was
    written.
    """

    def __init__(self, snapshot: torch.Tensor, tip: int):
        self.notes, self.written, self.sources = [snapshot], [(0, -1)], [tip]

    def post(self, note: torch.Tensor, round_: int, section: int, node: int) -> None:
        """Adds a committed block's note, visible from round `round_` + delay on."""
        self.notes.append(note)
        self.written.append((round_, section))
        self.sources.append(node)

    def seen(self, notes: list[int]) -> torch.Tensor:
        """These notes [N, n]."""
        return torch.stack([self.notes[at] for at in notes])


class Streams:
    """The streams of one lane, wave after wave."""

    def __init__(self, lane: Lane):
        self.lane, self.parameters = lane, lane.parameters
        self.modules = lane.models["target"].heads["streams"]
        self.trunk = StreamTrunk(lane.models["target"].model, self.modules)
        self.round = self.unread = self.next_section = 0
        self.bus: Bus | None = None
        self.plan: torch.Tensor | None = None

    def read_text(self, nodes: list[int]) -> torch.Tensor:
        """Reads committed text with the frozen trunk; returns logits [N, V] after each node."""
        tokens = [self.lane.tree.tokens[node] for node in nodes]
        kind = "verify" if self.trunk.length else "prefill"
        return self.lane.run_forward(lambda _: self.trunk.read_text(tokens), kind, scorer=self.trunk)

    def make_plan(self) -> None:
        """Step 1: the planner reads the prompt's states, and its snapshot 0 goes onto the bus."""
        lane, modules = self.lane, self.modules
        logits = modules.plan(torch.stack(self.trunk.states).mean(0))  # [S, V_p]
        self.plan = logits.argmax(-1)
        for slot, (item, row) in enumerate(zip(self.plan.tolist(), logits.softmax(-1), strict=True), 1):
            lane.record_measure(
                lane.tip,
                ScoreName.PLAN_ITEM,
                float(item),
                level=f"slot {slot}",
                number=slot,
                p=float(row[item]),
            )
        for layer, notes, adapters in modules.gates():
            notes, adapters = (0.0, 0.0) if self.parameters["closed"] else (notes, adapters)
            lane.record_measure(
                lane.tip,
                ScoreName.GATE,
                notes,
                level=f"layer {layer + 1}",
                number=layer + 1,
                adapters=adapters,
            )
        self.bus, self.round = Bus(modules.snapshot(self.plan), lane.tip), 0

    def wave(self) -> list[Stream]:
        """The streams of the next sections; a new plan before the first one."""
        if not self.next_section:
            self.make_plan()
        first, lane = self.next_section, self.lane
        behind = min(first + self.parameters["streams"], self.modules.sections)
        self.next_section = behind % self.modules.sections
        rows = self.trunk.part(list(range(first, behind)), lane.tree.tokens[lane.tip])
        return [Stream(row) for row in rows]

    # ---- a round

    def emit(self, streams: list[Stream]) -> None:
        """Each stream writes up to tau provisional tokens, one per stream in each forward."""
        delay, budget = self.parameters["delay"], self.parameters["budget"]
        for stream in streams:
            stream.block, stream.tries = [], stream.tries + 1
            stream.sees = window(self.bus.written, self.round, delay, budget)
        for _ in range(self.parameters["block"]):
            writing = [one for one in streams if not self.is_over(one)]
            if not writing:
                break
            rows, notes = [one.row for one in writing], [self.bus.seen(one.sees) for one in writing]
            closed, states = self.parameters["closed"], []

            def forward(trunk, rows=rows, notes=notes, closed=closed, states=states) -> torch.Tensor:
                logits, *rest = trunk.advance(rows, notes, closed)
                states += rest
                return logits

            logits = self.lane.run_forward(forward, "decode", scorer=self.trunk)  # [R, V]
            for at, stream in enumerate(writing):
                stream.state, stream.looked = states[0][at], states[1][at]
                self.write(stream, logits[at])

    def write(self, stream: Stream, logits: torch.Tensor) -> None:
        """Writes one provisional token of a stream, from its logits [V]."""
        lane, temperature = self.lane, self.parameters["temperature"]
        before = (stream.nodes + stream.block or [lane.tip])[-1]
        logprobs = lane.distribution([before], logits[None], "draft", stream.name)[0]
        if temperature:
            tag = ("stream", self.trunk.length, stream.row.section, stream.tries, len(stream.block))
            token = lane.chooser.categorical((logits.double() / temperature).softmax(-1), tag).value
        else:
            token = int(logits.argmax())
        node = lane.propose(before, token, float(logprobs[token]), source="stream")
        stream.block.append(node)
        stream.logprobs[node], stream.row.pending = float(logprobs[token]), token

    def is_over(self, stream: Stream) -> bool:
        """Whether a section has ended: by a line break, an end-of-text token, or a limit."""
        nodes = stream.nodes + stream.block
        if not nodes:
            return False
        full = len(nodes) >= min(self.lane.left, self.parameters["section_tokens"])
        token = self.lane.tree.tokens[nodes[-1]]
        return full or token in self.lane.eos or b"\n" in self.lane.models["target"].bytes_of(token)

    def judge(self, streams: list[Stream]) -> None:
        """Computes notes, coverage and readiness at the ends of blocks; streams that are not ready are rolled
        back, the others commit.
        """
        lane, modules = self.lane, self.modules
        states = torch.stack([stream.state for stream in streams])  # [R, d]
        notes, coverage = modules.written(states), modules.covered(states, self.plan)
        seen = torch.stack([self.bus.seen(stream.sees).mean(0) for stream in streams])
        readiness = modules.ready(states, seen, coverage, notes).sigmoid().tolist()
        again = set(rolled_back(readiness, self.parameters["gamma"]))
        for at, stream in enumerate(streams):
            owned = float(coverage[at, stream.row.section].sigmoid())
            back = at in again and stream.thrown + len(stream.block) <= self.parameters["horizon"]
            counts = {"round": self.round, "coverage": owned, "notes": len(stream.sees)}
            if not back:
                counts["note"] = len(self.bus.notes)  # the number of the note that it sends
            lane.record_measure(
                stream.block[-1], ScoreName.READINESS, readiness[at], level=stream.name, **counts
            )
            for note, weight in zip(stream.sees, stream.looked, strict=False):
                lane.depend(self.bus.sources[note], stream.block[-1], weight, "note")
            if back:
                self.roll_back(stream, readiness[at])
                continue
            if at in again:
                lane.note(FORCED.format(stream.row.section + 1, stream.thrown, readiness[at]))
            self.bus.post(notes[at], self.round, stream.row.section, stream.block[-1])
            self.record(stream, "accepted")
            stream.nodes, stream.thrown = stream.nodes + stream.block, 0
            stream.ended = self.is_over(stream)

    def roll_back(self, stream: Stream, readiness: float) -> None:
        """Drops the block with its keys and values; the stream writes it again in the next round."""
        self.record(stream, "rejected")
        for node in stream.block:
            self.lane.verdict(node, "rejected", reason=f"Rolled back at readiness {readiness:.2f}.")
        stream.row.cut(len(stream.nodes))
        stream.row.pending = self.lane.tree.tokens[(stream.nodes or [self.lane.tip])[-1]]
        stream.thrown += len(stream.block)

    def record(self, stream: Stream, state: str) -> None:
        """Records what became of the block's tokens, at their places in the stream."""
        tree = self.lane.tree
        for node in stream.block:
            p = min(1.0, torch.tensor(stream.logprobs[node]).exp().item())
            self.lane.cell(tree.depths[node], self.round, tree.tokens[node], state, p, stream.name)

    # ---- the end of a wave

    def merge(self, streams: list[Stream]) -> None:
        """Step 6: the sections, in the order of the plan, become the text. The trunk reads them once, for the
        next wave and for their log-probabilities.
        """
        lane, nodes, merged = self.lane, [n for stream in streams for n in stream.nodes], []
        parent, logprobs = lane.tip, {n: p for stream in streams for n, p in stream.logprobs.items()}
        for node in nodes:
            if merged and (len(merged) == lane.left or lane.ends(parent)):
                lane.verdict(node, "never reached", reason=BEYOND)
                continue
            parent = lane.propose(parent, lane.tree.tokens[node], logprobs[node], source="merged")
            lane.verdict(node, "merged", into=parent)
            merged.append(parent)
        logits = torch.cat([self.last, self.read_text(merged)])  # [1 + N, V]
        self.last = logits[-1:]
        offered = lane.distribution([lane.tip, *merged[:-1]], logits[:-1])
        tokens = [lane.tree.tokens[node] for node in merged]
        lane.commit(merged, offered[range(len(tokens)), tokens].tolist())

    def run(self) -> Iterator[None]:
        """Runs all waves to the end of the text."""
        lane = self.lane
        self.last = self.read_text(lane.tree.path(lane.tip))[-1:]  # [1, V]
        while lane.more:
            streams = self.wave()
            while active := [stream for stream in streams if not stream.ended]:
                self.round += 1
                self.emit(active)
                self.judge(active)
                if all(stream.ended for stream in streams):
                    self.merge(streams)
                yield


def suits(parameters: dict, target: Any) -> str | None:
    """A message if the target has no modules, else None."""
    return NONE_HERE.format(target.name) if "streams" not in target.heads else None


def badge(parameters: dict) -> str:
    """With closed gates and one stream, the trunk decodes alone, section by section."""
    alone = parameters["closed"] and parameters["streams"] == 1
    exact = alone and not parameters["temperature"]
    return "lossless: equal to greedy" if exact else "relaxed"


@strategy(
    name="pdt",
    title="Parallel decoder transformer",
    family="parallel",
    papers=("parallel-decoder-transformer",),
    suits=suits,
    parameters=(
        integer("streams", 5, "Sections that are written at the same time (K).", low=1, high=8),
        integer("block", 4, "Tokens of a provisional block (tau).", low=1, high=16),
        integer("delay", 1, "Rounds after which a note is seen by the streams (Delta).", low=1, high=8),
        real(
            "gamma",
            0.8,
            "A stream whose readiness is at most this writes its block again; 0: never, 1: always. The "
            "authors' small version uses 0.3.",
            low=0.0,
            high=1.0,
        ),
        integer(
            "horizon",
            32,
            "Tokens of a stream that may be rolled back in a row; then its block is committed (H).",
            low=0,
            high=256,
        ),
        integer(
            "budget", 32, "Maximum number of notes that a stream sees, the latest ones (B).", low=1, high=64
        ),
        integer("section_tokens", 24, "Maximum length of a section in tokens.", low=1, high=128),
        switch("closed", False, "Set all gates to 0: in each stream the frozen trunk writes alone."),
        real(
            "temperature",
            0.0,
            "Temperature of the streams' tokens; 0 takes the most likely.",
            low=0.0,
            high=2.0,
        ),
    ),
    view="batch",
    parts=lambda parameters: [
        Part("region", f"{parameters['streams']} streams", "Each writes a different section of the answer."),
        Part("drafter", f"blocks of {parameters['block']}", "Provisional until all streams have judged."),
        Part("policy", "agreement", "A stream that lacks what others write rolls its block back."),
        Part(
            "cache",
            "keys and values per stream",
            "Each stream's own follow those of the prompt, which all share.",
        ),
    ],
    badge=badge,
)
def pdt(lane: Lane) -> Iterator[None]:
    """Several streams write the sections of one answer at the same time and exchange notes about it.

    The trunk is frozen llama-tiny; only small modules beside it were trained.

    1. The trunk reads the prompt. A planner reads the mean of its states and puts an item into each of S
       slots, `z_i = argmax`. Snapshot 0, `Norm(mean W E[z_i])`, is the first note on the bus.
    2. In round v stream k sees the latest B notes among the snapshot and those of rounds `u <= v - Delta`.
    3. It writes tau provisional tokens with keys and values of its own. In the top two layers attention over
       those notes adds `lambda C W_O` after self-attention, and an adapter of the stream adds to the layer's
       output. In training the gates lambda started nearly closed.
    4. From the state in which the block's last token was chosen, small heads compute a note, the coverage of
       the plan's items, and the readiness r.
    5. If `min r > gamma`, all blocks are committed. Else streams with `r <= gamma` are rolled back: they drop
       the block's keys and values and write it again in the next round with the notes visible then; at most H
       tokens in a row.
    6. When all sections have ended with a line break, they form the text, in the order of the plan.

    The streams were trained on one toy task: a person's record as YAML, one field per stream, in the order of
    the sentence. The first stream makes up a colour, and all others end with this colour, which they can know
    only from the first stream's notes. Readiness was trained to predict whether a block would be more likely
    if the streams before it had finished; the paper names no label of this kind. Notes were trained only with
    the next-token loss, without the paper's losses against a teacher's notes. All modules were trained
    together instead of in stages. Sampled colours show the effect of the bus: set temperature to 1, and then
    gamma to 0 or closed to true.

    Probabilities of the text are those of the frozen trunk, which reads it once at the end. The authors
    report no speed. With closed gates each stream is plain decoding after the same prompt.
    """
    yield from Streams(lane).run()
