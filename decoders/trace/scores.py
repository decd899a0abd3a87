"""The events that give a node a number: what a candidate is ranked by (`Rank`), a value measured at a token
(`Measure`), values by number (`Table`), and a stretch of the prompt (`Span`); the names of such numbers; and
where in its constraint an output stands (`ConstraintPlace`, `AutomatonState`).

A reader matches the class and the name, and reads fields: nothing is read out of a name, a level or the name
of a part, which are words for people.
"""

from dataclasses import dataclass, field

OTHERS = -1  # in a table by tokens, the number of all that have no row


class ScoreName:
    """Names of scores. They are plain strings: traces of other programs have names of their own."""

    # what candidates are ranked by
    AUGMENTED_SUM = "augmented_sum"
    CHOSEN = "chosen"  # of a lens: the log-probability and the rank of the token that was chosen
    CONTRASTIVE = "contrastive"
    END_OF_TEXT = "end of text"
    EXPECTED_UTILITY = "expected_utility"
    FORESIGHT = "foresight"
    FSD = "fsd"
    GREEDY_SPAN = "greedy"  # on the path of greedy decoding
    LABEL = "label"
    LENGTH_PENALISED = "length_penalised"
    LOOKAHEAD = "lookahead"
    MEAN_CONFIDENCE = "mean confidence"
    MEAN_LOGPROB = "mean_logprob"
    MOMENTUM = "momentum"
    PATH = "path"
    PATH_COST = "path_cost"
    PERTURBED_VALUE = "perturbed value"
    PHI = "phi"
    PLAN = "plan"
    PRIORITY = "priority"
    RERANKER = "reranker"
    REWARD = "reward"
    SAMPLE = "sample"
    SCORE = "score"
    SENTENCE_PREFIX = "sentence prefix"
    SHARE_OF_WEIGHT = "share of weight"
    SLOT = "slot"  # the value of an open slot of a tree when this node filled it
    SPAN = "span"
    STEP = "step"
    SUM_LOGPROB = "sum_logprob"
    TEXT_VALUE = "text_value"
    TOTAL = "total"
    VISITS = "visits"
    WORD_ERROR_RATE = "word_error_rate"
    # values at a token
    ACCEPTANCE = "recent acceptance"
    ADHERENCE = "adherence"
    ALL_ACCEPTED = "all accepted so far"
    ALLOWED_FUTURE = "allowed future"
    BANK_SLOTS = "bank_slots"
    BELIEF = "belief"
    BLOCKED = "blocked"
    BUDGET = "budget"  # guesses of all texts of a batch that the target verifies
    CONFIDENCE = "confidence"
    CONTRAST = "contrast"
    COSINE = "cosine"
    COUPLING = "coupling"
    DECISION_DEPTH = "decision depth"
    DIVERGENCE = "divergence"
    DRAFT_LENGTH = "draft length"
    DRAW = "draw"  # the uniform number that drew the token; parts: `low` and `high`
    DRAW_FROM_ROW = "draw from the row"
    DRIFT = "drift"
    END_OF_THINKING = "p(end of thinking)"
    ENTROPY = "entropy in nats"
    EXPECTED_LENGTH = "expected length"
    FINAL_SENTENCE = "final sentence"
    GAIN = "gain of the level"
    GAP = "gap"
    GATE = "gate"
    IN_VOCABULARY = "in the draft's vocabulary"
    JOINT_COST = "joint_cost"
    JUDGED = "judged right"
    JUMP = "jump_probability"
    KL_FROM_FULL_CACHE = "KL from the full cache"
    KL_TO_FINAL = "KL to final"
    LARGEST_PROBABILITY = "largest probability"
    LETTER = "letter"
    LINEARITY = "linearity"
    LOG_WEIGHT = "log weight"
    MATCHED = "matched"
    MEMORY = "memory"
    MEMORY_BYTES = "memory bytes"
    MET = "met"
    MIROSTAT = "mirostat"
    NATS_FROM_TARGET = "nats from target"
    PACKED = "packed"
    PADDING = "padding"
    PATH_PROBABILITY = "probability of the path"
    PLAN_ITEM = "plan item"
    P_LABEL = "P(label)"
    P_TOKEN = "p(x)"
    READINESS = "readiness"
    REWARD_SO_FAR = "reward so far"
    ROLLING_ENTROPY = "rolling entropy"
    SEES = "sees"
    SHARE = "share"
    STATE = "state"
    TEMPERATURE = "temperature"
    THINKING_BUDGET = "thinking budget"  # the tokens of reasoning so far, where the limit forces their end
    TOP_P = "top_p"
    TOTAL_VARIATION = "total variation"
    WATERMARK = "watermark"
    WEIGHT = "weight"
    # tables
    BIAS = "bias"
    CONTINUATIONS = "continuations"  # how often each token followed a run of tokens; the total: of the run
    STRONG_EXPERTS = "strong experts"
    SUFFIX_SCORE = "suffix score"  # of the draft after a match of so many tokens
    TOKENS_PER_ROUND = "tokens per round"
    WEAK_EXPERTS = "weak experts"
    # stretches of the prompt
    UNIT = "unit"


