"""Uploaded files: what an upload request may contain. Each file is deleted once it has been read.

A request is taken apart and reassembled, so that only the file's bytes reach Gradio's parser, and the name on
disk is a secret that we choose. explorer/access.py says who may upload.
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

from decoders.refusal import Refusal
from explorer.page.envelopes import Refused
from explorer.schema import Asked

MAX_FILE_BYTES = 16 * 2**20  # of a file on disk; unpacked it may be four times as large
TOO_LARGE = f"This file is larger than {MAX_FILE_BYTES >> 20} MiB; open a shorter run."
NO_UPLOAD = "This is not an upload of one file; choose one with the page's button."
NO_ROOM = (
    "The app has no room on its disk for this file; whoever runs the app must free some, then try again."
)
LOST = "The file arrived incomplete; open it again."
BOUNDARY = re.compile(r'multipart/form-data *; *boundary="?([A-Za-z0-9\'()+_,./:=?-]{1,70})"?', re.IGNORECASE)
PART = re.compile(
    rb'Content-Disposition: form-data; name="files"; filename="[^\r\n]*"(\r\nContent-Type: [^\r\n]*)?',
    re.IGNORECASE,
)
Text = Annotated[str, Field(max_length=1000)]


def clean(content_type: str, body: bytes) -> tuple[bytes, bytes]:
    """Reduces an upload to the one file it carries, under a new name: `(Content-Type, body)` for Gradio.

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
    """Returns `path` if a file was uploaded there and not yet read; otherwise raises a validation error."""
    file = Path(path)
    try:
        here = file.resolve(strict=True).parent.parent == Path(get_upload_folder()).resolve()
    except (OSError, ValueError):
        here = False
    if not here or not re.fullmatch(r"[0-9a-f]{32}", file.name):
        raise PydanticCustomError("kind", "a file that was uploaded")
    return path


class Uploaded(Asked):
    """An uploaded file: its path on the server and its original name."""

    path: Annotated[Text, AfterValidator(is_uploaded)]
    name: Text

    def take(self) -> bytes:
        """Returns the file's bytes and deletes it. Refusal with one sentence if it is already gone."""
        file, blocks = Path(self.path), LocalContext.blocks.get(None)
        try:
            data = file.read_bytes()
        except OSError as error:
            raise Refusal(LOST) from error
        shutil.rmtree(file.parent, ignore_errors=True)
        if blocks is not None:
            blocks.upload_file_set.discard(self.path)
        return data
