"""The real app on tiny models, and a browser to look at it. Both start once for all tests of the page,
and end after them: while Playwright runs, no other test can have an event loop of its own.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from types import SimpleNamespace

import pytest
from playwright.sync_api import expect, sync_playwright

from decoders.lane import Lane
from explorer.benchmarks.browser import FLAGS, find
from tests.browser.window import begin_again
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
FAILED = pytest.StashKey[bool]()


def pytest_exception_interact(node):
    node.stash[FAILED] = True


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item):
    """The pages that the tests of a file share end with a test that failed: neither its second try nor the
    next test stands on what it left there, half done.
    """
    if item.stash.get(FAILED, False):
        del item.stash[FAILED]
        item.session._setupstate.teardown_exact(item.getparent(pytest.Module).parent)


@pytest.fixture(scope="package")
def app():
    """The app with tiny random models: `address`, `runs`, `loader`.

    The prompt "scripted" gets hostile tokens.
    """
    from explorer.page.layout import build
    from explorer.runs.lane_factory import lane_maker
    from explorer.runs.scheduler import Runs
    from tests.helpers.launched import launched
    from tests.helpers.ready_loader import ready_loader

    loader = ready_loader()
    real = lane_maker(loader)

    def make(request):
        return [ScriptedLane(SCRIPT)] if request.prompt == "scripted" else real(request)

    runs = Runs(make)
    demo, launch = build(runs, loader)
    address = launched(demo, launch)
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
    path = find(bare=True)
    if path is None:
        pytest.fail("No Chromium was found: install one (make test does) or set CHROMIUM to its path.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(app, chromium, desks):
    """visit(width, height, **context): the app, loaded again with nothing kept in the browser, where no
    script may fail.

    `first`: as someone who was never here, to whom the recorded run is replayed. `own`: in a browser context
    of its own, for a test that changes the context or what it may ask of the network. `lone`: in a page of
    its own, for a test that changes that.
    """
    with visits(app, chromium, desks) as go:
        yield go


@pytest.fixture(scope="module")
def stay(app, chromium, desks):
    """As `visit`, for pages that the tests of a file share: to load and mount one takes two seconds of
    computing, and its first figure another two.
    """
    with visits(app, chromium, desks) as go:
        yield go


@pytest.fixture(scope="module")
def shared(stay):
    """shared(width, height): a page of that size, one for all tests of a file, as the last test left it.

    For tests that set up what they look at themselves.
    """
    return cache(stay)


@pytest.fixture(scope="module")
def begun(shared):
    """begun(**context): a page that the tests of a file share, and the settings with which it has begun."""

    @cache
    def get(**context):
        page = shared(**context)
        page.wait_for_function("decodingExplorer.app.models.state === 'ready'")
        return page, page.evaluate("decodingExplorer.app.setup()")

    return get


@pytest.fixture
def again(begun):
    """again(width, height, **context): as `visit`, but a page that the tests of a file share, brought back to
    its beginning; its models are ready. What Gradio's tabs hold is as the last test left it.
    """

    def go(width: int = 1400, height: int = 900, **options):
        page, setup = begun(**{name: value for name, value in options.items() if name not in MEDIA})
        page.emulate_media(**MEDIA | {name: value for name, value in options.items() if name in MEDIA})
        page.context.clear_permissions()
        page.set_viewport_size({"width": width, "height": height})
        begin_again(page, setup)
        return page

    return go


@pytest.fixture(scope="package")
def desks(chromium):
    """Contexts with a page each. Visits with equal wishes use the same one after the other: a browser that
    has run the page's scripts before loads it in half the computing time.
    """
    made: list[SimpleNamespace] = []
    yield made
    for desk in made:
        desk.context.close()


@contextmanager
def visits(app, chromium, desks) -> Iterator[Callable]:
    """What `visit` and `stay` are; at the end all pages but those of desks are closed."""
    used, contexts, pages, errors = [], [], [], []

    def go(width: int = 1400, height: int = 900, first=False, own=False, lone=False, **options):
        if own or "storage_state" in options:
            context = chromium.new_context(viewport={"width": width, "height": height}, **options)
            if not first:
                context.add_init_script(BEEN_HERE)
            contexts.append(context)
            page = watched(context, app.address, errors)
        else:
            media = {name: options.pop(name, usual) for name, usual in MEDIA.items()}
            desk = free_desk(desks, chromium, app.address, {"first": first, **options})
            used.append(desk)
            page = desk.page
            if lone:
                page = watched(desk.context, app.address, errors)
                pages.append(page)
            page.set_viewport_size({"width": width, "height": height})
            page.emulate_media(**media)
        page.goto(app.address, wait_until="domcontentloaded")
        page.wait_for_function("window.decodingExplorer && decodingExplorer.drawn")
        return page

    yield go
    for opened in (*pages, *contexts):
        opened.close()
    for desk in used:
        clear(desk, app.address)
        desk.free = True
        errors += desk.errors
        desk.errors.clear()
    assert not errors


def free_desk(desks: list, chromium, address: str, wishes: dict) -> SimpleNamespace:
    """One with these wishes that nobody uses; a new one if there is none."""
    found = next((desk for desk in desks if desk.free and desk.wishes == wishes), None)
    if found is None:
        options = {name: value for name, value in wishes.items() if name != "first"}
        context, errors = chromium.new_context(**options), []
        if not wishes["first"]:
            context.add_init_script(BEEN_HERE)
        page = watched(context, address, errors)
        found = SimpleNamespace(context=context, page=page, errors=errors, wishes=wishes)
        desks.append(found)
    found.free = False
    return found


def watched(context, address: str, errors: list[str]):
    """A page of a context; what goes wrong in it is added to `errors`."""
    page = context.new_page()
    page.set_default_timeout(WAIT)
    # Otherwise a condition is asked for in every frame, and frames cost more than the question.
    page.wait_for_function = partial(page.wait_for_function, polling=50)
    page.on("pageerror", lambda error: errors.append(str(error.stack)))
    page.on("request", lambda request: outside(request.url, address, errors))
    return page


def clear(desk, address: str) -> None:
    """Leaves the app, which so does not go on beside other tests, and nothing that it or a test left in the
    browser.
    """
    page = desk.page
    page.goto(f"{address}explorer-alive")  # a page of the same origin, which runs nothing
    page.evaluate("sessionStorage.clear()")
    session = desk.context.new_cdp_session(page)
    session.send("Storage.clearDataForOrigin", {"origin": address.rstrip("/"), "storageTypes": "all"})
    session.detach()
    desk.context.clear_permissions()
    page.mouse.move(0, 0)


def outside(url: str, address: str, errors: list[str]) -> None:
    """Nothing may be asked of any other machine."""
    if not url.startswith((address, "data:", "blob:", address.rstrip("/").replace("http", "ws"))):
        errors.append(f"the page asked for {url}")
