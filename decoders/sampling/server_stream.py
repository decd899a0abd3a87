"""A server's own decoding, followed token by token. Needs a target that a server holds."""

import math
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from decoders.engine.served import ServedEngine, ServerProblem, Stream
from decoders.lane import Lane
from decoders.parameters import integer
from decoders.registry import strategy
from decoders.sampling.sampling_parameters import ENDS, SHAPING

SENT = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")  # sent to the server if changed
PARAMETERS = tuple(one for one in SHAPING if one.name in SENT)
TOP = integer(
    "top_logprobs",
    20,
    "How many of the most likely tokens the server names beside each token it writes.",
    low=1,
    high=100,
)
OVER = "The server ended the text."
SEVERAL = (
    "Here the server sends several tokens at once: it speculates, or is faster than the network. Each such "
    "event counts as one forward, whatever the server did."
)


def unstreamed(parameters: dict, target: Any) -> str | None:
    """Why this strategy cannot follow a target, as a message; None if it can."""
    if isinstance(target.engine, ServedEngine) and target.engine.streams:
        return None
    return (
        "The server's own decoding follows a model behind an address such as http://localhost:8000/v1#name, "
        f"which {target.name!r} is not; name one, or choose Sampling."
    )


def settings(lane: Lane) -> dict[str, float]:
    """The sampling settings of a request: temperature and seed always, the others only if changed, since not
    every server knows them.
    """
    changed = {p.name: lane.parameters[p.name] for p in PARAMETERS if lane.parameters[p.name] != p.default}
    return {"temperature": lane.parameters["temperature"], "seed": lane.trace.seed} | changed


@strategy(
    name="server_stream",
    title="The server's own decoding",
    family="sampling",
    parameters=(*PARAMETERS, TOP, *(one for one in ENDS if one.name != "token_healing")),
    follows=True,
    suits=unstreamed,
    badge=lambda parameters: "as the server decodes",
)
def server_stream(lane: Lane) -> Iterator[None]:
    """Sends one request; the server decodes by itself, and each token is shown as it arrives.

    All other strategies ask a server for log-probabilities and choose the tokens here. This one sends the
    prompt with temperature, truncation and seed once, and reads the stream of the answer: one event of the
    stream is one step.

    A server that offers only a chat gets the prompt as a user message, in its own chat template.

    1. The event names the tokens that the server has written since the last one; a server that speculates
       writes several at once.
    2. It also names the most likely tokens at each position with their log-probabilities, in vLLM those
       before temperature and truncation; all others together are one number.
    3. The random numbers with which the server draws are not sent. If the lane is stopped, or ends at a limit
       or a stop string, the connection is closed, and the server stops too.

    The measured time is the wait for an event: it includes the network and any other work of the server.
    """
    scorer, top = lane.scorers["target"], lane.parameters["top_logprobs"]
    if lane.given and not scorer.engine.client.continues:
        raise ServerProblem(
            "A chat answers a message from its beginning; branch where a model is loaded here."
        )
    stream = Stream(scorer, lane.tip, lane.left, top, settings(lane))
    single = True  # whether each event has had one token so far
    with closing(stream):
        while lane.more:
            lane.run_forward(lambda one: one.next(), scorer=stream)
            if not stream.newest:
                lane.ended_by = OVER
                return
            if single and len(stream.newest) > 1:
                lane.note(SEVERAL)
                single = False
            for token, row in stream.newest:
                if not lane.more:
                    break
                logprobs = scorer.keep(lane.tip, row)  # [V]
                lane.distribution([lane.tip], logprobs[None], whole=False)
                # None for a token that the server wrote and did not list
                own = float(logprobs[token]) if logprobs[token] > -math.inf else None
                lane.commit([lane.propose(lane.tip, token, own)], [own])
            yield
