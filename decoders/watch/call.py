"""One call of `generate` in progress: finds its mode and passes events to that mode's recorder.

An error in here ends the recording, never the call.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
import transformers

from decoders.engine.layers import Layers
from decoders.trace.events import Forward
from decoders.trace.trace import Trace
from decoders.watch import header
from decoders.watch.beams import BeamSearch
from decoders.watch.clock import Clock
from decoders.watch.drafts import Assisted
from decoders.watch.mode import Mode, Rows
from decoders.watch.next_tokens import NextTokens

MODES = {
    "greedy_search": ("greedy", NextTokens),
    "sample": ("sample", NextTokens),
    "beam_search": ("beam", BeamSearch),
    "beam_sample": ("beam", BeamSearch),
    "assisted_generation": ("speculative", Assisted),
}


class Call:
    """What is known of the call: its arguments, its mode once transformers has chosen one, and the scores of
    the step under way.
    """

    def __init__(self, model: Any, name: str, bytes_of: Callable[[int], bytes], given: dict[str, Any]):
        """given: the arguments of `generate`, by name."""
        self.model, self.name, self.bytes_of, self.given = model, name, bytes_of, given
        self.clock = Clock()
        self.mode: Mode | None = None
        self.traces: list[Trace] = []
        self.problem: str | None = None  # why nothing, or no more, is recorded
        self.drafting = False  # while a candidate generator runs
        self._began: list[float] = []  # forwards under way
        self._before: list[tuple[Forward, int]] = []  # forwards before the mode was known
        self._rows: Rows | None = None
        self._stages: list[str] = []
        self._layers = model.config.get_text_config().num_hidden_layers
        config = given.get("generation_config")
        if given.get("custom_generate") is not None:
            self.problem = unknown("custom_generate")
        elif "paged" in (given.get("cache_implementation"), getattr(config, "cache_implementation", None)):
            self.problem = unknown("continuous batching")

    def notify(self, event: str, given: dict[str, Any], result: Any) -> None:
        """Something happened in a method of the model; see seams.py and the methods of `Mode`."""
        if event == "begun":
            self._safely(self._begin, given, result)
        elif self.mode is not None:
            self._safely(getattr(self.mode, event), given, result)

    def _safely(self, function: Callable, *args: Any) -> None:
        if self.problem:
            return
        with self.clock.stopped():
            try:
                function(*args)
            except Exception as error:  # the call must not fail for being watched
                self.problem = f"watch could not follow this call ({type(error).__name__}: {error})."
                if self.mode is not None:
                    self.mode.end(self.problem)

    def _begin(self, given: dict[str, Any], processors: list) -> None:
        """transformers has settled its configuration and made its processors."""
        config = given["generation_config"]
        assistant = self.given.get("assistant_model")
        mode, inputs = config.get_generation_mode(assistant).value, given["encoder_input_ids"]
        if what := strange(mode, config, inputs):
            self.problem = unknown(what)
            return
        strategy, kind = MODES[mode]
        names, models = {"target": self.name}, {"target": self.model}
        if assistant is not None:
            names["draft"], models["draft"] = header.name_of(assistant), assistant
        if config.prompt_lookup_num_tokens is not None and kind is Assisted:
            strategy = "prompt_lookup"
        make = functools.partial(header.trace_of, strategy, config, processors, names, models)
        mask = (given["model_kwargs"] or {}).get("attention_mask")
        texts = header.unpadded(inputs, mask)
        self.mode = kind(config, make, texts, inputs.shape[1], self.bytes_of, self.clock)
        self._stages = header.stages(processors)
        self.traces = [recording.trace for recording in self.mode.recordings]
        for recording in self.mode.recordings:
            recording.note(
                f"Recorded from the model's own generate, transformers {transformers.__version__}."
            )
        for forward, columns in self._before:
            self.mode.ran(forward, columns)

    def scores(self, number: int, scores: torch.Tensor) -> None:
        """What arrives after processor `number` [N, V]; -1 is in front of all."""
        self._safely(self._hear_scores, number, scores)

    def _hear_scores(self, number: int, scores: torch.Tensor) -> None:
        if number < 0:
            self._rows = Rows(scores.clone())  # a processor may write into what it is given
        else:
            self._rows.stages.append((self._stages[number], scores.clone()))
        if number == len(self._stages) - 1:
            self.mode.scored(self._rows)

    # ---- forwards ------------------------------------------------------------------------------------

    def forward_begins(self) -> None:
        """A model starts to run."""
        self._began.append(self.clock.now())

    def forward_ends(self, role: str, given: dict[str, Any]) -> None:
        """The model of this role has run, with these arguments."""
        if torch.cuda.is_available() and self.model.device.type == "cuda":
            torch.cuda.current_stream(self.model.device).synchronize()  # or the time would be that of asking
        start = self._began.pop()
        self._safely(self._hear_forward, role, given, start, self.clock.now() - start)

    def _hear_forward(self, role: str, given: dict[str, Any], start: float, seconds: float) -> None:
        ids = given.get("input_ids")
        columns = (given["inputs_embeds"] if ids is None else ids).shape[1]
        part: dict[str, Any] = {}
        if self.drafting and role == "target":  # which drafts for itself
            part = self._early_exit()
            role = "target" if part else "draft"
        kind = "draft" if self.drafting else "decode"
        forward = Forward(role, kind, columns, 1, start, seconds, **part)
        if self.mode is None:
            self._before.append((forward, columns))
        else:
            self.mode.ran(forward, columns)

    def _early_exit(self) -> dict[str, Any]:
        """Which layers a target runs that drafts for itself."""
        count = self.mode.config.assistant_early_exit
        if count is None:
            return {}
        layers = Layers.first(count, self._layers)
        return {"scope": str(layers), "share": layers.share}

    # ---- the end -------------------------------------------------------------------------------------

    def finish(self) -> None:
        """`generate` has returned."""
        if self.mode is None and self.problem is None:
            self.problem = unknown("this way of generating")
        elif self.mode is not None:
            self._safely(self.mode.finish)

    def fail(self, error: BaseException) -> None:
        """`generate` has raised; what was recorded until then stays."""
        if self.mode is not None:
            message = f": {error}".rstrip(".") if str(error) else ""
            self._safely(self.mode.end, f"generate raised {type(error).__name__}{message}.")


def strange(mode: str, config: Any, inputs: torch.Tensor) -> str | None:
    """What of a call is not known here, by its name in transformers; None if all is."""
    if inputs.dim() != 2:
        return "inputs_embeds"
    if config.token_healing:  # it rewrites the prompt
        return "token_healing"
    return None if mode in MODES else f"the generation mode {mode}"


def unknown(what: str) -> str:
    """The sentence for a call that cannot be recorded."""
    return f"watch does not know {what}: this call ran unchanged and was not recorded."
