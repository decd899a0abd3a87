"""The loaded models: those that the app was started with, and those that users have chosen since.

Everything loads in the background, one set after the other, so that the page is ready before torch is. A run
keeps the models it was started with; unused sets make room for others. Imports torch and transformers only
inside its thread.
"""

import asyncio
import functools
import gc
import logging
import queue
import threading
import time
import weakref
from collections.abc import Sequence

from decoders.models.names import resolve
from decoders.refusal import Refusal
from explorer.runs.validation import Choice

log = logging.getLogger(__name__)
PATIENCE_SECONDS = 300.0
SMALL = 50_000_000  # parameters
MAX_SETS = 4  # sets of models in memory at a time
MAX_WAITING = 4  # sets that wait to be loaded
FORGET_SECONDS = 60.0  # how long the reason is kept why a set could not be loaded


class ModelSet:
    """A target and perhaps drafts. `state` is loading, ready or failed; `sentence` describes it to users."""

    def __init__(self, choice: Choice):
        self.choice = choice
        self.models: dict = {}  # LoadedModel by role
        self.state = "loading"
        self.sentence = f"Loading {' and '.join(choice.names.values())} …"
        self.share: float | None = None  # progress of the current stage, from 0 to 1
        self.done = threading.Event()
        self.cancelled = False
        self.used = time.monotonic()
        self.lanes: weakref.WeakSet = weakref.WeakSet()

    @property
    def names(self) -> dict[str, str]:
        """Model name by role."""
        return self.choice.names

    def busy(self) -> bool:
        """Whether a lane is still decoding with these models."""
        return any(lane.trace.ended is None for lane in list(self.lanes))

    def report(self, words: str, done: int, total: int) -> None:
        """Receives the progress of loading, see `decoders.models.hub.Progress`. InterruptedError once
        cancelled.
        """
        if self.cancelled:
            raise InterruptedError
        mega = total >= 1_000_000
        count = f"{done / 1e6:,.0f} of {total / 1e6:,.0f} MB" if mega else f"{done:,} of {total:,} weights"
        self.share = done / total if total else None
        self.sentence = f"{words}: {count} …"

    def settle(self, state: str, sentence: str) -> None:
        """Marks the end of loading: ready or failed."""
        self.share = None
        self.state, self.sentence = state, sentence
        self.done.set()

    def wait(self) -> dict:
        """Waits for the models and returns them by role. Refusal with one sentence if they could not be
        loaded.
        """
        if not self.done.wait(PATIENCE_SECONDS):
            raise Refusal("The models are still loading; press Run again in a minute.")
        if self.state == "failed":
            raise Refusal(self.sentence)
        return self.models


