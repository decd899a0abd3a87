"""`watch(model, tokenizer)` records what a model's own `generate` does, as traces like those of our lanes;
`watch(llm)` what vLLM does.

The package itself can be called, so `from decoders import watch` suffices. Neither torch nor transformers is
imported before the call, and vLLM never is.
"""

import sys
from types import ModuleType
from typing import Any


class _Watch(ModuleType):
    def __call__(self, model: Any, tokenizer: Any = None, name: str = "") -> Any:
        """As `watched.Watched`, or for a `vllm.LLM` as `vllm.watched_llm.WatchedLLM`, to be used in a `with`
        statement.
        """
        if type(model).__module__.partition(".")[0] == "vllm":
            from decoders.watch.vllm.watched_llm import WatchedLLM

            return WatchedLLM(model)
        from decoders.watch.watched import Watched

        return Watched(model, tokenizer, name)


sys.modules[__name__].__class__ = _Watch
