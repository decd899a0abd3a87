"""A model that is watched: every `generate` of it, called by this thread inside the `with`, leaves traces.

What one call does is in call.py.
"""

import threading
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from transformers import GenerationMixin, PreTrainedTokenizerBase

from decoders.models.token_bytes import TokenBytes
from decoders.refusal import Refusal
from decoders.watch import seams
from decoders.watch.call import Call
from decoders.watch.header import name_of
from decoders.watch.traces import Traces


class Watched(Traces):
    """`with watch(model, tokenizer) as run: model.generate(...)`; afterwards `run.traces` has one trace for
    each prompt of each call, in order.

    model: a causal language model of transformers; tokenizer: its own, for the tokens' texts (without it a
    token shows its id); name: what the traces call the model. No token changes: the model runs as it would
    alone, with the same random numbers. Calls of other threads are not recorded.
    """

    def __init__(self, model: Any, tokenizer: PreTrainedTokenizerBase | None = None, name: str = ""):
        """Raises Refusal with one sentence for what cannot be watched."""
        super().__init__()
        if not isinstance(model, GenerationMixin):
            raise Refusal(
                f"A {type(model).__name__} cannot be watched; give the model of transformers whose generate "
                "you call."
            )
        if model.config.is_encoder_decoder:
            raise Refusal(
                f"{type(model).__name__} is an encoder-decoder; only causal language models can be watched."
            )
        seams.check_seams(model)
        self.model, self.name = model, name or name_of(model)
        self.bytes_of = bytes_without_tokenizer if tokenizer is None else TokenBytes(tokenizer)
        self.call: Call | None = None  # the one under way
        self._calling = self._thread = 0
        self._installed = ExitStack()

    def __enter__(self) -> "Watched":
        """Raises Refusal with one sentence if the model is watched already."""
        if hasattr(self.model.generate, "watched"):
            raise Refusal("This model is watched already; leave the with statement that watches it first.")
        self._thread = threading.get_ident()
        self._installed.enter_context(seams.replaced(self.model, "generate", self._generate))
        self._installed.enter_context(seams.installed(self.model, self._own_call))
        return self

    def __exit__(self, *_: object) -> None:
        self._installed.close()

    def _own_call(self) -> Call | None:
        """The call under way if this thread made it; None inside a further generate that it makes."""
        mine = self._calling == 1 and threading.get_ident() == self._thread
        return self.call if mine else None

    def _generate(self, original: Callable) -> Callable:
        def generate(*args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() != self._thread:
                return original(*args, **kwargs)
            if self._calling:  # by a candidate generator or a processor
                self._calling += 1
                try:
                    return original(*args, **kwargs)
                finally:
                    self._calling -= 1
            given = seams.arguments(original, args, kwargs)
            self.call, self._calling = Call(self.model, self.name, self.bytes_of, given), 1
            try:
                with seams.forwards(self.call, self.model, given.get("assistant_model")):
                    result = original(*args, **kwargs)
                self.call.finish()
            except BaseException as error:
                self.call.fail(error)
                raise
            finally:
                call, self.call, self._calling = self.call, None, 0
                self.traces += call.traces
            if call.problem:
                warnings.warn(call.problem, stacklevel=2)
            return result

        generate.watched = self
        return generate


def bytes_without_tokenizer(token: int) -> bytes:
    """A token whose text is not known."""
    return f"‹{token}›".encode()