class Loader(ModelSet):
    """The set that the app was started with, and further sets by choice.

    allowed: the names that users may choose; None for any folder and any Hub id. heads: folders of trained
    heads for the models that the app was started with. capture: whether forwards on a GPU become CUDA graphs.
    """

    def __init__(
        self,
        target: str,
        draft: str | None,
        device: str = "auto",
        allowed: frozenset[str] | None = None,
        heads: Sequence[str] = (),
        capture: bool = False,
    ):
        super().__init__(Choice(target, draft, "auto", device))
        self.heads, self.capture = heads, capture
        self.allowed = None if allowed is None else allowed | frozenset(self.names.values())
        self.sets: dict[Choice, ModelSet] = {self.choice: self}
        self.queue: queue.Queue[ModelSet] = queue.Queue()
        self.lock = threading.Lock()
        self.thread: threading.Thread | None = None

    def start(self) -> None:
        """Starts to load the models that the app was started with, on a separate thread."""
        self._enqueue(self)

    def load(self) -> None:
        """Loads the models that the app was started with, on this thread; never raises."""
        self._fill(self)

    def find(self, choice: Choice | None) -> ModelSet:
        """The set of `choice` (None: the app's own), loading or loaded. Refusal if it was unloaded."""
        models = self if choice is None else self.sets.get(choice)
        if models is None:
            raise Refusal(
                f"{words(choice)} were unloaded to make room for other models; press Run to load them again."
            )
        models.used = time.monotonic()
        return models

    def open(self, choice: Choice | None) -> ModelSet:
        """The set of `choice`, which starts to load if necessary. Refusal with one sentence if it is not
        allowed.
        """
        with self.lock:
            models = self if choice is None else self.sets.get(choice)
            if models is None or (models.state == "failed" and models is not self):
                self.check(choice)
                self._forget()
                if sum(s.state == "loading" for s in self._all()) >= MAX_WAITING:
                    raise Refusal("Other models are still loading; try again in a minute.")
                models = self.sets[choice] = ModelSet(choice)
                self._enqueue(models)
        models.used = time.monotonic()
        return models

    async def settled(self, choice: Choice | None) -> ModelSet:
        """The set of `choice`, once it is ready. Refusal with one sentence if it could not be loaded."""
        models = self.open(choice)
        until = time.monotonic() + PATIENCE_SECONDS
        while not models.done.is_set() and time.monotonic() < until:
            await asyncio.sleep(0.05)
        models.wait()
        return models

    def cancel(self, choice: Choice) -> None:
        """Stops loading a set as soon as possible. The models that the app was started with are never
        stopped.
        """
        models = self.sets.get(choice)
        if models is not None and models is not self and models.state == "loading":
            models.cancelled = True

    def check(self, choice: Choice) -> None:
        """Refusal with one sentence if there is no such model or the operator does not allow it."""
        for name in choice.names.values():
            if self.allowed is not None and name not in self.allowed:
                raise Refusal(
                    f"This app offers {', '.join(sorted(self.allowed))}; its operator can allow {name!r} "
                    "with --models."
                )
            resolve(name)

    def need(self, choice: Choice) -> dict:
        """How much memory `choice` would need, see `memory_verdict`. Refusal with one sentence."""
        self.check(choice)
        return memory_verdict(choice, footprints(choice), self._here(choice), self._idle_bytes(choice))

    # ---- on the loading thread ------------------------------------------------------------------

    def _enqueue(self, waiting: ModelSet) -> None:
        self.queue.put(waiting)
        if self.thread is None:
            self.thread = threading.Thread(target=self._work, name="loading", daemon=True)
            self.thread.start()

    def _work(self) -> None:
        while True:
            self._fill(self.queue.get())

    def _forget(self) -> None:
        """Drops sets that failed to load a while ago."""
        for failed in [s for s in self._all() if s.state == "failed" and s is not self]:
            if time.monotonic() - failed.used > FORGET_SECONDS:
                del self.sets[failed.choice]

    def _fill(self, wanted: ModelSet) -> None:
        """Loads one set; never raises."""
        began = time.monotonic()
        try:
            from decoders.models.loaded_model import LoadedModel
            from decoders.models.loading import load
            from decoders.models.model_heads import add_heads
            from decoders.models.named_heads import without_heads
            from decoders.registry import strategies

            strategies()
            choice, models = wanted.choice, self._here(wanted.choice)
            names, heads = without_heads(choice.names)
            missing = {role: name for role, name in names.items() if role not in models}
            if missing and wanted is not self:
                self._make_room(choice)
            for role, name in missing.items():
                models[role] = load(name, choice.device, choice.dtype, wanted.report)
                models[role].facts()  # tries out its engine
                if self.capture:
                    models[role].capture()
            if heads and "target" not in missing:  # other sets keep the target without these heads
                known = models["target"]
                models["target"] = LoadedModel(known.name, known.model, known.tokenizer)
            add_heads(models, [*heads, *(self.heads if wanted is self else ())])
            wanted.models = {role: models[role] for role in names}
            took = f"in {time.monotonic() - began:.1f} s" if missing else "already"
            wanted.settle("ready", f"Models loaded {took}.{of_tokens(wanted.models)}")
        except InterruptedError:
            wanted.settle("failed", "Loading was cancelled; the models in use stay.")
        except Refusal as error:
            wanted.settle("failed", str(error))
        except MemoryError:
            wanted.settle("failed", "There is not enough memory for these models; choose a smaller dtype.")
        except Exception as error:
            log.exception("The models could not be loaded")
            kind = type(error).__name__
            wanted.settle("failed", f"The models could not be loaded ({kind}); the log of the app says why.")

    def _here(self, choice: Choice) -> dict:
        """The models of `choice` that are loaded already, by role."""
        sizes = {}
        for role, name in choice.names.items():
            for other in self._all():
                same = (other.choice.dtype, other.choice.device) == (choice.dtype, choice.device)
                own = role == "target" and other is not self and other.choice.draft != choice.draft
                if own and role in other.models and other.models[role].own_heads:
                    continue  # the target of another set, with draft heads of that set
                if same and other.names.get(role) == name and role in other.models:
                    sizes[role] = other.models[role]
        return sizes

    def _all(self) -> list[ModelSet]:
        return list(self.sets.values())

    def _idle(self, choice: Choice) -> list[ModelSet]:
        """Sets that can be unloaded to make room, longest unused first."""
        ready = [s for s in self._all() if s.state == "ready" and s is not self and s.choice != choice]
        return sorted((s for s in ready if not s.busy()), key=lambda s: s.used)

    def _idle_bytes(self, choice: Choice) -> int:
        """Bytes that only idle sets use; models that `choice` itself would use again are not counted."""
        idle = self._idle(choice)
        kept = {id(m) for s in self._all() if s not in idle for m in s.models.values()}
        kept |= {id(m) for m in self._here(choice).values()}
        return sum({id(m): m.bytes for s in idle for m in s.models.values() if id(m) not in kept}.values())

    def _make_room(self, choice: Choice) -> None:
        """Unloads idle sets until there is space for one more. Refusal with one sentence if there is not
        enough.
        """
        parts = footprints(choice)
        while True:
            needed = memory_verdict(choice, parts, self._here(choice), 0)
            ready = [s for s in self._all() if s.state == "ready"]
            if len(ready) < MAX_SETS and needed["fits"]:
                return
            idle = self._idle(choice)
            if not idle and len(ready) >= MAX_SETS:
                raise Refusal(
                    f"{MAX_SETS} sets of models are in use already; wait until a run has ended, or choose "
                    f"one of them: {'; '.join(words(s.choice) for s in ready)}."
                )
            if not idle:
                raise Refusal(needed["sentence"])
            with self.lock:
                self.sets.pop(idle[0].choice, None)
            del idle, ready
            release()


