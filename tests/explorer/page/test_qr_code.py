"""A link as a QR code: it is the link that runs, and text is never markup."""

import io
import re

import pytest
import segno

from explorer.page import qr_code
from explorer.page.tabs.traces import ALONE, SCAN, show_code
from tests.helpers.server_calls import ask


def squares(svg: str) -> str:
    """The path that draws them."""
    return re.search(r' d="([^"]+)"', svg.split('class="qrline"')[1])[1]


def test_the_code_is_that_of_the_link_which_runs():
    out = io.BytesIO()
    segno.make("http://127.0.0.1:7860/#run=abc", error="l", micro=False).save(out, kind="svg", scale=4)
    assert squares(qr_code.svg("http://127.0.0.1:7860/#setup=abc")) == squares(out.getvalue().decode())


def test_no_text_of_a_link_comes_into_the_picture_and_one_too_long_is_a_sentence():
    (asked,) = qr_code.functions(None, None)
    svg = ask(asked, {"link": "http://x/#setup=<script>alert(1)</script>"})["svg"]
    assert svg.startswith("<svg") and "script" not in svg and "alert" not in svg
    assert ask(asked, {"link": "x" * 4000})["error"] == qr_code.TOO_LONG
    assert show_code("x" * 4000)["value"] == qr_code.TOO_LONG
    with pytest.raises(ValueError, match="too long"):
        qr_code.svg("x" * 4000)
    assert show_code(None)["visible"] is False


@pytest.mark.parametrize(
    ("link", "alone"),
    [
        ("http://127.0.0.1:7860/#setup=abc", True),
        ("http://localhost/#setup=abc", True),
        ("http://[::1]:7860/#setup=abc", True),
        ("http://192.168.1.4:7860/#setup=abc", False),
        ("https://demo.example.org/#setup=abc", False),
        ("http://[::1", False),
    ],
)
def test_a_code_that_no_other_device_can_open_says_so(link, alone):
    assert (ALONE in show_code(link)["value"], SCAN in show_code(link)["value"]) == (alone, not alone)
