"""The real app on tiny models, and a browser to look at it. Both start once for all tests of the page,
and end after them: while Playwright runs, no other test can have an event loop of its own.
"""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from types import SimpleNamespace

import pytest
from playwright.sync_api import expect, sync_playwright

from decoders.lane import Lane
from explorer.benchmarks.browser import FLAGS, find
from tests.helpers.scripted_lane import ScriptedLane

WAIT = 60_000  # milliseconds: on a busy machine 40 tokens may take half of it
expect.set_options(timeout=WAIT)
# In a browser of someone who has seen the page before: nothing is replayed by itself.
BEEN_HERE = "try { localStorage.setItem('explorer-welcome', 'yes'); } catch {}"
# What a page may be shown with, as it is where nobody asks for more.
MEDIA = {
    "media": "screen",
    "color_scheme": "light",
    "reduced_motion": "no-preference",
    "forced_colors": "none",
}
HOSTILE = '<img src=x onerror="window.hacked=1">'
SCRIPT = [HOSTILE.encode(), b"<b>", b"&amp;", b"</script>", b"\n", b" end"]


@pytest.fixture(scope="package")
def app():
    """The app with tiny random models: `address`, `runs`, `loader`.

    The prompt "scripted" gets hostile tokens.
    """
    from explorer.page.layout import build
    from explorer.runs.lane_factory import lane_maker
    from explorer.runs.scheduler import Runs
    from tests.helpers.ready_loader import ready_loader

    loader = ready_loader()
    real = lane_maker(loader)

    def make(request):
        return [ScriptedLane(SCRIPT)] if request["prompt"] == "scripted" else real(request)

    runs = Runs(make)
    demo, launch = build(runs, loader)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    _, address, _ = demo.launch(server_name="127.0.0.1", server_port=port, prevent_thread_lock=True, **launch)
    yield SimpleNamespace(address=address, runs=runs, loader=loader)
    demo.close()
    runs.close()


@pytest.fixture
def slow(monkeypatch):
    """Steps that take long enough for something to happen between two of them."""
    advance = Lane.advance
    monkeypatch.setattr(Lane, "advance", lambda lane: (time.sleep(0.1), advance(lane))[1])


@pytest.fixture(scope="package")
def chromium():
    """A browser, started once."""
    path = find()
    if path is None:
        pytest.fail("No Chromium was found: install one (make test does) or set CHROMIUM to its path.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(app, chromium, desk):
    """visit(width, height, **context): the app, loaded again with nothing kept in the browser, where no
    script may fail.

    `first`: as someone who was never here, to whom the recorded run is replayed. `own`: in a browser context
    of its own, for a test that changes the context or what the page may ask of the network.
    """
    with visits(app, chromium, desk) as go:
        yield go


@pytest.fixture(scope="module")
def stay(app, chromium):
    """As `visit`, for pages that the tests of a file share: to load and mount one takes two seconds of
    computing, and its first figure another two.
    """
    with visits(app, chromium) as go:
        yield go


@pytest.fixture(scope="module")
def shared(stay):
    """shared(width, height): a page of that size, one for all tests of a file, as the last test left it.

    For tests that set up what they look at themselves.
    """
    return cache(stay)


@pytest.fixture(scope="package")
def desk(app, chromium):
    """A context and a page that visits without wishes of their own share one after the other: a browser that
    has run the page's scripts before loads it in half the computing time.
    """
    context = chromium.new_context()
    context.add_init_script(BEEN_HERE)
    errors: list[str] = []
    yield SimpleNamespace(context=context, page=watched(context, app.address, errors), errors=errors)
    context.close()


@contextmanager
def visits(app, chromium, desk=None) -> Iterator[Callable]:
    """What `visit` and `stay` are; closes all pages but the desk's at the end."""
    contexts, errors, free = [], [], desk

    def go(width: int = 1400, height: int = 900, first: bool = False, own: bool = False, **options):
        nonlocal free
        if free and not (first or own or options.keys() - MEDIA.keys()):
            page, free = cleared(free, app.address), None
            page.set_viewport_size({"width": width, "height": height})
            page.emulate_media(**MEDIA | options)
        else:
            context = chromium.new_context(viewport={"width": width, "height": height}, **options)
            if not first:
                context.add_init_script(BEEN_HERE)
            contexts.append(context)
            page = watched(context, app.address, errors)
        page.goto(app.address, wait_until="domcontentloaded")
        page.wait_for_function("window.decodingExplorer && decodingExplorer.drawn")
        return page

    yield go
    for context in contexts:
        context.close()
    assert not errors
    assert desk is None or not desk.errors


def watched(context, address: str, errors: list[str]):
    """A page of a context; what goes wrong in it is added to `errors`."""
    page = context.new_page()
    page.set_default_timeout(WAIT)
    # Otherwise a condition is asked for in every frame, and frames cost more than the question.
    page.wait_for_function = partial(page.wait_for_function, polling=50)
    page.on("pageerror", lambda error: errors.append(str(error.stack)))
    page.on("request", lambda request: outside(request.url, address, errors))
    return page


def cleared(desk, address: str):
    """The desk's page without the app, and without anything that the app or a test left in the browser."""
    page = desk.page
    page.goto(f"{address}explorer-alive")  # a page of the same origin, which runs nothing
    page.evaluate("sessionStorage.clear()")
    session = desk.context.new_cdp_session(page)
    session.send("Storage.clearDataForOrigin", {"origin": address.rstrip("/"), "storageTypes": "all"})
    session.detach()
    page.mouse.move(0, 0)
    desk.errors.clear()
    return page


def outside(url: str, address: str, errors: list[str]) -> None:
    """Nothing may be asked of any other machine."""
    if not url.startswith((address, "data:", "blob:", address.rstrip("/").replace("http", "ws"))):
        errors.append(f"the page asked for {url}")
