"""A lane: one strategy decoding one prompt, step by step, leaving a trace.

It gives a strategy its tree, its scorers, its chooser and the verbs that record what happens (`propose`,
`verdict`, `commit` ...), and ends it cleanly at a limit.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import torch

from decoders import beginning, stopping
from decoders.callbacks import Callbacks
from decoders.chooser import Chooser, Random
from decoders.constraints.constraint import Constraint, DeadEnd, States, masked
from decoders.engine.engine import Work
from decoders.engine.kv_cache import OutOfSlots
from decoders.engine.layers import Layers
from decoders.engine.pieces import in_pieces
from decoders.engine.served import ServerProblem
from decoders.engine.tree import Tree
from decoders.limits import AtLimit, Limits, NoNumbers
from decoders.logits.distributions import Processors, processors
from decoders.model_interface import Model
from decoders.observers import observers_of
from decoders.own_code import Places, Stack, step_of_lane
from decoders.plan import Plan, plan_of
from decoders.recorder import Recorder
from decoders.refusal import Refusal
from decoders.trace.endings import NO_NUMBERS
from decoders.trace.events import Commit, Event, Forward, Step
from decoders.trace.trace import Trace

__all__ = ["Lane", "Limits", "Model"]


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """The result of a call, and the seconds that it took."""
    began = time.perf_counter()
    return call(), time.perf_counter() - began


class Lane(Recorder):
    """`advance()` runs one step and returns it, or None once the lane has ended; `trace` holds all steps."""

    def __init__(
        self,
        strategy: str,
        prompt: list[int],
        models: Mapping[str, Model],
        parameters: dict[str, Any] | None = None,
        seed: int = 0,
        limits: Limits | None = None,
        chooser: Chooser | None = None,
        begin: dict[str, Any] | None = None,
        callbacks: Callbacks | None = None,
        logits_processor: Sequence[Callable] = (),
        prefix_allowed_tokens_fn: Callable | None = None,
    ):
        """`begin`: tokens after the prompt from which the lane starts, see given_tokens.py. `callbacks`:
        functions of the caller, see callbacks.py. The last two are those of transformers' `generate`, for use
        from Python; they are in no trace and not on the page.

        Raises Refusal with one sentence for an unusable prompt, parameter, limit, begin or missing model.
        """
        self.limits, self.callbacks = limits or Limits(), callbacks or Callbacks()
        self.chooser: Chooser = chooser or Random(seed)
        own = {"logits_processor": (*logits_processor,), "prefix_allowed_tokens_fn": prefix_allowed_tokens_fn}
        plan = plan_of(strategy, prompt, models, parameters or {}, self.limits, begin, self.callbacks, own)
        self.strategy, self.parameters, self.models = plan.strategy, plan.parameters, plan.models
        self.eos, self.stop_strings, self.shaping = plan.eos, plan.stop_strings, plan.shaping
        tree = Tree([*plan.prompt, *plan.given])  # to a strategy, the given tokens are part of the prompt
        super().__init__(tree, plan.trace(seed), plan.target.bytes_of)
        self.code, self.places = Places(self.trace.code), []
        self.given, self.budget = len(plan.given), plan.room - len(plan.given)
        self.written, self.tip = 0, tree.trunk - 1  # tip: the newest committed node
        self.constraint: States | None = None
        if plan.constraint:
            self.constrain(plan.constraint)
        self._processors = self._stacks_of(plan)
        self.observers = observers_of(self, plan.memory)
        self.ended_by: str | None = None
        self._seconds, self._since, self._undivided = 0.0, time.perf_counter(), 0
        for sentence in plan.notes():
            self.note(sentence)
        self.reading: tuple[int, int] | None = None  # nodes of a long forward under way: read so far, of all
        self.scorers: dict[str, Any] = {}
        self._have_read: set[str] = set()  # roles whose model has read the prompt
        self._attach_models()
        self._turns = self._take_turns(plan)

    def _stacks_of(self, plan: Plan) -> Callable[[int], Processors | None]:
        """A function from a vocabulary size to the processors for such logits, which are made once for each
        size; None if there are none. Raises Refusal for an unusable one now, and not in the first step.
        """
        context = plan.processor_context(lambda *asked: bool(self.chooser.bernoulli(*asked).value))

        @cache
        def stack(vocabulary: int) -> Processors | None:
            return processors(plan.shaping, vocabulary, replace(context, vocabulary=vocabulary))

        stack(context.vocabulary)
        return stack

    def _attach_models(self) -> None:
        """Gives each role its scorer and records the models' notes. Raises Refusal if there is no room."""
        try:
            for role, model in self.models.items():
                self.scorers[role] = self.attach(model)
                if model.note:
                    self.note(model.note)
        except OutOfSlots as error:
            self._release()
            raise Refusal(str(error)) from error

    def _take_turns(self, plan: Plan) -> Iterator[None]:
        """The steps before the strategy's own, see beginning.py; then these."""
        yield from beginning.steps(self, plan)
        if self.more:
            yield from self.strategy.run(self)

    def read_prompt_again(self) -> None:
        """Attaches the models anew, after the prompt has changed."""
        for role, model in self.models.items():
            self.scorers[role].close()
            self.scorers[role] = self.attach(model)
        self._have_read.clear()

    # ---- control ----------------------------------------------------------------------------------------

    @step_of_lane
    def advance(self) -> Step | None:
        """Runs the strategy to the end of its next step. Returns it, or None once the lane has ended."""
        if self.trace.ended is not None:
            return None
        self._since, ending = time.perf_counter(), None
        try:
            next(self._turns)
        except StopIteration:
            ending = self.ended_by or stopping.reason(self)
        except (OutOfSlots, AtLimit, NoNumbers, DeadEnd, ServerProblem) as error:
            ending = str(error)  # what the step has recorded so far is kept
        self._seconds += time.perf_counter() - self._since
        step = self.reading = None
        if self.events:
            places = self.places if self.records_offers else None
            step = Step(len(self.trace.steps), self.events, self._seconds, self._slots(), places)
            self.events, self.places = [], []
            self.trace.append(step)
        ending = ending or self.limits.reached(len(self.tree.tokens), self._seconds)
        if ending:  # only after the step is appended: concurrent readers take an ended trace to be complete
            self._end(ending)
        return step

    def run(self) -> Trace:
        """Runs all steps to the end."""
        while self.trace.ended is None:
            self.advance()
        return self.trace

    def close(self, why: str = "Stopped by hand.") -> None:
        """Stops the lane and frees its slots; the trace stays, with the sentence why. May be called twice."""
        if self.trace.ended is None:
            self._end(why)

    def _end(self, sentence: str) -> None:
        self.trace.ended = sentence
        self._turns.close()
        self._release()

    def _release(self) -> None:
        for holder in (*self.scorers.values(), *self.observers):
            holder.close()

    def _slots(self) -> int | None:
        """KV slots that it holds in the target's cache, also by further views; None if unknown."""
        views = [one for one in self.scorers.values() if getattr(one, "counts_as", None) == "target"]
        own = getattr(self.scorers.get("target"), "used", None)
        return None if own is None else own + sum(view.used for view in views)

    def check_limits(self) -> None:
        """Called between two pieces of a step: lets other lanes compute. Raises AtLimit, which ends the lane,
        once a limit is reached.

        Every method that records or scores calls it first; other code that computes for long should too.
        """
        if self.trace.ended is not None:
            return
        if reached := self.limits.reached(len(self.tree.tokens), self.clock()):
            raise AtLimit(reached)
        if self.callbacks.between and not self._undivided:
            self._leave(self.callbacks.between)

    breathe = check_limits  # its former name, which strategies of users may call

    def attach(self, model: Model, tree: Tree | None = None) -> Any:
        """A scorer for the lane's tree, or for another. Its forwards may join those of other lanes. Other
        lanes compute between the pieces of a long forward, and while a server computes one.
        """
        scorer = model.engine.attach(tree or self.tree)
        scorer.pause, scorer.elsewhere, scorer.between = self._pause, self.elsewhere, self._between_pieces
        return scorer

    def _between_pieces(self, read: int, of: int) -> None:
        """Called between two pieces of a long forward, such as that over a long prompt."""
        self.reading = read, of
        self.check_limits()

    def _pause(self) -> bool:
        """Lets other lanes request forwards; False if they cannot."""
        if self.callbacks.pause is None or self._undivided or self.trace.ended is not None:
            return False
        return self._leave(self.callbacks.pause)

    def _leave(self, call: Callable[[], Any]) -> Any:
        """The result of a call during which other lanes compute; its time does not count as this lane's."""
        left = time.perf_counter()
        try:
            return call()
        finally:
            self._since += time.perf_counter() - left

    def elsewhere(self, threads: Executor | None, call: Callable[[], Any]) -> Any:
        """The result of `call()`, which waits for a program or a server; other lanes compute meanwhile. Only
        the time of the call itself counts as this lane's, not its wait for one of the `threads`.
        """
        if threads is None or self.callbacks.wait is None or self._undivided or self.trace.ended is not None:
            return call()
        future = threads.submit(timed, call)
        result, seconds = self._leave(lambda: self.callbacks.wait(future))
        self._since -= seconds
        return result

    @contextmanager
    def undivided(self) -> Iterator[None]:
        """While this is open, no other lane computes: for changes to something that lanes share."""
        self._undivided += 1
        try:
            yield
        finally:
            self._undivided -= 1

    # ---- what a strategy asks ---------------------------------------------------------------------------

    @property
    def left(self) -> int:
        """Tokens that may still be written."""
        return self.budget - self.written

    @property
    def more(self) -> bool:
        """True while the text is unfinished: no end-of-text token yet and tokens left to write."""
        return self.left > 0 and not self.text_ended

    @property
    def text_ended(self) -> bool:
        """Whether the text has ended; an end-of-text token in the prompt does not count: it may open one."""
        return self.ends(self.tip) and bool(self.written or self.given)

    def ends(self, node: int) -> bool:
        """Whether a text ends here: by an end-of-text token, a stop string, or the constraint."""
        own, bytes_of = self.tree.tokens[node] in self.eos, self.models["target"].bytes_of
        own = own or (self.constraint is not None and self.constraint.over(node))
        return own or stopping.stopped(self.tree, bytes_of, self.stop_strings, node)

    def score(
        self,
        nodes: list[int],
        kind: str = "decode",
        role: str = "target",
        hidden: bool = False,
        layers: Layers | None = None,
    ) -> torch.Tensor:
        """Logits [N, V] for the token after each node, in one forward, which is recorded. layers: the part of
        the model that runs, all if None; see `engine.Scorer.score_part`.
        """
        logits, forward = self.unrecorded_score(nodes, kind, role, hidden, layers)
        self.record_forward(forward)
        return logits

    def unrecorded_score(
        self, nodes: list[int], kind: str, role: str, hidden: bool = False, layers: Layers | None = None
    ) -> tuple[torch.Tensor, Forward | None]:
        """As `score`, but returns the event instead of recording it, for forwards that run concurrently."""
        self.check_limits()
        scorer = self.scorers[role]
        start = self.clock()
        if layers is None:
            logits, work = in_pieces(scorer, nodes, hidden, self.check_limits)
        else:
            logits, work = scorer.score_part(nodes, layers), scorer.work
        self._since += work.for_others
        return logits, self._ran(role, kind, start, logits, work)

    def run_forward(
        self,
        call: Callable[[Any], torch.Tensor],
        kind: str = "decode",
        role: str = "target",
        scorer: Any = None,
    ) -> torch.Tensor:
        """The result of `call(scorer)`, with the role's scorer unless another is given; records the forward
        from the scorer's `work`.
        """
        self.check_limits()
        scorer, start = scorer or self.scorers[role], self.clock()
        made = call(scorer)
        self.record_forward(self._ran(role, kind, start, made, scorer.work))
        return made

    def through(self, nodes: list[int], layer: int, states: torch.Tensor) -> torch.Tensor:
        """States [N, d] after one layer of the target, see `engine.Scorer.through`; records the forward."""
        return self.run_forward(lambda scorer: scorer.through(nodes, layer, states), "plan")

    def _ran(self, role: str, kind: str, start: float, made: torch.Tensor, work: Work) -> Forward | None:
        """The event of the forward that made this tensor [..., V]; None if nothing had to be computed. Raises
        NoNumbers, with the event recorded, if a row has a score that is no number, or none above -inf.
        """
        if made.is_cuda:  # else the clock would be read before the GPU has finished
            torch.cuda.current_stream(made.device).synchronize()
        event = None
        if asked := work.tokens + work.shared:
            kind = "prefill" if kind == "decode" and role not in self._have_read else kind
            self._have_read.add(role)
            of = getattr(self.scorers.get(role), "counts_as", role)  # a second prompt has a name of its own
            how = (work.rows, start, self.clock() - start, work.scope, work.shared, work.share, work.lanes)
            event = Forward(of, kind, asked, *how)
        if made.numel() and not made.amax(-1).isfinite().all():  # a server may have no further row
            self.record_forward(event)
            raise self.no_numbers(role)
        return event

    def no_numbers(self, role: str) -> NoNumbers:
        """What to raise if scores of a role are no numbers: it ends the lane with a sentence."""
        heads = f"heads that draft for {self.models['target'].name!r}"
        whose = f"the {role} {self.models[role].name!r}" if role in self.models else heads
        return NoNumbers(NO_NUMBERS.format(whose))

    def record_forward(self, forward: Forward | None) -> None:
        """Records the event that `unrecorded_score` returned."""
        if forward is not None:
            self.record(forward)

    # ---- what the lane does to logits ---------------------------------------------------------------------

    def process(self, logits: torch.Tensor, nodes: list[int], record: bool = False) -> torch.Tensor:
        """Logits [N, V] after the constraint and the processors, each row with its own node's prefix. With
        `record`, the distribution after each of them but the last is recorded. Raises DeadEnd, which ends the
        lane with a message, if the constraint leaves no token in any row.
        """
        allowed = self.constrained(logits, nodes)
        if allowed is not logits and record and self._processors(logits.shape[-1]) is not None:
            self.distribution(nodes, allowed, "processed", "constraint")
        return self.shaped(allowed, nodes, record)

    def shaped(self, logits: torch.Tensor, nodes: list[int], record: bool = False) -> torch.Tensor:
        """As `process`, without the constraint: for methods that apply the constraint themselves, to the
        distribution after the processors.
        """
        stack = self._processors(logits.shape[-1])
        if stack is None:
            return logits

        def record_stage(name: str, scores: torch.Tensor) -> None:
            if scores.isfinite().any(-1).all():
                self.distribution(nodes, scores, "processed", name)

        return stack(logits, (self.tree.text(n) for n in nodes), record_stage if record else None)

    def constrain(self, constraint: Constraint) -> None:
        """From now on the text after the prompt obeys this constraint."""
        self.constraint = States(constraint, self.tree, len(self.trace.prompt), self.eos)

    def constrained(self, logits: torch.Tensor, nodes: list[int]) -> torch.Tensor:
        """Logits [N, V] with -inf for the tokens that the constraint forbids after each node. Raises DeadEnd
        if no row has a token left.
        """
        if self.constraint is None:
            return logits
        return masked(logits, self.constraint.masks_of(nodes))

    # ---- what a strategy records; see also recorder.py -----------------------------------------------------

    def unseen(self, node: int) -> float | None:
        """See `Recorder.unseen`."""
        return getattr(self.scorers["target"], "unseen", {}).get(node)

    def record(self, *events: Event, code: Stack | None = None) -> None:
        """Records events of the step that runs, and the place in the strategy's code that they come from:
        `code`, or where it stands now.
        """
        self.events += events
        if self.records_offers:
            place = self.code.here() if code is None else self.code.of(code)
            self.places += (place,) if len(events) == 1 else [place] * len(events)

    def commit(self, nodes: list[int], logprobs: list[float | None]) -> None:
        """Outputs these nodes, a path below the newest committed one; cut at the text's end or the limit."""
        for count, node in enumerate(nodes, 1):
            if self.ends(node) or count == self.left:
                nodes, logprobs = nodes[:count], logprobs[:count]
                break
        parents, tip = self.tree.parents, self.tip
        above = parents[parents[tip]] if parents[tip] >= 0 else -1  # rows down to here were dropped before
        self.tip, self.written = nodes[-1], self.written + len(nodes)
        self.record(Commit(list(nodes), list(logprobs)))
        for observer in self.observers:
            observer.committed(self, nodes)
        settled = self.tree.path(parents[self.tip], above=above)[:-1]
        for scorer in self.scorers.values():
            scorer.forget(settled)

    def drop(self, nodes: list[int]) -> None:
        """Gives up these nodes: their slots are freed."""
        self.check_limits()
        for scorer in self.scorers.values():
            scorer.release(nodes)

    def clock(self) -> float:
        """Seconds that the lane itself has computed so far."""
        return self._seconds + time.perf_counter() - self._since
