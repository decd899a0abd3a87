"""Source of guesses: a draft model with another tokenizer than the target's.

Timor et al. (2025), Accelerating LLM Inference with Lossless Speculative Decoding Algorithms for
Heterogeneous Vocabularies. The draft reads and writes its own tokens, in a tree of its own; text translates
between the two. What is lost in translation costs acceptance, never exactness: the target tests tokens of its
own. Uses a model's `encode`, `encode_after` and `bytes_of`.
"""

from codecs import getincrementaldecoder
from dataclasses import replace

import torch

from decoders.engine.engine import Work
from decoders.engine.tree import Tree
from decoders.lane import Lane
from decoders.speculative.drafters.fixed_trees import widths
from decoders.speculative.interfaces import FIXED, Draft, Drafter, Seen, Source, Verification, drafted

LOOK_BEHIND = 10  # tokens of the text that are tokenized again together with what follows, as in transformers
TEXT, COMMON, FIRST = "text", "common tokens", "first pieces"
SAYS = {
    TEXT: "The draft writes in its own tokens, and the target's tokenizer splits that text again.",
    COMMON: "The draft's distribution over the tokens that both models have, renormalised.",
    FIRST: "Each token of the draft stands for the first token that the target's tokenizer makes of it.",
}


class OwnTokens:
    """The scorer of a lane's draft over a tree in the draft's own tokens. `place` finds a node of the lane's
    tree in it; `score` takes nodes of this tree.
    """

    def __init__(self, lane: Lane):
        """Takes the place of the scorer that the lane made for its own tokens. Raises OutOfSlots."""
        self.lane, self.draft, self.target = lane, lane.models["draft"], lane.models["target"]
        lane.scorers["draft"].close()
        text = self.text(lane.tree.trunk - 1)
        own = self.draft.encode(text.decode("utf-8", "ignore") or " ")
        start = own[: max(1, len(own) - LOOK_BEHIND)]
        read = plain_bytes(self.draft, start)
        if not text.startswith(read):
            read = read.removeprefix(b" ")  # some tokenizers put a space in front of every text
        if not text.startswith(read):
            start, read = own, text
        self.known, self.tree = len(read), Tree(start)
        self.scorer = lane.attach(self.draft, self.tree)
        self.children: dict[tuple[int, int], int] = {}  # parent, token -> node

    def text(self, node: int) -> bytes:
        """The text down to a node of the lane's tree."""
        return plain_bytes(self.target, self.lane.tree.text(node))

    def is_cut(self, node: int) -> bool:
        """Whether the text ends within a character there: the draft reads only whole ones."""
        decoder = getincrementaldecoder("utf-8")("ignore")
        decoder.decode(self.text(node))
        return bool(decoder.getstate()[0])

    def place(self, node: int) -> int:
        """Where the text down to a node of the lane's tree ends in this tree."""
        unread = self.text(node)[self.known :].decode("utf-8", "ignore")
        at, before = self.tree.trunk - 1, self.tree.tokens[: self.tree.trunk][-LOOK_BEHIND:]
        for token in self.draft.encode_after(before, unread) if unread else []:
            at = self.child(at, token)
        return at

    def child(self, parent: int, token: int) -> int:
        """The node of a token below another one."""
        node = self.children.get((parent, token))
        if node is None:
            node = self.children[parent, token] = self.tree.add(parent, token)
        return node

    def has_room(self, count: int) -> bool:
        """Whether the draft can read `count` tokens after the lane's newest one."""
        return self.tree.depths[self.place(self.lane.tip)] + 1 + count < self.draft.context

    def settle(self) -> None:
        """Frees what is not on the path to the lane's newest token."""
        kept = set(self.tree.path(self.place(self.lane.tip)))
        dead = [node for node in self.children.values() if node not in kept]
        self.children = {key: node for key, node in self.children.items() if node in kept}
        self.scorer.release(dead)

    @property
    def work(self) -> Work:
        """What the last `score` call computed."""
        return self.scorer.work

    @property
    def used(self) -> int:
        """As `engine.Scorer.used`."""
        return self.scorer.used

    def score(self, nodes: list[int], hidden: bool = False) -> torch.Tensor:
        """The draft's logits [N, its own V] after nodes of this tree."""
        return self.scorer.score(nodes, hidden)

    def forget(self, nodes: list[int]) -> None:
        """Does nothing: nodes of the lane's tree mean nothing here; see `settle`."""

    def release(self, nodes: list[int]) -> None:
        """As `forget`."""

    def close(self) -> None:
        """As `engine.Scorer.close`."""
        self.scorer.close()


