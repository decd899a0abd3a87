"""Topic plans: a text sentence by sentence, each under a topic that the model predicts or a person sets.

Needs a model that was trained with a topic token in front of each sentence. Perez-Beltrachini et al. (2019),
Generating Summaries with Topic Templates and Structured Convolutional Decoders.
"""

import math
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field, replace

import torch

from decoders.lane import Lane
from decoders.parameters import free_text, integer, switch
from decoders.registry import strategy
from decoders.search.planned.topic_tokens import TopicTokens, sentences, topic_tokens, typed_topic_tokens
from decoders.strategy import Part
from decoders.trace.scores import ScoreName

NAMED_TOPICS = 3  # topics that are named at the start of a sentence
GRAM = 3  # tokens in a row that a sentence may not repeat from itself or from the sentence before


@dataclass
class Draft:
    """An unfinished text: newest node, sum of log-probabilities, its sentence and the one before."""

    node: int
    total: float
    sentence: list[int] = field(default_factory=list)
    before: list[int] = field(default_factory=list)
    last: float = 0.0  # the log-probability of its last word
    bare: bool = False  # no topic precedes its sentence

    def repeats(self) -> list[int]:
        """Tokens that would repeat three in a row."""
        last = self.sentence[1 - GRAM :]
        seen = [row[i : i + GRAM] for row in (self.before, self.sentence) for i in range(len(row) - GRAM + 1)]
        return [gram[-1] for gram in seen if gram[:-1] == last]

    def extended(self, node: int, token: int, logprob: float) -> "Draft":
        """The same draft, one token longer."""
        sentence = [*self.sentence, token]
        return Draft(node, self.total + logprob, sentence, self.before, logprob, self.bare)


@dataclass
class Ended(Draft):
    """A draft whose sentence is over; `row` [V]: the log-probabilities of what comes next."""

    row: torch.Tensor | None = None


