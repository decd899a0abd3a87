"""SpecMemo: a byte budget for what decoding itself stores decides how long a draft may be.

Yildirim and Chen (2025), SpecMemo; its formulas were not available, so the sum is over this project's own
tensors, to the byte. SmartSpec's fixed cost model, not a clock, says whether a draft pays off at all.
"""

from dataclasses import dataclass

from decoders.engine.engine import Engine
from decoders.engine.kv_cache import layer_configs, query_width, slot_bytes
from decoders.lane import Lane
from decoders.models.memory_estimate import bytes_of
from decoders.parameters import integer, real
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import speculative
from decoders.speculative.default_verifier import simplest
from decoders.speculative.drafters.draft_length import Length, chain
from decoders.speculative.drafters.draft_model import DRAFT_MODEL
from decoders.speculative.interfaces import Pair, drafted
from decoders.speculative.methods.smartspec import CostModel
from decoders.speculative.theory import expected_tokens
from decoders.trace.scores import ScoreName

KILO = 1000  # bytes, as everywhere on the page
UNKNOWN = "These models keep no cache whose bytes are known: the budget sets no bound."


@dataclass(frozen=True)
class Sizes:
    """Bytes of one model's tensors: a KV slot, a row of logits, what is kept of a row that is asked for
    (last states) and of one that is computed (queries, residual stream), and a number in a mask.
    """

    slot: int = 0
    logits: int = 0
    asked: int = 0
    computed: int = 0
    number: int = 0


def sizes_of(engine: object) -> Sizes:
    """The sizes for an engine with a cache; all 0 for tables and models that keep something else."""
    if type(engine) is not Engine:
        return Sizes()
    config, number = engine.model.config.get_text_config(), engine.dtype.itemsize
    queries = number * sum(one.num_attention_heads * query_width(one) for one in layer_configs(config))
    state = config.hidden_size * number if engine.fast_llama is not None else 0  # other forwards keep none
    return Sizes(slot_bytes(config, number), engine.vocabulary * number, state, queries + state, number)


@dataclass(frozen=True)
class Place:
    """Where a round begins: tokens of the text, and how many of them each model has in its cache."""

    length: int
    target: int
    draft: int


def place_of(lane: Lane) -> Place:
    """The place of the coming round, as if the lane were alone: a prompt that another lane has read counts as
    unread.
    """
    used = {r: scorer.used if getattr(scorer, "started", False) else 0 for r, scorer in lane.scorers.items()}
    return Place(lane.tree.depths[lane.tip] + 1, used["target"], used["draft"])


def memory(place: Place, n: int, target: Sizes, draft: Sizes) -> dict[str, int]:
    """Bytes held at the end of a round's verification with a chain of n guesses, by purpose.

    The target computes what it has not read, down to the last guess; the draft all but the last guess, and
    nothing if there are none. The mask is that of the verification, the largest of the round; a single row
    that sees the whole text needs none.
    """
    to_target, to_draft = place.length + n - place.target, place.length + n - 1 - place.draft if n else 0
    draft_holds = place.length if n else place.draft
    return {
        "text": place.length * target.slot + draft_holds * draft.slot,
        "guesses": n * target.slot + max(0, n - 1) * draft.slot,
        "logits": (n + 1) * target.logits + n * draft.logits,
        "mask": to_target * (place.length + n) * target.number if to_target > 1 else 0,
        "states": (n + 1) * target.asked
        + to_target * target.computed
        + n * draft.asked
        + to_draft * draft.computed,
    }


def longest(place: Place, budget: int, limit: int, target: Sizes, draft: Sizes) -> int:
    """The largest n up to `limit` whose round takes at most `budget` bytes; 0 if none does."""
    fitting = (n for n in range(limit, 0, -1) if sum(memory(place, n, target, draft).values()) <= budget)
    return next(fitting, 0)


def shortest(alpha: float, length: int, margin: float, limit: int, costs: CostModel) -> int:
    """The smallest n up to `limit` with which a token takes less than 1 / (1 + margin) of the time it takes
    without a draft; limit + 1 if there is none.
    """
    plain = costs.seconds(0, 1, length)
    for n in range(1, limit + 1):
        if expected_tokens(alpha, n) * plain / costs.seconds(n, 1, length) > 1 + margin:
            return n
    return limit + 1


def length_within_budget(budget: int, limit: int, alpha: float, margin: float) -> Length:
    """As many guesses as `budget` bytes allow, none if these are too few to pay off. Notes each round's
    total.
    """
    last_noted: list[int] = []

    def choose(lane: Lane) -> int:
        target, draft = (sizes_of(lane.models[role].engine) for role in ("target", "draft"))
        place, possible = place_of(lane), min(limit, lane.left - 1)
        n = longest(place, budget, possible, target, draft)
        n = n if n >= shortest(alpha, place.length, margin, possible, CostModel()) else 0
        sums = memory(place, n, target, draft)
        if total := sum(sums.values()):
            lane.record_measure(lane.tip, ScoreName.MEMORY, total, **sums)
        if last_noted[-1:] != [n]:
            lane.note(round_memory_note(n, total, budget, sums) if total else UNKNOWN)
            last_noted.append(n)
        return n

    return Length(
        choose,
        f"It drafts as many tokens as fit into {bytes_of(budget)}, and none if so few would not pay off.",
    )


def round_memory_note(n: int, total: int, budget: int, sums: dict[str, int]) -> str:
    """What a round takes, in words."""
    what = f"A draft of {n}" if n else "No draft"
    of = f"of {bytes_of(budget)}" if total <= budget else f"more than the {bytes_of(budget)} allowed"
    parts = ", ".join(f"{name} {bytes_of(size)}" for name, size in sums.items() if size)
    return f"{what}: the round takes {bytes_of(total)}, {of} ({parts})."


@speculative(
    name="specmemo",
    title="SpecMemo",
    parameters=(
        integer("memory_kilobytes", 1000, "Memory budget of a round in kilobytes.", low=0),
        integer("num_assistant_tokens", 8, "Maximum length of a draft in tokens.", low=1, high=32),
        real("acceptance", 0.7, "Assumed acceptance rate of guesses.", low=0.0, high=1.0),
        real("margin", 0.1, "Minimum speed gain for which a draft is made.", low=0.0, high=10.0),
        *GREEDY,
    ),
    papers=("specmemo",),
)
def specmemo_pair(parameters: dict) -> Pair:
    """Drafts as many tokens as a memory budget allows, and none where drafting would not pay off.

    1. Before each round the memory that a draft of n tokens needs is added up: keys and values of the text
       and of the guesses in both caches, logits, mask, states. The weights are not counted.
    2. n is the largest number, up to num_assistant_tokens, with which the sum stays within the budget.
    3. If even that many would not make a token cheaper by `margin`, given `acceptance` and a fixed cost
       model, nothing is drafted.
    4. The target checks the chain, as in speculative decoding.

    As the text grows, its own keys and values leave less room, and drafts get shorter. The text is the
    target's whatever the length. The score "memory" at the token before each draft records the sum and its
    parts.
    """
    temperature, budget = parameters["temperature"], parameters["memory_kilobytes"] * KILO
    length = length_within_budget(
        budget, parameters["num_assistant_tokens"], parameters["acceptance"], parameters["margin"]
    )
    return simplest(drafted(DRAFT_MODEL, chain(length, temperature)), temperature)
