"""Reads the text files that a command line names, up to a size that a program can work with."""

from pathlib import Path

from decoders.refusal import Refusal

MOST_BYTES = 16 * 2**20


def read_text(path: Path) -> str:
    """The text of a file. Raises Refusal with one sentence if it is larger than MOST_BYTES or not UTF-8."""
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)  # a device has no end
    if len(data) > MOST_BYTES:
        raise Refusal(f"{path} is larger than {MOST_BYTES >> 20} MiB; name a shorter file.")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refusal(f"{path} is not UTF-8 text; save it as UTF-8.") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")
