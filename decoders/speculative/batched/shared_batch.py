"""A batch: several texts that one lane decodes together, and the draft-verify loop over them.

The lane's prompt is the first text; the others are in the same token tree, each with its own root, so the
tree mask keeps them apart and one forward serves all. The first text is the lane's own and is recorded like
any lane's. For every text, `Cell` events record round by round what became of each guess.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch

from decoders.chooser import SeparateStreams
from decoders.lane import Lane
from decoders.logits.distributions import log_softmax
from decoders.own_code import passes_on
from decoders.parameters import free_text
from decoders.speculative.draft_verify_loop import distributions, judged
from decoders.speculative.drafters.draft_model import DRAFT_MODEL
from decoders.speculative.drafters.fixed_trees import likeliest, sampled
from decoders.speculative.interfaces import FIXED, SAMPLED, Draft, Drafter, Verification, Verifier
from decoders.stopping import stopped

MAX_TEXTS = 15  # texts beside the lane's own
OTHERS = "Once upon a time\nThe old man looked at the sky and said,\nBen has a red ball. Mia has a"
PROMPTS = free_text("prompts", OTHERS, "The other texts of the batch: one prompt per line.")


def lines(parameters: dict) -> list[str]:
    """The prompts of the other texts."""
    return [line for line in parameters["prompts"].splitlines() if line.strip()]


def too_many(parameters: dict) -> str | None:
    """The message to show if there are more texts than a batch holds."""
    count = len(lines(parameters))
    return (
        f"prompts has {count} lines, but a batch has room for {MAX_TEXTS}; leave some out."
        if count > MAX_TEXTS
        else None
    )


def too_long(parameters: dict, target: Any) -> str | None:
    """The message to show if one of the texts does not fit into the target's context."""
    for number, line in enumerate(lines(parameters), 2):
        if (count := len(target.encode(line))) >= target.context:
            return (
                f"Text {number} of the batch has {count:,} tokens, but the model reads at most "
                f"{target.context:,}, and one more must fit; shorten it."
            )
    return None


class Text:
    """One text of a batch, in place of the lane that drafters, verifiers and the loop expect.

    The first text's events are the lane's own; the others are recorded in its cells alone.
    """

    def __init__(self, lane: Lane, number: int, tip: int, left: int):
        """`tip`: its newest committed node; `left`: tokens that it may still write."""
        self.lane, self.number, self.leads, self.models = lane, number, number == 1, lane.models
        self.tree, self.eos, self.process = lane.tree, lane.eos, lane.process
        self.parameters = {"temperature": 0.0} | lane.parameters
        self.chooser = lane.chooser if self.leads else SeparateStreams(lane.chooser, after=("text", number))
        self.tip, self.left, self.ended = tip, left, False
        self.started = False  # whether a round has read it
        self.born: list[int] = []  # nodes of the running round ...
        self.fate: dict[int, tuple[str, float | None]] = {}  # ... and their statuses and probabilities

    @property
    def more(self) -> bool:
        """True while the text is unfinished."""
        return self.left > 0 and not self.ended

    @property
    def length(self) -> int:
        """Its tokens, the prompt's included."""
        return self.tree.depths[self.tip] + 1

    @passes_on
    def distribution(
        self, nodes: list[int], logits: torch.Tensor, view: str = "target", level: str | None = None
    ) -> torch.Tensor:
        """As `Lane.distribution`."""
        return self.lane.distribution(nodes, logits, view, level) if self.leads else log_softmax(logits)

    @passes_on
    def propose(self, parent: int, token: int, logprob: float | None, **how: Any) -> int:
        """As `Lane.propose`."""
        if self.leads:
            node = self.lane.propose(parent, token, logprob, **how)
        else:
            node = self.tree.add(parent, token)
        self.born.append(node)
        return node

    @passes_on
    def verdict(self, node: int, status: str, **why: Any) -> None:
        """As `Lane.verdict`."""
        own = status in ("resampled", "bonus")
        self.fate[node] = status, why.get("p" if own else "q")
        if self.leads:
            self.lane.verdict(node, status, **why)

    @passes_on
    def note(self, text: str) -> None:
        """As `Lane.note`."""
        self.lane.note(text if self.leads else f"Text {self.number}: {text}")

    def ends(self, node: int) -> bool:
        """As `Lane.ends`; a constraint is of the first text alone."""
        if self.leads:
            return self.lane.ends(node)
        bytes_of, stops = self.models["target"].bytes_of, self.lane.stop_strings
        return self.tree.tokens[node] in self.eos or stopped(self.tree, bytes_of, stops, node)

    @passes_on
    def commit(self, nodes: list[int], logprobs: list[float | None]) -> None:
        """As `Lane.commit`: cut at the text's end and at the limit."""
        ends = [i for i, n in enumerate(nodes, 1) if self.ends(n) or i == self.left]
        nodes = nodes[: ends[0]] if ends else nodes
        if self.leads:
            self.lane.commit(nodes, logprobs[: len(nodes)])
        for scorer in self.lane.scorers.values():
            scorer.forget([self.tip, *nodes[:-1]])
        self.ended, self.started = self.ends(nodes[-1]), True
        self.tip, self.left = nodes[-1], self.left - len(nodes)

    def drop(self, nodes: list[int]) -> None:
        """As `Lane.drop`."""
        self.lane.drop(nodes)

    def report(self, turn: int) -> None:
        """Records what became of this round's guesses, and the token that the target added."""
        for node in self.born:
            status, probability = self.fate.get(node, ("settled", None))
            at, token = self.tree.depths[node], self.tree.tokens[node]
            self.lane.cell(at, turn, token, status, probability, f"text {self.number}")
        self.born, self.fate = [], {}


