"""Sentences of verdicts: why a drafted token passed its test or did not, and where the target's own token
comes from.
"""

from collections.abc import Callable, Iterable, Mapping

from decoders.trace.events import Verdict
from decoders.trace.number_format import compared, number
from decoders.trace.reasons import Code, Reason
from decoders.trace.token_text import preference


def status_in_words(status: str) -> str:
    """The status of a verdict as people read it. Greedy decoding has the status `resampled`, too, although it
    draws nothing.
    """
    return "written instead" if status == "resampled" else status


def reason_of(verdict: Verdict, vocabulary: Mapping[int, bytes]) -> str | None:
    """Why a verdict is what it is: the sentence that is stored, else that of its codes; None without either.
    vocabulary: how the tokens that it names are written.
    """
    return verdict.reason or sentence_or_none(verdict.why, vocabulary)


def sentence_or_none(reasons: Iterable[Reason], vocabulary: Mapping[int, bytes]) -> str | None:
    """As `sentence`; None without a reason."""
    return sentence(*reasons, vocabulary=vocabulary) or None


def sentence(*reasons: Reason, vocabulary: Mapping[int, bytes] = {}) -> str:
    """One sentence or more for each reason, in their order."""
    return " ".join(_one(reason, vocabulary) for reason in reasons)


def _one(reason: Reason, vocabulary: Mapping[int, bytes]) -> str:
    numbers = reason.numbers
    if reason.code is Code.OTHER_PREFERRED:
        token = vocabulary.get(numbers["preferred"], b"?")
        return preference("target", token, numbers["p_preferred"], numbers["p"])
    wording = SENTENCES[reason.code]
    return wording if isinstance(wording, str) else wording(**numbers)


def token_rejection(p: float, q: float, u: float | None, accepted: bool, slot: int) -> str:
    """With rounded numbers that agree with each other."""
    gave = "The draft gave" if slot == 0 else "Among the tokens not yet tried the draft gave"
    wanted = "the target" if slot == 0 else "the residual of the target"
    if p <= 0.0:
        return f"{gave} {number(q)}, {wanted} nothing: it cannot be accepted."
    if p >= q:
        return f"{gave} {number(q)}, {wanted} {number(p)}, at least as much: it is always accepted."
    shown_p, shown_q, ratio, drawn = compared(p, q, u)
    comparison = f"{gave} {shown_q}, {wanted} {shown_p}: it is accepted with probability p/q = {ratio};"
    fate = "accepted" if accepted else "rejected"
    if u is None:
        return f"{comparison} {fate}."
    return f"{comparison} u = {drawn} is {'smaller' if accepted else 'larger'}: {fate}."


def certain_draft(p: float, u: float | None, accepted: bool) -> str:
    """Without q, which counts as 1."""
    counts = "The draft gave no probability, so its token counts as certain (q = 1)"
    if p <= 0.0:
        return f"{counts}, and the target gave nothing: it cannot be accepted."
    if p >= 1.0:
        return f"{counts}, and so it is for the target: it is always accepted."
    shown, _, _, drawn = compared(p, 1.0, u)
    drew = "" if u is None else f" u = {drawn} is {'smaller' if accepted else 'larger'}:"
    fate = "accepted" if accepted else "rejected"
    return f"{counts}: it is accepted with probability p = {shown};{drew} {fate}."


def k_seq(p: float, q: float, rho: float, probability: float, accepted: bool) -> str:
    fate = "It was accepted." if accepted else "It was rejected."
    divided = f"p / (rho q) = {number(p)} / ({number(rho)} x {number(q)})"
    return f"A draw is accepted with probability min(1, {divided}), here {number(probability)}. {fate}"


def block(length: int, kept: int, weight: float, probability: float, passed: bool) -> str:
    """length: of the tested prefix; kept: of the one that was kept."""
    count = "The first token" if length == 1 else f"The first {length} tokens together"
    weighed, passes, it = ("weighs", "passes", "it") if length == 1 else ("weigh", "pass", "they")
    test = f"{count} {weighed} {number(weight)} and {passes} with probability {number(probability)}"
    if length == kept:
        return f"{test}: {it} passed, and no longer prefix did."
    if length > kept:
        return f"{test}: {it} did not pass."
    return f"{test}: {it} {'passed' if passed else 'did not pass'}, and a longer prefix did."