def plain_bytes(model, tokens: list[int]) -> bytes:
    """The text of tokens, without special and end-of-text tokens."""
    out = {*model.special, *model.eos}
    return b"".join(model.bytes_of(t) for t in tokens if t not in out)


def image(target, draft, first: bool) -> torch.Tensor:
    """For each token of the draft [its V] the target's token with the same text, -1 for none. `first`: else
    the first token that the target's tokenizer makes of that text. End-of-text tokens match each other.
    """
    special = {*target.special, *target.eos}
    tokens = [t for t in range(target.engine.vocabulary) if t not in special]
    by_text = {target.bytes_of(t): t for t in reversed(tokens)}
    own_special, end = draft.special, min(target.eos, default=-1)

    def of(token: int) -> int:
        if token in draft.eos:
            return end
        text = draft.bytes_of(token)
        if token in own_special or not text:
            return -1
        if text in by_text or not first:
            return by_text.get(text, -1)
        pieces = target.encode_after([], whole) if (whole := text.decode("utf-8", "ignore")) else []
        return pieces[0] if pieces and pieces[0] not in special else -1

    return torch.tensor([of(token) for token in range(draft.engine.vocabulary)])


def carried_over(probs: torch.Tensor, to: torch.Tensor, vocabulary: int) -> torch.Tensor:
    """Log-probabilities [N, vocabulary] of the target's tokens: those [N, V] of the draft's tokens, moved to
    the tokens `to` [V] and normalised over those that match one; uniform where none does.
    """
    known = to >= 0
    mass = torch.zeros(len(probs), vocabulary, dtype=probs.dtype, device=probs.device)
    mass.index_add_(1, to[known].to(probs.device), probs[:, known.to(probs.device)])
    total = mass.sum(-1, keepdim=True)
    return torch.where(total > 0, mass / total, 1.0 / vocabulary).log()


def token_drafter(parameters: dict, first: bool) -> Drafter:
    """A chain of the target's tokens, drawn from the draft's distribution carried over to them."""
    images: dict[int, torch.Tensor] = {}

    def scores(lane: Lane, nodes: list[int]) -> torch.Tensor:
        own, target = lane.scorers["draft"], lane.models["target"]
        if id(lane) not in images:
            images.clear()
            images[id(lane)] = image(target, own.draft, first)
        logits = lane.score([own.place(n) for n in nodes], "draft", role="draft")
        probs = logits.double().softmax(-1)
        return lane.process(carried_over(probs, images[id(lane)], target.engine.vocabulary), nodes)

    shape = widths([1] * parameters["num_assistant_tokens"], parameters["temperature"])
    source = Source(scores, "a draft with other tokens", SAYS[FIRST if first else COMMON], ("draft",))
    inner = drafted(source, shape)

    def propose(lane: Lane) -> Draft:
        fits = lane.scorers["draft"].has_room(parameters["num_assistant_tokens"])
        return inner.propose(lane) if fits else Draft(lane.tip)

    return replace(inner, propose=propose, observe=keep_committed)


def text_drafter(parameters: dict) -> Drafter:
    """The draft's most likely tokens as text, tokenized for the target: universal assisted generation."""
    count = parameters["num_assistant_tokens"]

    def propose(lane: Lane) -> Draft:
        own, target, draft = lane.scorers["draft"], lane.models["target"], Draft(lane.tip)
        if lane.left < 2 or own.is_cut(lane.tip) or not own.has_room(count):
            return draft
        at, written, ended = own.place(lane.tip), [], False
        while len(written) < count and not ended:
            token = int(lane.score([at], "draft", role="draft")[0].argmax())
            ended = token in own.draft.eos
            if not ended:
                at = own.child(at, token)
                written.append(token)
        text = plain_bytes(own.draft, written).decode("utf-8", "ignore")
        tokens = target.encode_after(lane.tree.text(lane.tip)[-LOOK_BEHIND:], text) if text else []
        node = lane.tip
        for token in [*tokens, *sorted(target.eos)[: int(ended)]][: lane.left - 1]:
            node = draft.propose(lane, node, token, None, source="draft", fill=FIXED)
            if token in target.eos:
                break
        return draft

    name = "text of a draft with other tokens"
    return Drafter(propose, FIXED, observe=keep_committed, name=name, says=SAYS[TEXT], roles=("draft",))


def keep_committed(lane: Lane, draft: Draft, verification: Verification, seen: Seen) -> None:
    """The `observe` of both: the draft's own tree keeps what was committed."""
    lane.scorers["draft"].settle()
