"""Writes files whole or not at all, and says in one sentence why a disk refuses one."""

import errno
import os
from pathlib import Path

from decoders.refusal import Refusal

FULL = (errno.ENOSPC, errno.EDQUOT)
REASONS = {
    **dict.fromkeys(FULL, "the disk is full; free some space, or name another place"),
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR), "its folder does not exist; make it, or name another"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "this place is read-only; name another"),
    errno.EISDIR: "it is a folder; name a file",
}


def write(path: str | Path, data: bytes | str) -> None:
    """Writes a file, text as UTF-8. If the disk refuses it, what stood there before is kept.

    Raises Refusal with one sentence.
    """
    path, data = Path(path), data.encode() if isinstance(data, str) else data
    try:
        _write(Path(os.path.realpath(path)), data)
    except OSError as error:
        reason = REASONS.get(error.errno, error.strerror or type(error).__name__)
        raise Refusal(f"{path} was not written: {reason}.") from error


def _write(path: Path, data: bytes) -> None:
    if path.exists() and (not path.is_file() or os.path.ismount(path)) or not os.access(path.parent, os.W_OK):
        path.write_bytes(data)  # a device or a pipe, or a place where nothing can be moved to
        return
    part = path.with_name(f".{os.urandom(8).hex()}.part")
    try:
        part.write_bytes(data)
        if path.exists():
            part.chmod(path.stat().st_mode)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
