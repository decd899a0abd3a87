"""Makes the lanes of a run from a checked request."""

import logging
from collections.abc import Callable
from typing import Any

from decoders import registry
from decoders.refusal import Refusal
from decoders.strategy import Strategy
from decoders.trace.trace import Trace
from explorer.runs.callbacks import CALLBACKS, check_tests
from explorer.runs.model_pool import Loader, share_cores
from explorer.runs.run_state import RefusedLane
from explorer.runs.validation import LaneRequest, RunRequest, is_ours, sentence

log = logging.getLogger(__name__)


def lane_maker(loader: Loader) -> Callable[[RunRequest], list]:
    """Returns a function that makes the lanes of a checked request; it waits for the models. In the place of
    a lane that cannot run is a `RefusedLane`. See `Runs`.
    """

    def make(request: RunRequest) -> list:
        chosen = loader.find(request.models)
        models = chosen.wait()
        from decoders.lane import Lane, Limits  # torch is imported by now

        share_cores(models)
        prompt = prompt_tokens(models["target"], request.prompt, request.chat)
        limits = Limits(max_new_tokens=request.max_new_tokens)

        def lane(wanted: LaneRequest) -> Lane:
            settings = (wanted.strategy, prompt, models, wanted.parameters, wanted.seed, limits)
            made = Lane(*settings, begin=wanted.begin, callbacks=CALLBACKS)
            try:
                check_tests(made.strategy, made.parameters, text_before(made))
            except Refusal:
                made.close()
                raise
            chosen.lanes.add(made)
            return made

        return [made_or_refused(lane, one, prompt, models["target"]) for one in request.lanes]

    return make


def made_or_refused(
    make: Callable[[LaneRequest], Any], wanted: LaneRequest, prompt: list[int], target
) -> Any:
    """The lane that `make` makes of these settings, or a `RefusedLane` that says why it cannot. Refusal
    with one sentence if there is no such strategy.
    """
    strategy = registry.get(wanted.strategy)
    try:
        return make(wanted)
    except Exception as error:
        if not is_ours(error):
            log.exception("A lane could not be made")
        trace = Trace(
            strategy=strategy.name,
            title=strategy.title,
            parameters=usable(strategy, wanted.parameters),
            seed=wanted.seed,
            models={"target": target.name},
            prompt=prompt,
            vocabulary={token: target.bytes_of(token) for token in prompt},
            ended=sentence(error, "This lane"),
        )
        return RefusedLane(trace)


def usable(strategy: Strategy, parameters: dict) -> dict:
    """These parameters of a strategy with its defaults for the others; the defaults alone if they are why its
    lane is refused.
    """
    try:
        return strategy.check(parameters)
    except Refusal:
        return strategy.check({})


def text_before(lane) -> str:
    """The text before a lane's first own token: the prompt and the tokens that it was given to begin with."""
    from decoders.search.stepwise.scorers import decoded

    return decoded(lane, lane.tree.path(lane.tip))


def prompt_tokens(target, prompt: str, chat: dict | None) -> list[int]:
    """Token ids of a prompt, rendered with the chat template if there is a chat. Refusal with one
    sentence.
    """
    if chat is None:
        return target.encode(prompt)
    return target.cut(target.render(prompt, chat["system"]))
