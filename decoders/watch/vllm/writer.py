"""`python -m decoders.watch.vllm.writer FOLDER`: makes traces of a folder's spool while a server records.

Each request's trace is a file of its own, written whole about once a second while it grows, so that it can be
opened at any time. The folder's size is bounded: the oldest traces make room for new ones.
"""

import json
import os
import re
import select
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from decoders import files
from decoders.models.token_bytes import TokenBytes
from decoders.refusal import Refusal
from decoders.watch.vllm.folder import SUFFIX
from decoders.watch.vllm.plugin import SPOOL
from decoders.watch.vllm.requests import Request, Requests
from decoders.watch.vllm.spool import SpoolReader

PAUSE = 1.0  # seconds between two looks at the spool
FOLDER_BYTES = 1 << 30  # of all traces together


@cache
def bytes_of(tokenizer: str) -> Callable[[int], bytes]:
    """The bytes of a tokenizer's tokens."""
    from transformers import AutoTokenizer

    return TokenBytes(AutoTokenizer.from_pretrained(tokenizer, trust_remote_code=False))


class Writer:
    """The traces of one folder."""

    def __init__(self, folder: Path, tokenizer: Any = bytes_of):
        self.folder, self.spool = folder, SpoolReader(folder / SPOOL)
        self.requests = Requests(tokenizer)

    def turn(self) -> int:
        """Writes the traces that have changed, and returns their number. Raises Refusal if the disk refuses
        them.
        """
        changed = self.requests.read(self.spool.records())
        for name in changed:
            one = self.requests.open[name]
            text = json.dumps(one.trace.to_json(), separators=(",", ":"), allow_nan=False)
            files.write(self.folder / file_name(one), text)
        over = [name for name, one in self.requests.open.items() if not one.recording.open]
        for name in set(over) - changed:  # rounds may follow a stop string for a moment
            del self.requests.open[name]
        if changed:
            self.requests.all.clear()
            make_room(self.folder)
        return len(changed)


def file_name(one: Request) -> str:
    """The time at which a request began, and its name: sorted by name, the newest comes last."""
    at = time.strftime("%Y%m%d-%H%M%S", time.localtime(one.begun["at"]))
    return f"{at}-{re.sub(r'[^A-Za-z0-9_-]', '_', one.begun['request'])[:80]}{SUFFIX}"


def make_room(folder: Path, most: int = FOLDER_BYTES) -> None:
    """Deletes the oldest traces beyond `most` bytes."""
    sizes = {path: path.stat().st_size for path in sorted(folder.glob(f"*{SUFFIX}"))}
    total = sum(sizes.values())
    for path, size in sizes.items():
        if total <= most:
            return
        path.unlink(missing_ok=True)
        total -= size


def main(folder: Path) -> None:
    """Runs until the process that records is gone, and with it the other end of our input."""
    writer, over = Writer(folder), False
    os.nice(10)
    while not over:
        over = bool(select.select([sys.stdin], [], [], PAUSE)[0])
        try:
            writer.turn()
        except Refusal as error:
            print(f"Decoding Explorer: {error}", file=sys.stderr)
    writer.spool.delete()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
