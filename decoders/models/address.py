"""Addresses of models on a server, `http://host:port/v1#name`, or in vLLM in this process, `vllm:name`."""

import json
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from decoders.refusal import Refusal

FORM = "http://host:port/v1#name, or http://host:port/v1#name,tokenizer=folder or Hub id"
CHAT_ENDPOINT = ",endpoint=chat"  # after a name: use the server's chat endpoint even if it has others
VLLM = "vllm:"
ENGINES = ("transformers", "vllm")
ENGINE_HELP = "what runs the target: transformers, or vLLM in this process, as --model vllm:M does"
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


@dataclass(frozen=True)
class Server:
    """A model on a server: the name as typed, the address up to `#`, the model's name there, the name of the
    model whose tokenizer it uses, and whether the server's chat endpoint is used even if it has others.
    """

    name: str
    base: str
    model: str
    tokenizer: str
    chat: bool


@dataclass(frozen=True)
class InVllm:
    """A model in vLLM in this process: the name as typed, the model's own, options of vllm.LLM."""

    name: str
    model: str
    options: dict[str, Any]


def served(name: str) -> Server | InVllm | None:
    """What an address means; None for a name that is none. Raises Refusal with one sentence."""
    if not is_address(name):
        return None
    return in_vllm(name) if name.startswith(VLLM) else on_server(name)


def on_server(address: str) -> Server:
    """The model at `http://host:port/v1#name`. Raises Refusal with one sentence."""
    parts = urlsplit(address.removesuffix(CHAT_ENDPOINT))
    name, _, tokenizer = parts.fragment.partition(",tokenizer=")
    if not parts.hostname or not name:
        raise Refusal(f"A served model is named {FORM}, not {address[:100]!r}.")
    if parts.username or parts.password or parts.query:
        raise Refusal(
            "The address of a served model holds no key and no query; put the key into DECODERS_API_KEY."
        )
    base = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
    return Server(address, base, name, tokenizer or name, address.endswith(CHAT_ENDPOINT))


def in_vllm(address: str) -> InVllm:
    """The model of `vllm:name`; values of options that are valid JSON, such as numbers and true, are parsed.
    Raises Refusal with one sentence.
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
    return InVllm(address, name, options)


def held_by(engine: str, name: str) -> str:
    """The address of a model in an engine of `ENGINES`."""
    return f"{VLLM}{name}" if engine == "vllm" and not is_address(name) else name
