"""Addresses of models that a server holds: `http://host:port/v1#name`. Knows no HTTP and no models."""

from urllib.parse import urlsplit

FORM = "http://host:port/v1#name, or http://host:port/v1#name,tokenizer=folder or Hub id"


def is_address(name: str) -> bool:
    """Whether a model's name is the address of a server."""
    return name.startswith(("http://", "https://"))


def parsed(address: str) -> tuple[str, str, str]:
    """(base, name, tokenizer) of an address. Raises ValueError with one sentence."""
    parts = urlsplit(address)
    name, _, tokenizer = parts.fragment.partition(",tokenizer=")
    if not parts.hostname or not name:
        raise ValueError(f"A served model is named {FORM}, not {address[:100]!r}.")
    if parts.username or parts.password or parts.query:
        raise ValueError(
            "The address of a served model holds no key and no query; put the key into DECODERS_API_KEY."
        )
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}", name, tokenizer or name