class Planner:
    """Writes the sentences of one lane."""

    def __init__(self, lane: Lane, tokens: TopicTokens):
        self.lane, self.tokens, self.width = lane, tokens, lane.parameters["num_beams"]
        self.plan = [tokens.ids[name] for name in typed_topic_tokens(lane.parameters["plan"])]
        forbidden = {tokens.ids[name] for name in typed_topic_tokens(lane.parameters["forbid"])}
        ends = [tokens.end] if lane.eos else []  # without an end of text no topic can end it
        self.offered = [token for token in (*tokens.topics, *ends) if token not in forbidden]
        self.seams = [*tokens.topics, tokens.end, *lane.eos]  # the tokens that end a sentence
        self.logprobs: dict[int, float] = {}

    def begin(self) -> list[Draft]:
        """The draft after the prompt, whose last sentence continues; it begins at the last topic or line."""
        prompt, bytes_of = self.lane.tree.tokens[: self.lane.tree.trunk], self.lane.models["target"].bytes_of
        seams = [at for at, token in enumerate(prompt) if token in self.seams]
        lines = [at for at, token in enumerate(prompt[:-1]) if b"\n" in bytes_of(token)]
        return [Draft(self.lane.tip, 0.0, prompt[max([-1, *seams, *lines]) + 1 :], bare=not seams)]

    # ---- a sentence

    def is_full(self, draft: Draft) -> bool:
        """Whether nothing more may be written."""
        return self.lane.tree.depths[draft.node] + 1 - self.lane.tree.trunk >= self.lane.budget

    def sentence(self, drafts: list[Draft]) -> Generator[None, None, list[Draft]]:
        """Beam search to the end of a sentence. Returns the drafts that ended, or are full, best first."""
        done = [draft for draft in drafts if self.is_full(draft)]
        live = [draft for draft in drafts if not self.is_full(draft)]
        while live and (len(done) < self.width or live[0].total > done[-1].total):
            leaves, grown = [*live, *done], []
            for rank, one in enumerate(self.continuations(live)):
                if isinstance(one, Ended):
                    done += [one] if rank < self.width else []
                elif len(grown) < self.width:
                    grown.append(self.proposed(one))
            live = [draft for draft in grown if not self.is_full(draft)]
            done += [draft for draft in grown if self.is_full(draft)]
            done = sorted(done, key=lambda one: -one.total)[: self.width]
            self.prune([*leaves, *grown], [*live, *done], "none of its continuations is kept")
            for rank, draft in enumerate(live, 1):
                self.lane.record_rank(draft.node, ScoreName.SUM_LOGPROB, draft.total, rank)
            yield
        self.prune(live, done, "more likely sentences have ended")
        return done

    def continuations(self, live: list[Draft]) -> list[Draft]:
        """The best ones, by the sum of log-probabilities: one more token, its node not proposed yet, or the
        end of the sentence, for which the probabilities of all topics are added.
        """
        nodes, candidates = [draft.node for draft in live], []
        rows = self.lane.distribution(nodes, self.lane.score(nodes))  # [N, V]
        for draft, row in zip(live, rows, strict=True):
            words = row.clone()
            words[self.seams] = -torch.inf
            if draft.bare and self.is_over(draft):
                words[:] = -torch.inf
            if self.lane.parameters["no_repeats"]:
                words[draft.repeats()] = -torch.inf
            top = words.topk(min(2 * self.width, len(words)))
            pairs = zip(top.values.tolist(), top.indices.tolist(), strict=True)
            more = [draft.extended(draft.node, token, p) for p, token in pairs if p > -torch.inf]
            candidates += more
            if draft.sentence or not more:
                over = draft.total + float(row[self.seams].logsumexp(-1))
                candidates.append(Ended(draft.node, over, draft.sentence, draft.before, row=row))
        return sorted(candidates, key=lambda one: -one.total)[: 1 if self.width == 1 else 2 * self.width]

    def is_over(self, draft: Draft) -> bool:
        """Whether a sentence ends with a punctuation mark, or with the colon of an instruction. Used for the
        prompt's own sentence: no topic precedes it, so topics may be unlikely after it.
        """
        bytes_of = self.lane.models["target"].bytes_of
        ending = b"".join(bytes_of(token) for token in draft.sentence[-8:]).decode("utf-8", "replace")
        ending = ending.rstrip()
        return ending.endswith(":") or len(sentences(f"{ending} A")) > len(sentences(f"{ending} a"))

    def proposed(self, draft: Draft) -> Draft:
        """The draft with a node for its last word."""
        token, logprob = draft.sentence[-1], draft.last
        node = self.lane.propose(draft.node, token, logprob)
        self.logprobs[node] = logprob
        return replace(draft, node=node)

    def prune(self, drafts: Iterable[Draft], kept: list[Draft], why: str) -> None:
        """Prunes drafts that lie on no path to the kept ones."""
        lane = self.lane
        needed = {lane.tip, *(n for draft in kept for n in lane.tree.path(draft.node, above=lane.tip))}
        for node in dict.fromkeys(draft.node for draft in drafts):
            if node not in needed:
                lane.verdict(node, "pruned", reason=why)
                lane.drop([node])

    # ---- a topic

    def topic(self, best: Ended, number: int) -> tuple[int, str | None]:
        """The topic after `number` sentences, predicted after the best draft, and why if it is forced."""
        lane, row = self.lane, best.row
        scores = torch.full_like(row, -torch.inf)
        scores[self.offered] = row[self.offered]
        if scores.isfinite().any():
            self.record(lane.distribution([best.node], scores[None], "processed", "topics")[0], number)
        if number < len(self.plan):
            return self.plan[number], "the plan"
        if lane.eos and self.plan:
            return self.tokens.end, "the plan is used up"
        if lane.eos and number >= lane.parameters["max_sentences"]:
            return self.tokens.end, "it has max_sentences sentences"
        if not scores.isfinite().any():
            return self.tokens.end, "every topic is forbidden"
        return int(scores.argmax()), None

    def record(self, logprobs: torch.Tensor, number: int) -> None:
        """Records which topics are most likely."""
        names = {token: name.strip("<>") for name, token in self.tokens.ids.items()}
        top = logprobs.topk(min(NAMED_TOPICS, len(self.offered)))
        pairs = zip(top.indices.tolist(), top.values.exp().tolist(), strict=True)
        leading = ", ".join(f"{names[token]} {p:.2f}" for token, p in pairs)
        self.lane.note(f"Sentence {number + 1} under a topic: {leading}.")

    def with_topic(self, one: Ended, token: int, why: str | None) -> Draft:
        """The draft with the topic of its next sentence, whose log-probability is in no sum."""
        logprob = float(one.row[token])
        node = self.lane.propose(one.node, token, logprob)
        self.logprobs[node] = logprob
        if why:
            self.lane.verdict(node, "forced", p=math.exp(logprob), reason=f"forced: {why}")
        return Draft(node, one.total, [], one.sentence)

    def end(self, draft: Draft) -> Draft:
        """The draft with an end-of-text token after the topic that ends it."""
        lane = self.lane
        if self.is_full(draft):
            return draft
        row = lane.distribution([draft.node], lane.score([draft.node]))[0]
        return self.with_topic(
            Ended(draft.node, draft.total, row=row), min(lane.eos), "the topic ends the text"
        )

    def settle(self, drafts: list[Draft]) -> None:
        """Commits what all drafts share."""
        paths = [self.lane.tree.path(draft.node, above=self.lane.tip) for draft in drafts]
        shared = [nodes[0] for nodes in zip(*paths, strict=False) if len(set(nodes)) == 1]
        if shared:
            self.lane.commit(shared, [self.logprobs[node] for node in shared])


