"""`with watch(llm) as run: llm.generate(...)` for vLLM's `LLM`: one trace for each request."""

import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any

from decoders.models.token_bytes import TokenBytes
from decoders.refusal import Refusal, said_by
from decoders.watch.traces import Traces
from decoders.watch.vllm.measured import TOP
from decoders.watch.vllm.plugin import METHOD
from decoders.watch.vllm.requests import Requests
from decoders.watch.vllm.spool import SpoolReader


class WatchedLLM(Traces):
    """The requests that an engine runs inside the `with`; afterwards `run.traces` has one trace for each, in
    the order in which they began. No token changes.

    llm: a `vllm.LLM`; top: how many tokens of a distribution are kept.
    """

    watches = "the llm's generate"

    def __init__(self, llm: Any, top: int = TOP):
        super().__init__()
        self.llm, self.top = llm, top

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
