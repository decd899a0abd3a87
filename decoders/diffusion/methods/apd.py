"""APD: the masked model proposes the next tokens, a small autoregressive model judges how many hang together.

Israel et al. (2025), Accelerating Diffusion LLMs via Adaptive Parallel Decoding.
"""

from collections.abc import Iterator

import torch

from decoders.diffusion.canvas import Canvas, blank
from decoders.lane import Lane
from decoders.logits import gumbel
from decoders.logits.distributions import entropies, log_softmax, processors
from decoders.parameters import integer, real
from decoders.registry import strategy
from decoders.strategy import Part
from decoders.trace.number_format import number

MIXTURE = "mixture"  # source of the token that the mixture prefers to a drafted one
KEPT = "The first token of a round is always kept."


def mixture(logp: torch.Tensor, logq: torch.Tensor, weight: float) -> torch.Tensor:
    """Log-probabilities [..., V] of the normalised product p ** weight * q ** (1 - weight)."""
    if weight in (0.0, 1.0):  # where a token is impossible, 0 times its logarithm is no number
        return logp if weight == 1.0 else logq
    return log_softmax(weight * logp + (1.0 - weight) * logq)


def sampled_from(logprobs: torch.Tensor, temperature: float, top_p: float) -> torch.Tensor:
    """The log-probabilities [N, V] that are drawn from at a temperature above 0, the nucleus of top_p."""
    stack = processors({"temperature": temperature, "top_p": top_p}, logprobs.shape[-1])
    return logprobs if stack is None else log_softmax(stack(logprobs, [[]] * len(logprobs)))


def both_win(logp: torch.Tensor, logq: torch.Tensor, token: int) -> float:
    """The probability that `token` has the largest noisy score both under p [V] and under q [V] when both get
    the same Gumbel noise: 1 / sum_j max(p_j / p_i, q_j / q_i).
    """
    if max(logp[token], logq[token]) == -torch.inf or min(logp[token], logq[token]) == -torch.inf:
        return 0.0
    return float(torch.maximum(logp - logp[token], logq - logq[token]).double().exp().sum().reciprocal())


def noise_of(lane: Lane, start: int, count: int, vocabulary: int) -> torch.Tensor:
    """Standard Gumbel noise [count, V] (float64), for the positions of a round from `start` on; none at
    temperature 0.
    """
    if lane.parameters["temperature"] == 0.0:
        return torch.zeros(count, vocabulary, dtype=torch.float64)
    places = range(count)
    return torch.stack([gumbel.noise(lane.chooser, vocabulary, ("gumbel", start, place)) for place in places])


@strategy(
    name="apd",
    title="Adaptive parallel decoding",
    family="diffusion",
    papers=("accelerating-diffusion-llms-via-adaptive-parallel-decoding",),
    writes_with="diffusion",
    needs=("target", "draft"),
    parameters=(
        integer("look_ahead", 32, "Number of masks after the text in each round (M).", low=1, high=512),
        real(
            "mixture_weight",
            0.7,
            "The masked model's weight in the mixture (R): at 1 everything is accepted, lower values are "
            "stricter.",
            low=0.0,
            high=1.0,
        ),
        real("temperature", 0.2, "0 takes the most likely tokens, without noise.", low=0.0, high=100.0),
        real(
            "top_p",
            0.95,
            "Only the most likely tokens with this total probability can win.",
            low=0.01,
            high=1.0,
        ),
    ),
    badge=lambda parameters: "relaxed" if parameters["temperature"] else "deterministic",
    view="common_noise",
    parts=lambda parameters: [
        Part("region", f"the next {parameters['look_ahead']} masks", "The text grows from left to right."),
        Part(
            "verifier",
            "mixture under common noise",
            "A drafted token passes if the mixture of both models picks it under the same noise.",
        ),
    ],
)
def apd(lane: Lane) -> Iterator[None]:
    """The masked model proposes the next tokens; a small autoregressive model judges how many fit together.

    1. look_ahead masks follow the text. One forward of the masked model gives pD at each of them.
    2. Gumbel noise g is drawn once for every position and token. The draft is the winner of
       `log pD / T + g` at each position.
    3. One forward of the small model over the draft gives pA, given the drafted tokens before each
       position. The mixture is `log pT = R log pD + (1 - R) log pA`, R being mixture_weight.
    4. A drafted token is accepted if it also wins `log pT / T + g`, with the same noise. The longest accepted
       prefix is kept, and the first token in any case; the others are masks again.

    With the same noise, similar distributions often have the same winner: a token i wins both with
    probability `1 / sum_j max(p_j / p_i, q_j / q_i)`. An accepted token follows neither pD nor pT, and no
    residual is drawn, so the text has no closed-form distribution: this is not lossless.

    Where the authors' released code differs, this follows the paper: there the acceptance test is not given
    T, so at T > 0 the draft is compared with the most likely token of the mixture; and logits are divided by
    T while the noise is raised to the power T as well, which samples at T squared. Their cache of the last W
    tokens is not implemented: everything is recomputed, which is exact. top_p applies to the draft and to the
    mixture.
    """
    canvas = blank(lane)
    while lane.more:
        judged_round(lane, canvas)
        yield


