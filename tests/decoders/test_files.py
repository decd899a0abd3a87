"""Files are written whole or not at all, and a disk that refuses one is a sentence."""

import errno
import os
from pathlib import Path

import pytest

from decoders.files import write
from decoders.refusal import Refusal


@pytest.fixture
def full(monkeypatch):
    """A disk that is full after three bytes."""
    real = Path.write_bytes

    def some(path: Path, data: bytes) -> None:
        real(path, data[:3])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", some)


def test_a_file_is_written_and_keeps_its_rights(tmp_path):
    write(tmp_path / "new", "dög")
    assert (tmp_path / "new").read_bytes() == "dög".encode()
    (tmp_path / "new").chmod(0o640)
    write(str(tmp_path / "new"), b"\x00")
    assert (tmp_path / "new").read_bytes() == b"\x00" and (tmp_path / "new").stat().st_mode & 0o777 == 0o640
    (tmp_path / "link").symlink_to(tmp_path / "new")
    write(tmp_path / "link", "there")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "new").read_text("utf-8") == "there"
    assert {path.name for path in tmp_path.iterdir()} == {"new", "link"}


def test_a_full_disk_is_a_sentence_and_leaves_what_stood_there(tmp_path, full):
    (tmp_path / "old").write_text("whole", "utf-8")
    for name in ("old", "new"):
        with pytest.raises(Refusal, match=f"{name} was not written: the disk is full; free some space"):
            write(tmp_path / name, "something longer")
    assert {path.name for path in tmp_path.iterdir()} == {"old"} and (tmp_path / "old").read_text(
        encoding="utf-8"
    ) == "whole"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_a_device_is_written_to_and_not_replaced():
    with pytest.raises(Refusal, match="/dev/full was not written: the disk is full"):
        write("/dev/full", "x")
    assert not os.path.isfile("/dev/full")
    write("/dev/null", "x")


def test_other_reasons_are_sentences_too(tmp_path):
    with pytest.raises(Refusal, match="its folder does not exist; make it, or name another"):
        write(tmp_path / "none" / "new", "x")
    with pytest.raises(Refusal, match="it is a folder; name a file"):
        write(tmp_path, "x")
