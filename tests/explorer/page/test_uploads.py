"""Files that a page uploads: one file and nothing else reaches Gradio, and it is read once."""

import re

import pytest

from explorer.page import uploads
from explorer.page.envelopes import Refused
from explorer.schema import Malformed, read

KIND = "multipart/form-data; boundary=edge"
HEAD = b'Content-Disposition: form-data; name="files"; filename="%b"\r\nContent-Type: application/gzip'


def form(*parts: tuple[bytes, bytes], edge: bytes = b"edge") -> bytes:
    """A form as browsers send it, of (headers, content)."""
    return b"".join(b"--%b\r\n%b\r\n\r\n%b\r\n" % (edge, *part) for part in parts) + b"--%b--\r\n" % edge


@pytest.mark.parametrize(
    "data", [b"", b"hello", b"\x00\r\n\r\n--\xff--edg\r\n", b"a" * uploads.MAX_FILE_BYTES]
)
@pytest.mark.parametrize("name", [b"a.json", "naïve ☂.html".encode(), b"../../x.gz", b"<img onerror=x>"])
def test_of_a_form_only_the_bytes_of_its_file_are_kept(data, name):
    kind, body = uploads.clean(KIND, form((HEAD % name, data)))
    edge = re.fullmatch(rb"multipart/form-data; boundary=([0-9a-f]{32})", kind)[1]
    head = rb'--%b\r\nContent-Disposition: form-data; name="files"; filename="([0-9a-f]{32})"\r\n\r\n' % edge
    assert re.match(head, body)
    assert body[len(re.match(head, body)[0]) :] == data + b"\r\n--%b--\r\n" % edge
    assert uploads.clean(KIND, form((HEAD % name, data))) != (kind, body)  # each has a name of its own


FILE = (HEAD % b"a.json", b"{}")


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("multipart/form-data", form(FILE)),
        ("multipart/form-data; boundary=", form(FILE)),
        ("multipart/form-data; boundary=" + "e" * 71, form(FILE, edge=b"e" * 71)),
        ("multipart/form-data; boundary=other", form(FILE)),
        ("multipart/mixed; boundary=edge", form(FILE)),
        (KIND, b""),
        (KIND, form()),
        (KIND, form(FILE)[:-12]),
        (KIND, b"x" + form(FILE)),
        (KIND, form(FILE, FILE)),
        (KIND, form((b'Content-Disposition: form-data; name="files"', b"no file"))),
        (KIND, form((HEAD.replace(b"files", b"other") % b"a", b"{}"))),
        (KIND, form((HEAD % b"a" + b"\r\nX-Other: 1", b"{}"))),
    ],
)
def test_what_is_no_upload_of_one_file_is_refused(kind, body):
    with pytest.raises(Refused, match="not an upload of one file") as told:
        uploads.clean(kind, body)
    assert told.value.status == 422


def test_a_file_that_is_too_large_is_refused():
    with pytest.raises(Refused, match="larger than 16 MiB") as told:
        uploads.clean(KIND, form((HEAD % b"a", b"a" * (uploads.MAX_FILE_BYTES + 1))))
    assert told.value.status == 413


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of an upload."""
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path))
    made = tmp_path / ("a" * 64)
    made.mkdir()
    return made


def test_an_uploaded_file_is_read_once_and_gone(folder):
    (folder / ("0" * 32)).write_bytes(b"data")
    file = read(uploads.Uploaded, {"path": str(folder / ("0" * 32)), "name": "a.json"})
    assert file.take() == b"data" and not folder.exists()
    with pytest.raises(ValueError, match="open it again"):
        file.take()


def test_nothing_but_an_upload_can_be_named(folder):
    (folder / "once.lane-1.trace.json.gz").write_bytes(b"somebody's download")
    (folder.parent / ("1" * 32)).write_bytes(b"not in a folder of its own")
    (folder / ("2" * 32)).symlink_to("/etc/hostname")
    odd = ["/etc/passwd", "", "\0", "x" * 1001, "http://127.0.0.1/", str(folder), str(folder / ("3" * 32))]
    odd += [
        str(folder / "once.lane-1.trace.json.gz"),
        str(folder.parent / ("1" * 32)),
        str(folder / ("2" * 32)),
    ]
    odd += [f"{folder}/../../etc/passwd", None, 7, [], {"path": "/etc/passwd"}]
    for path in odd:
        with pytest.raises(Malformed) as told:
            read(uploads.Uploaded, {"path": path, "name": "a.json"})
        assert str(told.value).startswith("path must ")
