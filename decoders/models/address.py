"""Addresses of models on a server, `http://host:port/v1#name`, or in vLLM in this process, `vllm:name`.

Knows no HTTP and no models.
"""

import json
import re
from typing import Any
from urllib.parse import urlsplit

from decoders.refusal import Refusal

FORM = "http://host:port/v1#name, or http://host:port/v1#name,tokenizer=folder or Hub id"
CHAT_ENDPOINT = ",endpoint=chat"  # after a name: use the server's chat endpoint even if it has others
VLLM = "vllm:"
ENGINES = ("transformers", "vllm")
ENGINE_HELP = "who runs the target: transformers here, or vLLM in this process, as --model vllm:M does"
VLLM_FORM = "vllm:name, or vllm:name,option=value,... with options of vllm.LLM such as tensor_parallel_size=2"
KEPT = ("model", "max_logprobs", "skip_tokenizer_init", "trust_remote_code")  # options that users cannot set


def is_address(name: str) -> bool:
    """Whether a model's name is the address of a server or of vLLM."""
    return name.startswith(("http://", "https://", VLLM))


def listed(names: str) -> list[str]:
    """The names in a comma-separated list; a part such as `option=value` belongs to the name before it."""
    return [name.strip() for name in re.split(r",(?!\s*\w+=)", names)]


def short(name: str) -> str:
    """A model's short name: the last part of its path, or its name on the server."""
    if is_address(name):
        name = name.removeprefix(VLLM).partition(",")[0].rpartition("#")[2]
    return name.rstrip("/\\").replace("\\", "/").split("/")[-1]


def parsed(address: str) -> tuple[str, str, str]:
    """(base, name, tokenizer) of an address. Raises Refusal with one sentence."""
    parts = urlsplit(address.removesuffix(CHAT_ENDPOINT))
    name, _, tokenizer = parts.fragment.partition(",tokenizer=")
    if not parts.hostname or not name:
        raise Refusal(f"A served model is named {FORM}, not {address[:100]!r}.")
    if parts.username or parts.password or parts.query:
        raise Refusal(
            "The address of a served model holds no key and no query; put the key into DECODERS_API_KEY."
        )
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}", name, tokenizer or name


def vllm_parsed(address: str) -> tuple[str, dict[str, Any]]:
    """(name, options of vllm.LLM) of an address; values that are valid JSON, such as numbers and true, are
    parsed. Raises Refusal with one sentence.
    """
    name, *pairs = address.removeprefix(VLLM).split(",")
    options = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key.isidentifier() or not equals or key in KEPT:
            raise Refusal(f"A model in vLLM is named {VLLM_FORM}; {pair[:60]!r} is not one of its options.")
        try:
            options[key] = json.loads(value)
        except ValueError:
            options[key] = value
    if not name:
        raise Refusal(f"A model in vLLM is named {VLLM_FORM}, not {address[:100]!r}.")
    return name, options


def words_of(name: str) -> str:
    """The name of the model whose tokenizer a model uses. Raises Refusal with one sentence."""
    if name.startswith(VLLM):
        return vllm_parsed(name)[0]
    return parsed(name)[2] if is_address(name) else name


def check_server_address(address: str) -> None:
    """Raises Refusal with one sentence for an invalid address."""
    vllm_parsed(address) if address.startswith(VLLM) else parsed(address)


def held_by(engine: str, name: str) -> str:
    """The address of a model in an engine of `ENGINES`."""
    return f"{VLLM}{name}" if engine == "vllm" and not is_address(name) else name