def judged_round(lane: Lane, canvas: Canvas) -> None:
    """Drafts after the text, judges the draft and commits its prefix."""
    parameters, start = lane.parameters, len(lane.tree.text(lane.tip))
    count = min(parameters["look_ahead"], lane.left)
    row = [*lane.tree.text(lane.tip), *[canvas.mask] * count]
    logits = lane.run_forward(lambda scorer: scorer.denoise([row], start, start + count))[0]
    logp = log_softmax(logits).double()
    noise = noise_of(lane, start, *logp.shape)
    drawn = logp if parameters["temperature"] == 0.0 else heated(logp, parameters)
    nodes = draft(lane, logp, (drawn + noise.to(drawn.device)).argmax(-1).tolist())

    parents = [lane.tip, *nodes[:-1]]
    logq = log_softmax(lane.score(parents, "verify", role="draft")).double().to(logp.device)
    logp, drawn, noise = (rows[: len(nodes)] for rows in (logp, drawn, noise))
    mixed = mixture(logp, logq, parameters["mixture_weight"])
    mixed = mixed if parameters["temperature"] == 0.0 else heated(mixed, parameters)
    winners = (mixed + noise.to(mixed.device)).argmax(-1).tolist()

    agreed = 0
    while agreed < len(nodes) and winners[agreed] == lane.tree.tokens[nodes[agreed]]:
        agreed += 1
    canvas.iteration += 1
    tested = parents[: agreed + 1]
    lane.distribution(tested, logp[: agreed + 1])
    lane.distribution(tested, logq[: agreed + 1], view="draft")
    lane.distribution(tested, drawn[: agreed + 1], view="processed")
    lane.distribution(tested, mixed[: agreed + 1], view="combined")
    record_agreement(lane, canvas, nodes, winners, agreed, logp, drawn, mixed)
    kept = nodes[: max(1, agreed)]
    logprobs = [float(logp[i, lane.tree.tokens[n]]) for i, n in enumerate(kept)]
    lane.commit(kept, logprobs)
    lane.drop([n for n in nodes if n not in kept])


def heated(logprobs: torch.Tensor, parameters: dict) -> torch.Tensor:
    """`sampled_from` with a lane's parameters."""
    return sampled_from(logprobs, parameters["temperature"], parameters["top_p"])


def draft(lane: Lane, logp: torch.Tensor, tokens: list[int]) -> list[int]:
    """Proposes tokens [M] as a chain below the text, up to an end of text; their nodes. logp [M, V]."""
    nodes, node = [], lane.tip
    for i, token in enumerate(tokens):
        node = lane.propose(node, token, float(logp[i, token]), source="draft")
        nodes.append(node)
        if token in lane.eos:
            break
    return nodes


def record_agreement(
    lane: Lane,
    canvas: Canvas,
    nodes: list[int],
    winners: list[int],
    agreed: int,
    logp: torch.Tensor,
    drawn: torch.Tensor,
    mixed: torch.Tensor,
) -> None:
    """Records what became of the drafted nodes [n]; the first `agreed` of them are the mixture's winners."""
    parents, tokens, random = lane.tree.parents, lane.tree.tokens, lane.parameters["temperature"] > 0.0
    start, word = lane.tree.depths[nodes[0]], lane.models["target"].bytes_of
    for i, node in enumerate(nodes):
        token, position = tokens[node], start + i
        state = (
            "committed" if i < agreed else "forced" if i == 0 else "rejected" if i == agreed else "candidate"
        )
        spread = float(entropies(logp[i]))
        lane.cell(position, canvas.iteration, token, state, float(logp[i, token].exp()), entropy=spread)
        if i > agreed:
            lane.verdict(node, "never reached", reason="It follows a token that was not accepted.")
            continue
        p, q = (float(rows[i, token].exp()) for rows in (mixed, drawn))
        passes = both_win(drawn[i], mixed[i], token) / q if random else None
        winner = f"“{word(winners[i]).decode('utf-8', 'replace')}”"
        if i < agreed:
            reason = "The mixture has the same winner" + (" under the same noise." if random else ".")
            lane.verdict(node, "accepted", p=p, q=q, reason=reason, acceptance=passes)
            continue
        reason = f"The mixture's winner is {winner}, with {number(float(mixed[i, winners[i]].exp()))}."
        status = "rejected" if i else "forced"
        lane.verdict(node, status, p=p, q=q, reason=reason if i else f"{reason} {KEPT}", acceptance=passes)
        rival = lane.propose(parents[node], winners[i], float(mixed[i, winners[i]]), source=MIXTURE, slot=1)
        lane.verdict(rival, "pruned", reason="The mixture's winner is only compared with the draft.")
