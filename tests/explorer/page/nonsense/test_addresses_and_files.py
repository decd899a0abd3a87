"""Nonsense as an address, a file or an upload: status 4xx, one sentence, and nothing in the log but lines."""

import json
import random
from pathlib import Path
from urllib.parse import quote

from explorer.page.layout import EXAMPLE
from explorer.page.save_and_open import open_file
from explorer.page.uploads import MAX_FILE_BYTES
from tests.helpers.bad_files import damaged
from tests.helpers.random_requests import API, BYTES, JSON_ADDRESSES, OTHER, judge
from tests.helpers.server_log import Heard

ODD = [
    "%00",
    "%ff%fe",
    "..%2f..%2fetc%2fpasswd",
    "a" * 300,
    "~nosuch",
    "-1",
    "99999999999999999999",
    "%0a%0d",
    "http:%2f%2f%5b",
]


def test_addresses_that_lead_nowhere_are_refused(served, findings):
    paths = sorted({path for route in served.demo.app.routes for path in paths_of(route)} - {"/"})
    assert len(paths) > 40
    for path in paths:
        for odd in ODD:
            address = "/".join(odd if part.startswith("{") else filled(part, odd) for part in path.split("/"))
            status, body = served.client.send("GET", address)
            findings.asked += 1
            if status == 0 or status >= 500:
                findings.add("500", f"GET {address}: {status} {body[:100]!r}")
    queries = (
        "page=%00",
        "page=x",
        "view=%ff&&&=",
        "deep_link=%00",
        "deep_link=..%2f",
        "a" * 3000,
        "__theme=%F0%9F",
        "%",
    )
    for query in queries:
        for path in (
            "/",
            "/config",
            f"{API}info",
            f"{API}queue/data",
            f"{API}deep_link",
            f"{API}upload_progress",
        ):
            for more in ("", "&session_hash=%00", "&session_hash=nobody&upload_id=x"):
                status, body = served.client.send("GET", f"{path}?{query}{more}")
                findings.asked += 1
                if status == 0 or status >= 500:
                    findings.add("500", f"GET {path}?{query}{more}: {status} {body[:100]!r}")
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "FOO"):
        for path in ("/", *JSON_ADDRESSES, f"{API}file=x"):
            status, body = served.client.send(method, path, b"\xff")
            judge(findings, f"{method} {path}", status, body, malformed=True)
    assert served.client.send("GET", "/")[0] == 200


def paths_of(route) -> list[str]:
    """The addresses of a route, or of those that it includes."""
    inner = getattr(route, "original_router", None)
    if inner is not None:
        return [path for one in inner.routes for path in paths_of(one)]
    slow = ("dev/reload", "mcp", "heartbeat")  # streams without end
    path = getattr(route, "path", "")
    return (
        [path]
        if "GET" in (getattr(route, "methods", None) or ()) and not any(s in path for s in slow)
        else []
    )


def filled(part: str, odd: str) -> str:
    """`file={path}` with something in its place."""
    return part.split("{")[0] + odd if "{" in part else part


def test_a_file_that_is_damaged_or_lies_is_one_sentence_and_what_opens_can_be_saved(served, findings):
    for number, (what, data) in enumerate(damaged(random.Random(7))):
        try:
            found = json.dumps(open_file(served.runs, data, OTHER), allow_nan=False)
        except ValueError as error:
            found = json.dumps({"error": str(error)})
        found = judge(findings, f"open {what}", 200, found.encode())
        if found and "run" in found:
            # A page draws 31 figures, most of them the same for every file.
            for form in ("run", "costs", "page") if number % 12 == 0 else ("run", "costs"):
                asked = {"session": OTHER, "run": found["run"], "form": form}
                judge(findings, f"save as {form} {what}", *served.call("explorer_save", asked))
    status, body = served.client.post(f"{API}component_server", b'"' + b"A" * (25 * 2**20) + b'"')
    judge(findings, "larger than any file", status, body, malformed=True)
    assert status == 413


def test_an_upload_that_is_none_is_one_sentence_and_leaves_no_file(served, findings):
    path, edge = f"{API}upload", b"--edge\r\n"
    ours = {"Origin": served.address, "Content-Type": "multipart/form-data; boundary=edge"}
    kept = served.demo.upload_file_set
    head = edge + b'Content-Disposition: form-data; name="files"; filename="a.json"\r\n\r\n'
    sound = head + b"{}\r\n--edge--\r\n"
    bodies = [
        *BYTES,
        sound[:-9],
        sound.replace(b"files", b"file"),
        head + b"{}\r\n" + sound,
        edge * 1000,
        head,
    ]
    bodies += [sound.replace(b"\r\n\r\n", b"\n\n"), head + b"a" * (MAX_FILE_BYTES + 1) + b"\r\n--edge--\r\n"]
    before = set(kept)
    for body in bodies:
        judge(findings, f"upload {body[:40]!r}", *served.client.post(path, body, **ours), malformed=True)
    for kind in ("", "multipart/form-data", "multipart/form-data; boundary=é", "text/plain", "multipart/x"):
        status, answer = served.client.post(path, sound, **(ours | {"Content-Type": kind.encode()}))
        judge(findings, f"upload as {kind!r}", status, answer, malformed=True)
    assert kept == before and served.demo.max_file_size == MAX_FILE_BYTES  # which browsers are told
    status, answer = served.client.post(path + "?upload_id=x", sound, **ours)
    (uploaded,) = json.loads(answer)
    assert status == 200 and Path(uploaded).read_bytes() == b"{}" and "a.json" not in uploaded
    Path(uploaded).unlink()


def test_the_app_fetches_no_file_from_another_machine(served, findings):
    for address in ("http://example.org/a", "https:%2f%2fexample.org/a", "HTTP://127.0.0.1/a"):
        status, body = served.client.send("GET", f"{API}file={address}")
        judge(findings, address, status, body, malformed=True)
        assert status == 404 and b"nothing at this address" in body


def test_a_line_in_the_log_is_one_line_and_names_no_more_than_its_address(served):
    heard = Heard()
    with heard.listening():
        served.call("explorer_trace", {"run": EXAMPLE, "lane": "one\nERROR two\x1b[31m"})
        served.client.post(f"{API}run/{quote('x' + chr(10) + 'ERROR')}", {"data": []})
    lines = [record.getMessage() for record in heard.records]
    assert len(lines) == 2 and all("\n" not in line and "\x1b" not in line for line in lines)
    assert (
        lines[0] == r"explorer_trace was refused: lane must be a whole number, not 'one\nERROR two\x1b[31m'."
    )
    assert "was refused: There is no such endpoint" in lines[1]