def footprints(choice: Choice) -> dict:
    """The memory that each model of `choice` will need, from headers and configs alone; loads no weights."""
    from decoders.models.memory_estimate import footprint

    return {role: footprint(name, choice.dtype, choice.device) for role, name in choice.names.items()}


def memory_verdict(choice: Choice, parts: dict, here: dict, idle: int) -> dict:
    """Whether these footprints fit into memory: `{fits, sentence, parts, bytes}`.

    here: the models that are loaded already; idle: bytes that unloading idle models would free.
    """
    from decoders.engine.kv_cache import free_bytes
    from decoders.models.memory_estimate import RESERVE, TOKENS, bytes_of, pick_device

    device = pick_device(choice.device)
    needed = sum(part.total for role, part in parts.items() if role not in here)
    free = free_bytes(device)
    where = "graphics memory" if device == "cuda" else "memory"
    total = f"Together {bytes_of(needed)} with {TOKENS:,} tokens of KV cache"
    if all(role in here for role in parts):
        fits, sentence = True, "Loaded already."
    elif free is None:
        fits, sentence = True, f"{total}; this system does not report how much {where} is free."
    else:
        fits = needed <= (free + idle) * (1 - RESERVE)
        sentence = f"{total}, out of {bytes_of(free + idle)} of free {where}."
        if not fits:
            sentence += " That does not fit: choose a smaller dtype, a smaller model or another device."
    sentences = [part.sentence() for part in parts.values()]
    return {"fits": fits, "sentence": sentence, "parts": sentences, "bytes": needed}


def release() -> None:
    """Frees the memory of dropped models."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def of_tokens(models: dict) -> str:
    """A sentence to append about loaded models: which drafts have another tokenizer than the target."""
    key = models["target"].token_key
    other = [role for role in models if models[role].token_key != key]
    if not other:
        return ""
    return f" The {' and the '.join(other)} has another tokenizer than the target: choose Universal drafting."


def share_cores(models: dict) -> None:
    """Uses one thread for small models: a second one gains nothing, and the browser often needs the other
    core.
    """
    import torch

    every = all_threads()
    small = max(model.facts().get("parameters", 0) for model in models.values()) < SMALL
    torch.set_num_threads(1 if small else every)


@functools.cache
def all_threads() -> int:
    """How many threads torch would use by itself."""
    import torch

    return torch.get_num_threads()


def words(choice: Choice) -> str:
    """`llama-tiny with llama-tiny-draft`, followed by dtype and device if they were chosen."""
    names = " with ".join(choice.names.values())
    extra = [x for x in (choice.dtype, choice.device) if x != "auto"]
    return names + (f" ({', '.join(extra)})" if extra else "")
