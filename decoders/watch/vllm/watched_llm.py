"""`with watch(llm) as run: llm.generate(...)` for vLLM's `LLM`: one trace for each request."""

import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any

from decoders.models.token_bytes import TokenBytes
from decoders.refusal import Refusal, said_by
from decoders.trace import trace
from decoders.trace.trace import Trace
from decoders.watch.vllm.measured import TOP
from decoders.watch.vllm.plugin import METHOD
from decoders.watch.vllm.requests import Requests
from decoders.watch.vllm.spool import SpoolReader


class WatchedLLM:
    """The requests that an engine runs inside the `with`; afterwards `run.traces` has one trace for each, in
    the order in which they began. No token changes.

    llm: a `vllm.LLM`; top: how many tokens of a distribution are kept.
    """

    def __init__(self, llm: Any, top: int = TOP):
        self.llm, self.top = llm, top
        self.traces: list[Trace] = []

    @property
    def trace(self) -> Trace:
        """The newest trace. Raises Refusal with one sentence if there is none."""
        if not self.traces:
            raise Refusal("Nothing was recorded; call the llm's generate inside the with statement.")
        return self.traces[-1]

    def show(self) -> Any:
        """The traces as a notebook draws them, one to four side by side. Raises Refusal with one sentence
        if there are none, or more: then show some of `traces`, or one by its own `show()`.
        """
        return trace.show(*(self.traces or [self.trace]))

    def __enter__(self) -> "WatchedLLM":
        """Raises Refusal with one sentence if vLLM's processes lack the plugin."""
        self._folder = Path(tempfile.mkdtemp(prefix="decoding-explorer-vllm-"))
        try:
            self.llm.collective_rpc(METHOD, args=(str(self._folder), self.top))
        except Exception as error:  # vLLM's exception types differ between versions
            shutil.rmtree(self._folder)
            raise Refusal(
                "vLLM's processes cannot record: install decoding-explorer in vLLM's environment, and let "
                f"VLLM_PLUGINS, if it is set, name decoding_explorer ({said_by(error)})."
            ) from error
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.llm.collective_rpc(METHOD, args=(None,))
            requests = Requests(lambda _: TokenBytes(self.llm.get_tokenizer()))
            requests.read(SpoolReader(self._folder).records())
            self.traces += [one.trace for one in requests.all]
            if requests.fault:
                warnings.warn(f"watch could not follow vLLM: {requests.fault}.", stacklevel=2)
        finally:
            shutil.rmtree(self._folder)