def traversal(probability: float, passed: bool) -> str:
    fate = "Accepted." if passed else "Rejected: this token is removed."
    return (
        f"The path down to this token is accepted as a whole with probability {number(probability)}. {fate}"
    )


def beam_coin(p: float, q: float, probability: float) -> str:
    return (
        f"The target gave {number(p)}, the drafter {number(q)}: by the published rule it passes "
        f"with {number(probability)}."
    )


def adjusted_target(p: float, moved: float, q: float, probability: float, accepted: bool) -> str:
    return (
        f"The target gave {number(p)}, adjusted {number(moved)}, the draft {number(q)}: it is accepted "
        f"with probability {number(probability)}. It was {'accepted' if accepted else 'rejected'}."
    )


def adjusted_argmax(p: float, moved: float, accepted: bool) -> str:
    largest = "the largest" if accepted else "not the largest"
    return f"The target gave {number(p)}, adjusted {number(moved)}, {largest}."


def lenient(
    p: float, q: float, discounted: float, probability: float, accepted: bool, u: float | None
) -> str:
    """discounted: what q counts as."""
    comparison = (
        f"The target gave {number(p)}, the draft {number(q)}, which counts as {number(discounted)}: it "
        f"is accepted with probability {number(probability)}"
    )
    if accepted and u is not None and u * q >= p:
        return f"{comparison}. It was accepted, and without lenience it would not be."
    return f"{comparison}. It was {'accepted' if accepted else 'rejected'}."


def share_of_best(p: float, lenience: float, best: float, accepted: bool) -> str:
    return (
        f"The target gave {number(p)}; {number(lenience)} of its best, {number(best)}, is "
        f"{'enough' if accepted else 'required'}."
    )


def neighbours(
    p: float, count: int, lifted: float, q: float, probability: float, accepted: bool, u: float | None
) -> str:
    """lifted: p with the `count` neighbours."""
    alone = accepted and u is not None and u * q >= p
    return (
        f"The target gave {number(p)}; with {count} neighbours, {number(lifted)}, "
        f"against the draft's {number(q)}: it is accepted with probability {number(probability)}. It was "
        f"{'accepted' if accepted else 'rejected'}"
        f"{', and without the neighbours it would not be.' if alone else '.'}"
    )


def neighbours_argmax(p: float, count: int, lifted: float, best: float, accepted: bool) -> str:
    side = "the largest of all" if accepted else f"less than another token's {number(best)}"
    return f"The target gave {number(p)}; with {count} neighbours, {number(lifted)}, {side}."


def nearly_best(rank: int, gap: float, beta: int, tau: float, accepted: bool) -> str:
    limit = f"{number(tau)} nat{'' if tau == 1 else 's'}"
    fate = "it passes." if accepted else f"it passes up to rank {beta} and {limit}."
    return f"The target's rank {rank}, {number(gap)} nats below its best: {fate}"


def divergence(apart: float | None, limit: float, measure: str) -> str:
    if apart is None:
        return f"Target and draft are infinitely far apart here ({measure}): every token is rejected."
    more, fate = ("no more", "passes") if apart <= limit else ("more", "is rejected")
    return (
        f"Target and draft are {number(apart)} apart here ({measure}), {more} than {number(limit)}: every "
        f"token {fate}."
    )


def typical(p: float, line: float) -> str:
    side = "it passes" if p > line else "it does not pass"
    return f"The target gave {number(p)}, and more than {number(line)} is needed here: {side}."


def judge(score: float, delta: float) -> str:
    fate = "is accepted all the same" if score > delta else "stays rejected"
    return f"The judge rates it {number(score)}, limit {number(delta)}: it {fate}."


def rank(rank: int, count: int) -> str:
    """count: of the most likely tokens that pass."""
    which = "the target's most likely token" if count == 1 else f"among the target's {count} most likely"
    return f"It is {'' if rank <= count else 'not '}{which}: its rank is {rank}."


def numbers_apart(apart: float, epsilon: float) -> str:
    return f"It is {number(apart)} away from the target's most likely number; {number(epsilon)} is allowed."


