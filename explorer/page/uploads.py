"""Files that a page uploads: what such a request may be, and that a file is read once and then gone.

A request is taken apart and put together again, so that of what a browser sent only the file's bytes reach
Gradio's parser, and the name on the disk is a secret of ours. `access` says who may upload. Knows no runs.
"""

import re
import secrets
import shutil
from pathlib import Path
from typing import Annotated

from gradio.context import LocalContext
from gradio.utils import get_upload_folder
from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from explorer.page.envelopes import Refused
from explorer.schema import Asked

MAX_FILE_BYTES = 16 * 2**20  # of a file as it lies on the disk; unpacked it may be four times as large
TOO_LARGE = f"This file is larger than {MAX_FILE_BYTES >> 20} MiB; open a shorter run."
NO_UPLOAD = "This is not an upload of one file; choose one with the page's button."
LOST = "The file arrived incomplete; open it again."
BOUNDARY = re.compile(r'multipart/form-data *; *boundary="?([A-Za-z0-9\'()+_,./:=?-]{1,70})"?', re.IGNORECASE)
PART = re.compile(
    rb'Content-Disposition: form-data; name="files"; filename="[^\r\n]*"(\r\nContent-Type: [^\r\n]*)?',
    re.IGNORECASE,
)
Text = Annotated[str, Field(max_length=1000)]


def clean(content_type: str, body: bytes) -> tuple[bytes, bytes]:
    """An upload as Gradio gets it, `(Content-Type, body)`: the one file that it carries, under a new name.

    Raises Refused for anything but one file of at most MAX_FILE_BYTES.
    """
    match = BOUNDARY.fullmatch(content_type.strip())
    edge = b"--" + match[1].encode() if match else b""
    end = body.rfind(b"\r\n" + edge + b"--")
    if not match or not body.startswith(edge + b"\r\n") or end < 0:
        raise Refused(422, NO_UPLOAD)
    head, _, data = body[len(edge) + 2 : end].partition(b"\r\n\r\n")
    if not PART.fullmatch(head) or b"\r\n" + edge in data:
        raise Refused(422, NO_UPLOAD)
    if len(data) > MAX_FILE_BYTES:
        raise Refused(413, TOO_LARGE)
    name, edge = secrets.token_hex(16).encode(), secrets.token_hex(16).encode()
    opens = b'--%b\r\nContent-Disposition: form-data; name="files"; filename="%b"\r\n\r\n' % (edge, name)
    return b"multipart/form-data; boundary=" + edge, opens + data + b"\r\n--%b--\r\n" % edge


def is_uploaded(path: str) -> str:
    """`path`, if such a file was uploaded and not yet read."""
    file = Path(path)
    try:
        here = file.resolve(strict=True).parent.parent == Path(get_upload_folder()).resolve()
    except (OSError, ValueError):
        here = False
    if not here or not re.fullmatch(r"[0-9a-f]{32}", file.name):
        raise PydanticCustomError("kind", "a file that was uploaded")
    return path


class Uploaded(Asked):
    """A file that was uploaded: where it lies, and what it was called."""

    path: Annotated[Text, AfterValidator(is_uploaded)]
    name: Text

    def take(self) -> bytes:
        """Its bytes; the file is gone then. Raises ValueError with one sentence if it was before."""
        file, blocks = Path(self.path), LocalContext.blocks.get(None)
        try:
            data = file.read_bytes()
        except OSError as error:
            raise ValueError(LOST) from error
        shutil.rmtree(file.parent, ignore_errors=True)
        if blocks is not None:
            blocks.upload_file_set.discard(self.path)
        return data
