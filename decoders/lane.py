"""A lane: one strategy decoding one prompt, step by step, leaving a trace.

It gives a strategy its tree, its scorers, its chooser and the verbs that record what happens (`propose`,
`verdict`, `commit` ...), and ends it cleanly at a limit. It knows no strategy and no picture.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

import torch

from decoders import model_defaults, registry, stopping, suitability, token_healing
from decoders.attention_sources import attention_sources
from decoders.callbacks import Callbacks
from decoders.chooser import Chooser, Random
from decoders.constraints.bias import BiasRecord
from decoders.constraints.constraint import FORBIDDEN, DeadEnd, States
from decoders.constraints.kinds import constraint_of
from decoders.constraints.places.place import record_of
from decoders.engine.capabilities import RECORDED, Capability
from decoders.engine.engine import Work
from decoders.engine.kv_cache import OutOfSlots
from decoders.engine.layers import Layers
from decoders.engine.pieces import in_pieces
from decoders.engine.served import ServerProblem
from decoders.engine.tree import Tree
from decoders.limits import AtLimit, Limits
from decoders.logits.watermark import Detector
from decoders.memory.lane_memory import drafts_stay_exact, memory_of
from decoders.model_interface import Model
from decoders.processing import Processing
from decoders.refusal import Refusal
from decoders.trace import given_tokens
from decoders.trace.events import Commit, Event, Forward, Step
from decoders.trace.trace import Trace

__all__ = ["Lane", "Limits", "Model"]


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """The result of a call, and the seconds that it took."""
    began = time.perf_counter()
    return call(), time.perf_counter() - began


class Lane(Processing):
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
        from Python: traces and the page do not hold them.

        Raises Refusal with one sentence for an unusable prompt, parameter, limit, begin or missing model.
        """
        self.strategy = registry.get(strategy)
        self.parameters = self.strategy.check(parameters or {})
        self.limits = limits or Limits()
        self.chooser: Chooser = chooser or Random(seed)
        self.callbacks, parts = callbacks or Callbacks(), self.strategy.parts(self.parameters)
        unsuitable = suitability.problem(self.strategy, self.parameters, models)
        if problem := unsuitable or self.callbacks.lacks(parts):
            raise Refusal(problem)
        roles = (*self.strategy.needs, *self.strategy.may_use)
        models = suitability.taken(self.strategy, self.parameters, models)
        self.models = {role: models[role] for role in roles if role in models} | {"target": models["target"]}
        self.memory, target = memory_of(self.parameters, self.models), self.models["target"]
        if self.limits.max_new_tokens < 1:
            raise Refusal(f"max_new_tokens must be at least 1, not {self.limits.max_new_tokens}.")
        prompt, allowed = token_healing.cut(self.parameters, target, prompt)
        context = self._context_for(prompt)
        self.eos = stopping.eos_of(self.parameters, target)
        self.stop_strings = stopping.stop_strings_of(self.parameters)
        room = min(self.limits.max_new_tokens, context - len(prompt))
        room = stopping.room_of(self.parameters, len(prompt), room)
        vocabulary = target.engine.vocabulary
        given, forced = (
            given_tokens.check_given_tokens(begin, self.eos, room, vocabulary) if begin else ([], [])
        )
        self.tree = Tree([*prompt, *given])  # to a strategy, the given tokens are part of the prompt
        self.budget, self.given = room - len(given), len(given)
        self.trace = Trace(
            strategy=self.strategy.name,
            title=self.strategy.title,
            parameters=self.parameters,
            seed=seed,
            models={role: m.name for role, m in self.models.items()},
            prompt=list(prompt),
            badge=model_defaults.badge(self.strategy, self.parameters, target.generation),
            model_defaults=model_defaults.used(self.parameters, target.generation),
            lacks=[c.value for c in RECORDED if not target.engine.gives(c)],
        )
        self._meet(self.tree.tokens)
        constraint = constraint_of(self.parameters, target, self.eos, b"".join(map(target.bytes_of, prompt)))
        self.constraint = States(constraint, self.tree, len(prompt), self.eos) if constraint else None
        self.places = record_of(self.parameters, self.tree, len(prompt), target, self.eos)
        self.written, self.tip, self.bias = 0, self.tree.trunk - 1, BiasRecord(self)  # tip: newest committed
        if self.constraint is not None and self.constraint.at(self.tip) is FORBIDDEN:
            raise Refusal(
                "The constraint forbids the tokens with which this lane begins; change one of them."
            )
        self.ended_by: str | None = None
        self._events: list[Event] = []
        self._seconds, self._since, self._undivided = 0.0, time.perf_counter(), 0
        self._processors: dict[int, Any] = {}
        own = {"logits_processor": (*logits_processor,), "prefix_allowed_tokens_fn": prefix_allowed_tokens_fn}
        self.shaping = model_defaults.shaping(self.parameters, self.trace.model_defaults) | own
        if any(own.values()) and "model_defaults" not in self.parameters:
            raise Refusal(f"{self.strategy.title} takes no processors; use one that does, such as greedy.")
        exact = drafts_stay_exact(self.parameters, self.strategy.badge(self.parameters))
        defaults = model_defaults.sentences(self.parameters, target.generation)
        for sentence in filter(None, (*defaults, *(constraint.notes if constraint else ()), exact)):
            self.note(sentence)
        self._detector = Detector(self.shaping, vocabulary)
        self._stack(vocabulary)  # refuses an unusable processor now and not in the first step
        self.scorers: dict[str, Any] = {}
        self._have_read: set[str] = set()  # roles whose model has read the prompt
        self._attach_models()
        self._turns = self._take_turns(given, forced, allowed)

    def _context_for(self, prompt: list[int]) -> int:
        """The tokens that all models can read. Raises Refusal if the prompt leaves no room for one more."""
        context = min(model.context for model in self.models.values())
        if len(prompt) >= context:
            raise Refusal(
                f"The prompt has {len(prompt):,} tokens, but the model reads at most {context:,}, and "
                f"one more must fit; shorten the prompt by {len(prompt) - context + 1:,} tokens."
            )
        return context

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

    def _take_turns(self, given: list[int], forced: list[int], allowed: list[int]) -> Iterator[None]:
        """The strategy's own steps, after one that records the tokens with which the lane begins."""
        if given:
            prompt, places = len(self.trace.prompt), forced[: given_tokens.MAX_RATED]
            self._events += given_tokens.proposals(given, forced, prompt)
            causal = self.models["target"].model_kind == "causal"  # a canvas has no next token
            ratings = self._rate(given, places) if places and causal else {}
            self._events += given_tokens.decisions(given, forced, prompt, ratings)
            yield
        elif allowed:
            self._heal(allowed)
            yield
        if self.more:
            yield from self.strategy.run(self)

    def _rate(self, given: list[int], places: list[int]) -> dict[int, given_tokens.Rating]:
        """How the target rates the given tokens at these places; records its distributions there. It runs as
        one lens forward with a separate scorer, so that the costs of the lane itself stay the same.
        """
        nodes = [len(self.trace.prompt) + place - 1 for place in places]
        scorer, start = self.models["target"].engine.attach(self.tree), self._clock()
        scorer.taps = Capability.HIDDEN_STATES in self.strategy.reads(self.parameters).get("target", ())
        try:  # with the tip, since the strategy asks for its row first
            logits = scorer.score([*nodes, self.tip])[:-1]  # [N, V]
        finally:
            scorer.close()
        work, seconds = scorer.work, self._clock() - start
        counts = {"tokens": work.tokens + work.shared, "rows": work.rows, "shared": work.shared}
        self._events.append(Forward("target", "lens", start=start, seconds=seconds, **counts))
        raw = processed_logprobs = self.distribution(nodes, logits)
        if any(part.kind == "processors" for part in self.strategy.parts(self.parameters)):
            processed = self.process(logits, nodes, record=True)
            if processed is not logits and processed.isfinite().any(-1).all():
                processed_logprobs = self.distribution(nodes, processed, "processed")
        return given_tokens.ratings(raw, processed_logprobs, given, places)

    def _heal(self, allowed: list[int]) -> None:
        """Writes the most likely of `allowed`: the tokens that begin with the text of the first, which the
        prompt gave up. To the strategy it is part of the prompt, which its models read again.
        """
        target, tree, node = self.models["target"], self.tree, self.tip
        logits = self.score([node])  # [1, V]
        logprobs = self.distribution([node], logits)
        scores = token_healing.kept(logits, allowed)
        self.distribution([node], scores, "processed", token_healing.LEVEL)
        token = int(scores[0].argmax())
        self.note(token_healing.healing_note(target, allowed[0], token))
        self.tip = self.propose(node, token, float(logprobs[0, token]))
        self._events.append(Commit([self.tip], [float(logprobs[0, token])]))
        tree.trunk, self.given, self.budget = tree.trunk + 1, 1, self.budget - 1
        for role, model in self.models.items():
            self.scorers[role].close()
            self.scorers[role] = self.attach(model)
        self._have_read.clear()

    # ---- control ----------------------------------------------------------------------------------------

    def advance(self) -> Step | None:
        """Runs the strategy to the end of its next step. Returns it, or None once the lane has ended."""
        if self.trace.ended is not None:
            return None
        self._since, ending = time.perf_counter(), None
        try:
            next(self._turns)
        except StopIteration:
            ending = self.ended_by or stopping.reason(self)
        except (OutOfSlots, AtLimit, DeadEnd, ServerProblem) as error:
            ending = str(error)  # what the step has recorded so far is kept
        self._seconds += time.perf_counter() - self._since
        step = None
        if self._events:
            step, self._events = Step(len(self.trace.steps), self._events, self._seconds, self._slots()), []
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

    def close(self) -> None:
        """Stops the lane and frees its slots; the trace stays. May be called twice."""
        if self.trace.ended is None:
            self._end("Stopped by hand.")

    def _end(self, sentence: str) -> None:
        self.trace.ended = sentence
        self._turns.close()
        self._release()

    def _release(self) -> None:
        for scorer in filter(None, (*self.scorers.values(), self.memory, self.bias)):
            scorer.close()

    def _slots(self) -> int | None:
        """KV slots that it holds in the target's cache, also by further views; None if unknown."""
        views = [one for one in self.scorers.values() if getattr(one, "counts_as", None) == "target"]
        own = getattr(self.scorers.get("target"), "used", None)
        return None if own is None else own + sum(view.used for view in views)

    def breathe(self) -> None:
        """Called between two pieces of a step: lets other lanes compute. Raises AtLimit, which ends the lane,
        once a limit is reached.

        Every method that records or scores calls it first; other code that computes for long should too.
        """
        if self.trace.ended is not None:
            return
        if reached := self.limits.reached(len(self.tree.tokens), self._clock()):
            raise AtLimit(reached)
        if self.callbacks.between and not self._undivided:
            self._leave(self.callbacks.between)

    def attach(self, model: Model, tree: Tree | None = None) -> Any:
        """A scorer for the lane's tree, or for another. Its forwards may join those of other lanes; while a
        server computes one, others compute.
        """
        scorer = model.engine.attach(tree or self.tree)
        scorer.pause, scorer.elsewhere = self._pause, self.elsewhere
        return scorer

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
        what the call itself takes counts as this lane's time, not what it waits for one of the `threads`.
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
        self.breathe()
        scorer = self.scorers[role]
        start = self._clock()
        if layers is None:
            logits, work = in_pieces(scorer, nodes, hidden, self.breathe)
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
        self.breathe()
        scorer, start = scorer or self.scorers[role], self._clock()
        made = call(scorer)
        self.record_forward(self._ran(role, kind, start, made, scorer.work))
        return made

    def through(self, nodes: list[int], layer: int, states: torch.Tensor) -> torch.Tensor:
        """States [N, d] after one layer of the target, see `engine.Scorer.through`; records the forward."""
        return self.run_forward(lambda scorer: scorer.through(nodes, layer, states), "plan")

    def _ran(self, role: str, kind: str, start: float, made: torch.Tensor, work: Work) -> Forward | None:
        """The event of the forward that made this tensor; None if nothing had to be computed."""
        if made.is_cuda:  # else the clock would be read before the GPU has finished
            torch.cuda.current_stream(made.device).synchronize()
        if not (asked := work.tokens + work.shared):
            return None
        kind = "prefill" if kind == "decode" and role not in self._have_read else kind
        self._have_read.add(role)
        role = getattr(self.scorers.get(role), "counts_as", role)  # a second prompt has a name of its own
        how = (work.rows, start, self._clock() - start, work.scope, work.shared, work.share, work.lanes)
        return Forward(role, kind, asked, *how)

    def record_forward(self, forward: Forward | None) -> None:
        """Records the event that `unrecorded_score` returned."""
        if forward is not None:
            self._events.append(forward)

    # ---- what a strategy records; see also recorder.py -----------------------------------------------------

    def unseen(self, node: int) -> float | None:
        """See `Recorder.unseen`."""
        return getattr(self.scorers["target"], "unseen", {}).get(node)

    def commit(self, nodes: list[int], logprobs: list[float | None]) -> None:
        """Outputs these nodes, a path below the newest committed one; cut at the text's end or the limit."""
        whole = False
        for count, node in enumerate(nodes, 1):
            if whole := self.ends(node) or count == self.left:
                nodes, logprobs = nodes[:count], logprobs[:count]
                break
        self._events.append(Commit(list(nodes), list(logprobs)))
        self._events += attention_sources(self.tree, self.scorers["target"], nodes)
        self._events += self._detector.marks(self.tree, nodes, whole)
        self._events += self.places.events(nodes) if self.places else []
        self._events += self.memory.commit(self, nodes) if self.memory else []
        parents, tip = self.tree.parents, self.tip
        above = parents[parents[tip]] if parents[tip] >= 0 else -1  # rows down to here were dropped before
        settled = self.tree.path(parents[nodes[-1]], above=above)[:-1]
        for scorer in self.scorers.values():
            scorer.forget(settled)
        self.tip, self.written = nodes[-1], self.written + len(nodes)
        self.bias.commit(nodes)

    def drop(self, nodes: list[int]) -> None:
        """Gives up these nodes: their slots are freed."""
        self.breathe()
        for scorer in self.scorers.values():
            scorer.release(nodes)

    def _clock(self) -> float:
        """Seconds that the lane itself has computed so far."""
        return self._seconds + time.perf_counter() - self._since