@dataclass(slots=True)
class Score:
    """A number of a node. It is recorded as one of the classes below. `parts`: further numbers by name;
    `level`: in words, the group, layer, text or outcome that it is of; `number`: the same, counted.
    """

    node: int
    name: str
    total: float
    parts: dict[str, float] = field(default_factory=dict)
    level: str | None = None
    number: int | None = None

    @property
    def numbers(self) -> dict[str, float]:
        """All numbers beside the total, by name, as people read them."""
        return self.parts


@dataclass(slots=True)
class Rank(Score):
    """What a candidate is ranked by; `parts` are the terms of the total. `rank` 1 is the best so far; it is
    unset while the candidate is compared with no other. `units`: of a plan, the units that it lists.
    """

    rank: int | None = None
    units: list[int] | None = None


@dataclass(slots=True)
class Measure(Score):
    """A value at a token. If there is a `limit`, the total was compared with it, and `level` says what was
    done. If there is a `scale`, the total is a number of its token, between 0 and `scale`.
    """

    limit: float | None = None
    scale: float | None = None

    @property
    def numbers(self) -> dict[str, float]:
        return _known(self.parts, limit=self.limit, scale=self.scale)


@dataclass(slots=True)
class Table(Score):
    """Values by number: rows of [number, value ...]; `unit` says what the number is of, such as a layer or an
    expert. `chosen`: the number that was taken.
    """

    unit: str = ""
    rows: list[list[float]] = field(default_factory=list)
    chosen: int | None = None

    @property
    def by_number(self) -> dict[int, list[float]]:
        """Number -> its values."""
        return {int(number): values for number, *values in self.rows}

    @property
    def numbers(self) -> dict[str, float]:
        named = {f"{self.unit} {number}": values[0] for number, values in self.by_number.items()}
        return _known(self.parts, chosen=self.chosen) | named


@dataclass(slots=True)
class Span(Score):
    """A stretch of the prompt, from its `first` to its `last` token, with its number and a total."""

    first: int = 0
    last: int = 0

    @property
    def numbers(self) -> dict[str, float]:
        return self.parts | {"first": self.first, "last": self.last}


@dataclass(slots=True)
class ConstraintPlace:
    """Where in the constraint's own text the output stands after a node: [start, stop] of the characters that
    may come next, and of the rules around them. `may_end`: whether an output may end here.
    """

    node: int
    awaited: list[list[int]]
    around: list[list[int]]
    may_end: bool


@dataclass(slots=True)
class AutomatonEdge:
    """An edge of the constraint's automaton, from one state to another, recorded before the first nodes.
    `reads`: what it reads. `source_ends`, `target_ends`: whether an output may end in these states.
    """

    node: int
    number: int
    source: int
    target: int
    reads: str
    source_ends: bool
    target_ends: bool


@dataclass(slots=True)
class AutomatonState:
    """Where in the constraint's automaton the output stands after a node: in a state, or `along` characters
    after the beginning of an edge. `took`: the edges that its token took.
    """

    node: int
    state: int | None
    edge: int | None
    along: int | None
    took: list[int]


Scored = Rank | Measure | Table | Span
Placed = ConstraintPlace | AutomatonEdge | AutomatonState


def _known(parts: dict[str, float], **fields: float | None) -> dict[str, float]:
    return parts | {name: value for name, value in fields.items() if value is not None}
