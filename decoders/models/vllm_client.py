"""Asks vLLM in this process for the next token's log-probabilities. Knows token ids, no trees.

The same as `completions_client.CompletionsClient`, without a server in between: `vllm.LLM` holds the model,
on as many devices and machines as its own options say.
"""

from collections.abc import Sequence
from typing import Any

from decoders.engine.served import ServerProblem

ALL = -1


class VllmClient:
    """One `vllm.LLM`, which names the log-probabilities of all tokens."""

    base, top = "vLLM in this process", None
    scores = continues = True

    def __init__(self, llm: Any):
        self.llm, config = llm, llm.llm_engine.model_config
        self.vocabulary, self.context = config.get_vocab_size(), config.max_model_len

    def close(self) -> None:
        """Nothing: vLLM's own processes end with this one."""

    def next_tokens(self, texts: Sequence[list[int]]) -> list[dict[int, float]]:
        """After each of these texts: token -> log-probability. Raises ServerProblem with one sentence."""
        return [at(output.outputs[0].logprobs, 0) for output in self._generate(texts)]

    def along(self, text: list[int], lengths: Sequence[int]) -> list[dict[int, float]]:
        """After the first n tokens of a text, for each n of `lengths`: token -> log-probability, from one
        reading of it. Raises ServerProblem with one sentence.
        """
        (output,) = self._generate([text], prompt_logprobs=ALL)
        return [  # the row of a place stands beside the token that follows it
            at(output.prompt_logprobs, n) if n < len(text) else at(output.outputs[0].logprobs, 0)
            for n in lengths
        ]

    def _generate(self, texts: Sequence[list[int]], **more: int) -> list:
        from vllm import SamplingParams

        how = {
            "max_tokens": 1,
            "temperature": 0.0,
            "logprobs": ALL,
            "flat_logprobs": True,
            "detokenize": False,
        }
        prompts = [{"prompt_token_ids": list(text)} for text in texts]
        try:
            return self.llm.generate(prompts, SamplingParams(**how, **more), use_tqdm=False)
        except Exception as error:  # vLLM's own kinds differ from version to version
            reason = " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__
            raise ServerProblem(f"vLLM failed: {reason}.") from error


def at(flat: Any, place: int) -> dict[int, float]:
    """Token -> log-probability at a place of vLLM's `FlatLogprobs`."""
    some = slice(flat.start_indices[place], flat.end_indices[place])
    return dict(zip(flat.token_ids[some], flat.logprobs[some], strict=True))


def start(folder: str, options: dict[str, Any]) -> VllmClient:
    """vLLM with the model of a folder or Hub id and options of `vllm.LLM`. Raises ValueError with one
    sentence.
    """
    try:
        from vllm import LLM
        from vllm.platforms import current_platform
    except ImportError as error:
        raise ValueError(
            "vLLM is not installed here; `make vllm` sets up an environment with it: start this program "
            "with .vllm/bin/python."
        ) from error
    usual = {"max_logprobs": ALL, "dtype": "float32" if current_platform.is_cpu() else "auto"}
    try:
        return VllmClient(LLM(model=folder, **(usual | options)))
    except Exception as error:
        reason = " ".join(str(error).split())[:300].rstrip(".") or type(error).__name__
        raise ValueError(f"vLLM cannot serve {folder!r}: {reason}.") from error
