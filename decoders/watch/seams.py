"""The methods of transformers 5.17 to 5.24 at which `generate` is recorded: those of one model, its forwards,
and the lists that it makes of processors and stopping criteria.

What a method is given and returns is passed on unchanged, except that recorders stand between the processors.
The library itself is not changed, so other models and threads are not affected.
"""

import functools
import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import torch
import transformers
from transformers.generation import LogitsProcessor, LogitsProcessorList, StoppingCriteriaList

from decoders.refusal import Refusal

if TYPE_CHECKING:
    from decoders.watch.call import Call

SEAMS = (
    "_get_logits_processor",
    "_get_stopping_criteria",
    "_get_candidate_generator",
    "_get_running_beams_for_next_iteration",
    "_update_finished_beams",
    "_beam_search_has_unfinished_sequences",
)
ABSENT = object()


def check_seams(model: Any) -> None:
    """Raises Refusal with one sentence if this version's `generate` is made of other parts."""
    missing = [name for name in SEAMS if not hasattr(model, name)]
    if missing:
        raise Refusal(
            f"watch knows generate of transformers 5.17 to 5.24; version {transformers.__version__} has no "
            f"{', '.join(missing)}."
        )


def arguments(function: Callable, args: tuple, kwargs: dict) -> dict[str, Any]:
    """A call's arguments by name, further keywords included; only the keywords if the arguments do not fit
    the function, which then says so itself.
    """
    try:
        bound = inspect.signature(function).bind(*args, **kwargs).arguments
    except TypeError:
        return dict(kwargs)
    return {**bound, **bound.pop("kwargs", {})}


@contextmanager
def replaced(model: Any, name: str, make: Callable[[Callable], Callable]) -> Iterator[None]:
    """While this is open, the method `name` of this model alone is `make(the method)`."""
    before = model.__dict__.get(name, ABSENT)
    original = getattr(model, name)
    model.__dict__[name] = functools.wraps(original)(make(original))
    try:
        yield
    finally:
        del model.__dict__[name]
        if before is not ABSENT:
            model.__dict__[name] = before


@contextmanager
def installed(model: Any, own_call: Callable[[], "Call | None"]) -> Iterator[None]:
    """While this is open, the call that `own_call` gives hears what happens in the methods named in SEAMS."""
    listeners = {
        "_get_logits_processor": _with_listeners,
        "_get_stopping_criteria": _heard_criteria,
        "_get_candidate_generator": _heard_candidates,
        "_get_running_beams_for_next_iteration": _reports("beams_kept"),
        "_update_finished_beams": _reports("beams_finished"),
        "_beam_search_has_unfinished_sequences": _reports("beams_step"),
    }

    def made(listener: Callable) -> Callable[[Callable], Callable]:
        def make(original: Callable) -> Callable:
            def method(*args: Any, **kwargs: Any) -> Any:
                call = own_call()
                if call is None:
                    return original(*args, **kwargs)
                return listener(call, original, args, kwargs)

            return method

        return make

    with ExitStack() as stack:
        for name in SEAMS:
            stack.enter_context(replaced(model, name, made(listeners[name])))
        yield


def _reports(event: str) -> Callable:
    """A listener that notifies a call of what a method was given and returned."""

    def listener(call: "Call", original: Callable, args: tuple, kwargs: dict) -> Any:
        given = arguments(original, args, kwargs)
        result = original(*args, **kwargs)
        call.notify(event, given, result)
        return result

    return listener


# ---- processors --------------------------------------------------------------------------------------


class Listener(LogitsProcessor):
    """Stands between two processors, reports what arrives, and passes it on."""

    def __init__(self, hear: Callable[[torch.Tensor], None]):
        self.hear = hear

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        self.hear(scores)
        return scores


def _with_listeners(call: "Call", original: Callable, args: tuple, kwargs: dict) -> LogitsProcessorList:
    """The list of processors with a listener in front and one after each."""
    own: LogitsProcessorList = original(*args, **kwargs)
    given = arguments(original, args, kwargs)
    call.notify("begun", given, own)
    if call.problem:
        return own
    heard = LogitsProcessorList([Listener(functools.partial(call.scores, -1))])
    for number, processor in enumerate(own):
        heard += [processor, Listener(functools.partial(call.scores, number))]
    return heard


# ---- stopping criteria -------------------------------------------------------------------------------


class HeardCriteria(StoppingCriteriaList):
    """A list of stopping criteria that reports what it is asked and what it answers."""

    def __init__(self, criteria: StoppingCriteriaList, call: "Call"):
        super().__init__(criteria)
        self.call = call

    def __call__(self, input_ids: torch.LongTensor, scores: Any, **kwargs: Any) -> torch.BoolTensor:
        done = super().__call__(input_ids, scores, **kwargs)
        self.call.notify("chosen", {"input_ids": input_ids}, done)
        return done


def _heard_criteria(call: "Call", original: Callable, args: tuple, kwargs: dict) -> StoppingCriteriaList:
    own = original(*args, **kwargs)
    return own if call.problem else HeardCriteria(own, call)


# ---- candidates of assisted generation ---------------------------------------------------------------


def _heard_candidates(call: "Call", original: Callable, args: tuple, kwargs: dict) -> Any:
    """The candidate generator, which gets the processors without listeners: it runs them on drafts of its
    own.
    """
    bound = inspect.signature(original).bind(*args, **kwargs)
    bound.arguments["logits_processor"] = LogitsProcessorList(
        p for p in bound.arguments["logits_processor"] if not isinstance(p, Listener)
    )
    generator = original(*bound.args, **bound.kwargs)
    propose, update = generator.get_candidates, generator.update_candidate_strategy

    def get_candidates(input_ids: torch.LongTensor, *args: Any, **kwargs: Any) -> Any:
        call.drafting = True
        try:
            result = propose(input_ids, *args, **kwargs)
        finally:
            call.drafting = False
        call.notify("drafted", {"input_ids": input_ids, "generator": generator}, result)
        return result

    def update_candidate_strategy(input_ids: torch.LongTensor, *args: Any, **kwargs: Any) -> Any:
        call.notify("verified", {"input_ids": input_ids}, None)
        return update(input_ids, *args, **kwargs)

    generator.get_candidates, generator.update_candidate_strategy = get_candidates, update_candidate_strategy
    return generator


# ---- forwards ----------------------------------------------------------------------------------------


@contextmanager
def forwards(call: "Call", target: Any, assistant: Any) -> Iterator[None]:
    """While this is open, a call hears of the forwards of its models that this thread makes."""
    models = {"target": target} if assistant in (None, target) else {"target": target, "draft": assistant}
    thread = threading.get_ident()
    with ExitStack() as stack:
        for role, model in models.items():

            def before(module: Any, args: tuple, kwargs: dict) -> None:
                if threading.get_ident() == thread:
                    call.forward_begins()

            def after(module: Any, args: tuple, kwargs: dict, output: Any, role: str = role) -> None:
                if threading.get_ident() == thread:
                    call.forward_ends(role, arguments(module.forward, args, kwargs))

            for handle in (
                model.register_forward_pre_hook(before, with_kwargs=True),
                model.register_forward_hook(after, with_kwargs=True),
            ):
                stack.callback(handle.remove)
        yield