def gather(lane: Lane) -> list[Text]:
    """All texts of the lane: its own first, then those of its parameter `prompts`."""
    texts, target = [Text(lane, 1, lane.tip, lane.left)], lane.models["target"]
    context = min(model.context for model in lane.models.values())
    for number, line in enumerate(lines(lane.parameters), 2):
        tip, ids = -1, target.encode(line)
        for token in ids:
            tip = lane.tree.add(tip, token)
        texts.append(Text(lane, number, tip, min(lane.limits.max_new_tokens, context - len(ids))))
    return texts


def draft_chains(texts: list[Text], lengths: list[int]) -> list[Draft]:
    """A chain for each text, at most as long as `lengths` says: one draft forward for the next guesses of all
    texts whose chains still grow.
    """
    lane, drafts = texts[0].lane, [Draft(text.tip) for text in texts]
    ends = [text.tip for text in texts]
    for depth in range(max(lengths)):
        growing = [i for i, text in enumerate(texts) if depth < min(lengths[i], text.left - 1)]
        growing = [i for i in growing if not depth or lane.tree.tokens[ends[i]] not in lane.eos]
        if not growing:
            break
        scores = DRAFT_MODEL.scores(lane, [ends[i] for i in growing])  # [growing, V]
        for i, row in zip(growing, scores, strict=True):
            ends[i] = next_guess(texts[i], drafts[i], ends[i], row[None])
    return drafts


def next_guess(text: Text, draft: Draft, end: int, scores: torch.Tensor) -> int:
    """The guess after `end`, by the draft's scores [1, V] there: the most likely token at temperature 0, else
    a drawn one; returns its node.
    """
    text.distribution([end], scores, view="draft")
    draft.scores[end] = scores[0]
    if text.parameters["temperature"] == 0.0:
        return likeliest(text, draft, [end], scores, [1])[0]
    return sampled(text, draft, [end], distributions(text, scores), [1], SAMPLED)[0]


def chains(temperature: float, says: str, sees_token: bool = False) -> Drafter:
    """The chains of a batch as a drafter, for its verifier; `says`: how long they get."""

    def propose(text: Text) -> Draft:
        return draft_chains([text], [text.left])[0]

    fill = FIXED if temperature == 0.0 else SAMPLED
    how = "the most likely token at each position" if fill == FIXED else "one sampled token at each position"
    says = f"In one forward a second, smaller model guesses the next token of every text: {how}. {says}"
    name = "a chain for every text"
    return Drafter(propose, fill, sees_token=sees_token, name=name, says=says, roles=("draft",))


def batch_rounds(
    lane: Lane,
    propose: Callable[[list[Text]], list[Draft]],
    verifier: Verifier,
    observe: Callable[[list[Text], list[Draft], list[Verification]], None] = lambda *_: None,
    choose: Callable[[list[Text]], list[Text]] = lambda texts: texts,
) -> Iterator[None]:
    """Runs rounds until all texts are finished; each is one target forward over all texts that are chosen.

    `propose` drafts for these texts. Each text keeps the part of its draft that the verifier accepts and the
    target's token after it; `observe` receives the outcome. Lengths may differ: no text waits for another
    within a round, and all wait for its end.
    """
    texts, turn = gather(lane), 0
    while going := [text for text in texts if text.more]:
        turn, going = turn + 1, choose(going)
        drafts = propose(going)
        asked = [opened(text, draft) for text, draft in zip(going, drafts, strict=True)]
        kind = "verify" if any(draft.nodes for draft in drafts) else "decode"
        logits = lane.score([node for nodes in asked for node in nodes], kind)  # [N, V]
        verifications = []
        parts = logits.split([len(nodes) for nodes in asked])
        for text, draft, nodes, rows in zip(going, drafts, asked, parts, strict=True):
            verifications.append(judged(text, draft, verifier, nodes, rows))
            kept = set(verifications[-1].path)
            text.drop([n for n in draft.nodes if n not in kept])
        for text in going:
            text.report(turn)
        observe(going, drafts, verifications)
        yield


def opened(text: Text, draft: Draft) -> list[int]:
    """The nodes that the target scores: the newest committed one and the guesses that may continue."""
    return [n for n in (draft.root, *draft.nodes) if n == draft.root or text.tree.tokens[n] not in text.eos]