def suits(parameters: dict, target) -> str | None:
    """The message to show if the model has no topics, or lacks those that are named."""
    tokens = topic_tokens(target)
    if tokens is None:
        return (
            f"The model {target.name!r} has no topic tokens; choose one that was trained with them, such as "
            "llama-tiny-summaries."
        )
    for name in (*typed_topic_tokens(parameters["plan"]), *typed_topic_tokens(parameters["forbid"])):
        if name not in tokens.ids:
            known = " ".join(known.strip("<>") for known in sorted(tokens.ids, key=tokens.ids.get))
            return f"The model {target.name!r} has no topic {name.strip('<>')!r}; it has: {known}."
    return None


@strategy(
    name="topic_plan",
    title="Topic plan",
    family="search",
    parameters=(
        free_text("plan", "", "Topics of the next sentences, such as t3 t1 t0; empty: the model's own."),
        free_text("forbid", "", "Topics that are never chosen, such as t2, end."),
        integer("num_beams", 1, "Hypotheses kept at each position of a sentence.", low=1, high=16),
        integer("max_sentences", 15, "The text ends after this many topics.", low=1, high=64),
        switch("no_repeats", True, "No three tokens in a row occur twice in a sentence and the one before."),
    ),
    suits=suits,
    view="topics",
    badge=lambda parameters: "deterministic",
    parts=lambda parameters: [
        Part("plan", "topics", "One topic per sentence, predicted by the model or set by a person."),
        Part("frontier", "beams", "The beams of a sentence continue those of the previous sentence."),
    ],
)
def topic_plan(lane: Lane) -> Iterator[None]:
    """Writes sentence by sentence, each on a topic that the model predicts or a person sets.

    1. A beam search writes the sentence, by the sum of log-probabilities since the prompt. Ending the
       sentence is one more continuation beside the words, with the total probability of all topics; the
       prompt's sentence, which has no topic, ends with its first full stop, or where the prompt ends with a
       colon. No three tokens in a row occur twice in the sentence and the one before.
    2. The next topic is that of the plan, or else the most likely one after the best text among the topics
       that are not forbidden. It is appended to all texts and does not count in their scores.
    3. The topic END, max_sentences, or a plan that is used up ends the text.

    Our substitution: the paper has a recurrent decoder for topics above a convolutional one for words, and an
    encoder that reads documents. Here both levels are one sequence, `<t7> sentence <t2> sentence <end>`, of
    one causal model; the prompt is the beginning of the text. The topics of llama-tiny-summaries steer its
    summaries of fact sheets; those of llama-tiny-forms hardly steer stories. It is not certain that texts
    planned by the model itself contain more of the right topics than texts of the same model without topics
    (experiment topic-plans), so we do not claim to reproduce the paper.
    """
    planner = Planner(lane, topic_tokens(lane.models["target"]))
    drafts, number = planner.begin(), 0
    while True:
        done = yield from planner.sentence(drafts)
        best = done[0]
        if not isinstance(best, Ended):  # the limit is reached
            planner.prune(done, [best], "another text is more likely")
            planner.settle([best])
            return
        token, why = planner.topic(best, number)
        if token == planner.tokens.end and lane.eos:
            winner = planner.end(planner.with_topic(best, token, why))
            planner.prune(done, [winner], "another text is more likely")
            planner.settle([winner])
            return
        drafts = [planner.with_topic(one, token, why) for one in done if isinstance(one, Ended)]
        planner.prune(done, drafts, "another text is more likely")
        planner.settle(drafts)
        number += 1
        yield