def transport_bound(draws: int, taken: float, bound: float) -> str:
    return (
        f"K-SEQ keeps one of {draws} such draws with probability {number(taken)} here; "
        f"with the best plan of optimal transport it would be {number(bound)}."
    )


def with_p(wording: str) -> Callable[[float], str]:
    """A sentence that names the probability of the target's own token."""
    return lambda p: wording.format(number(p))


SENTENCES: dict[Code, str | Callable[..., str]] = {
    Code.MOST_LIKELY: "Accepted: it is the target's most likely token.",
    Code.DREW_IT: with_p("Accepted: the target drew this token too, with probability {}."),
    Code.DREW_ANOTHER: with_p("Rejected: the target drew another token; this one had probability {}."),
    Code.TOKEN_REJECTION: token_rejection,
    Code.CERTAIN_DRAFT: certain_draft,
    Code.K_SEQ: k_seq,
    Code.BLOCK: block,
    Code.TRAVERSAL: traversal,
    Code.ON_ACCEPTED_PATH: "It lies on the path that was accepted.",
    Code.BEAM_COIN: beam_coin,
    Code.OTHER_BEAM: "It passed, but another beam is kept.",
    Code.ADJUSTED_TARGET: adjusted_target,
    Code.ADJUSTED_ARGMAX: adjusted_argmax,
    Code.LENIENT: lenient,
    Code.SHARE_OF_BEST: share_of_best,
    Code.NEIGHBOURS: neighbours,
    Code.NEIGHBOURS_ARGMAX: neighbours_argmax,
    Code.NEARLY_BEST: nearly_best,
    Code.DIVERGENCE: divergence,
    Code.TYPICAL: typical,
    Code.OTHER_PATH: "Another path is longer or more likely.",
    Code.IS_ARGMAX: "It is the target's most likely token here.",
    Code.IS_NOT_ARGMAX: "The target prefers another token here.",
    Code.JUDGE: judge,
    Code.FIRST_OF_BLOCK: lambda minimum: f"The first {minimum} tokens of a block pass.",
    Code.RANK: rank,
    Code.MOST_LIKELY_NUMBER: "It is the target's most likely token.",
    Code.NO_NUMBERS: "It is not the target's most likely token, and not both are numbers.",
    Code.NUMBERS_APART: numbers_apart,
    Code.CUT: "Cut: the fragment that it belongs to is not complete.",
    Code.KEPT_BY_MISTAKE: "It is not the target's token, and is kept by mistake.",
    Code.SIBLING_ACCEPTED: "A sibling was accepted before it was tested.",
    Code.PARENT_NOT_ACCEPTED: "It follows a token that was not accepted.",
    Code.ALL_ACCEPTED: with_p(
        "All drafted tokens were accepted; the target drew one more, with probability {}."
    ),
    Code.RESIDUAL: with_p("Drawn from the residual distribution, where it has probability {}."),
    Code.RESIDUAL_OF_TARGET: with_p(
        "Drawn from the residual of the target's distribution, where it has probability {}."
    ),
    Code.RESIDUAL_ON_PATH: with_p(
        "Drawn from the residual of the target's distribution there, with probability {}."
    ),
    Code.TARGET: with_p("Drawn from the target's distribution, where it has probability {}."),
    Code.TARGET_NOT_DRAFTED: with_p(
        "Drawn from the target's distribution with probability {}; it was not drafted."
    ),
    Code.TARGET_BY_MISTAKE: with_p("Drawn from all of p, which is the mistake; it has probability {}."),
    Code.ARGMAX_NOT_DRAFTED: "The target's most likely token here; it was not drafted.",
    Code.ARGMAX_DID_NOT_PASS: "The target's most likely token here; the drafted one did not pass.",
    Code.ARGMAX_AFTER_ALL: "All drafted tokens were accepted; the target adds its most likely one.",
    Code.ARGMAX_AFTER_DRAFT: "The target's most likely token after a fully accepted draft.",
    Code.NEXT_FRAGMENT: (
        "The draft was cut after the last whole fragment; with this token the target begins the next one."
    ),
    Code.MODELS_AGREE: "Target and draft agree to the last digit; the target draws the next token.",
    Code.TRANSPORT_BOUND: transport_bound,
}
