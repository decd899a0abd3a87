"""Requests the next token's log-probabilities from vLLM in this process.

The interface of `completions_client.CompletionsClient` without a server: `vllm.LLM` holds the model, on the
devices and machines that its options name.
"""

from collections.abc import Sequence
from typing import Any

from decoders.engine.served import ServerProblem
from decoders.refusal import Refusal, said_by

ALL = -1


class VllmClient:
    """One `vllm.LLM`, which gives the log-probabilities of all tokens."""

    base, top = "vLLM in this process", None
    scores = continues = True
    at_once = 1  # `vllm.LLM` is for one thread

    def __init__(self, llm: Any):
        self.llm, config = llm, llm.llm_engine.model_config
        self.vocabulary, self.context = config.get_vocab_size(), config.max_model_len

    def close(self) -> None:
        """Does nothing: vLLM's processes end with this one."""

    def next_tokens(self, texts: Sequence[list[int]]) -> list[dict[int, float]]:
        """For each text: token -> log-probability of the next token. Raises ServerProblem with one
        sentence.
        """
        return [at(output.outputs[0].logprobs, 0) for output in self._generate(texts)]

    def along(self, text: list[int], lengths: Sequence[int]) -> list[dict[int, float]]:
        """For each n of `lengths`: token -> log-probability after the first n tokens of a text, all from one
        request. Raises ServerProblem with one sentence.
        """
        (output,) = self._generate([text], prompt_logprobs=ALL)
        return [  # vLLM attaches each row to the token that follows its place
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
        except Exception as error:  # vLLM's exception types differ between versions
            raise ServerProblem(f"vLLM failed: {said_by(error)}.") from error


def at(flat: Any, place: int) -> dict[int, float]:
    """Token -> log-probability at a place of vLLM's `FlatLogprobs`."""
    some = slice(flat.start_indices[place], flat.end_indices[place])
    return dict(zip(flat.token_ids[some], flat.logprobs[some], strict=True))


def start(folder: str, options: dict[str, Any]) -> VllmClient:
    """Starts vLLM with the model in a folder or of a Hub id, and options of `vllm.LLM`. Raises Refusal
    with one sentence.
    """
    try:
        from vllm import LLM
        from vllm.platforms import current_platform
    except ImportError as error:
        raise Refusal(
            "vLLM is not installed here; `make vllm` sets up an environment with it: start this program "
            "with .vllm/bin/python."
        ) from error
    usual = {"max_logprobs": ALL, "dtype": "float32" if current_platform.is_cpu() else "auto"}
    try:
        return VllmClient(LLM(model=folder, **(usual | options)))
    except Exception as error:
        raise Refusal(f"vLLM cannot serve {folder!r}: {said_by(error, 300)}.") from error
