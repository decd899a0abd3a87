"""What goes wrong around a page: the network is cut, the laptop is closed, the browser or the app is killed.

In each case the page goes on by itself, or says what is lost and saves what it has; no step is lost or
doubled.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from playwright.sync_api import expect

from explorer import alive
from explorer.benchmarks.free_port import free_port
from explorer.export import run_file
from explorer.runs import scheduler as runs_module
from tests.browser.conftest import WAIT
from tests.browser.test_page import finished, marks, press, ready, seek, start
from tests.browser.test_traces import choose, downloaded, saved, section

ROOT = Path(__file__).resolve().parents[2]
AWAY = "No connection; trying again …"
STATES = """() => {  // every sentence that the status line says from now on
  const { status } = decodingExplorer.app.bar;
  window.told = [status.textContent];
  new MutationObserver(() => told.push(status.textContent)).observe(status, { childList: true });
}"""
CALLS = "**/component_server/**"


def begin(page, tokens: int, prompt: str = "Once upon a time", steps: int = 3) -> str:
    """Starts a run, waits for its first steps and returns its id."""
    start(page, prompt, tokens)
    press(page, "Run")
    page.wait_for_function(
        "n => decodingExplorer.run !== 'example' && decodingExplorer.lanes.every(l => l.count > n)", arg=steps
    )
    return page.evaluate("decodingExplorer.run")


def status(page):
    return page.locator(".bar.status .status-text")


def counts(page) -> list[int]:
    return page.evaluate("decodingExplorer.lanes.map(l => l.count)")


def kept(page) -> None:
    """Waits until the page keeps all that it shows."""
    page.wait_for_function("decodingExplorer.app.run.kept && !decodingExplorer.app.run.kept.missing()")


def drawn(page) -> list[list[int]]:
    """The committed nodes of each lane, as its chips show them."""
    dropped = ("prompt", "rejected", "live", "unreached")
    chips = page.evaluate("decodingExplorer.lanes.map(l => l.chips.marksAt())")
    return [[c["node"] for c in lane if c["state"] not in dropped] for lane in chips]


def committed(trace) -> list[int]:
    return [e.node for s in trace.steps for e in s.events if type(e).__name__ == "Propose"]


def whole(page, app) -> None:
    """The page has every step that the server decoded, once, in its rows and in its pictures."""
    records = app.runs.find(page.evaluate("decodingExplorer.run")).records
    assert counts(page) == [len(record.trace.steps) for record in records]
    assert page.evaluate("decodingExplorer.lanes.map(l => l.rows.map(r => r.seconds))") == [
        [step.seconds for step in record.trace.steps] for record in records
    ]
    for lane, record in enumerate(records):
        shown = [m["node"] for m in marks(page, lane, 10**6) if m["kind"] in ("node", "cell", "tick")]
        born = [e.node for s in record.trace.steps for e in s.events if type(e).__name__ == "Propose"]
        assert set(born) <= set(shown) and len(shown) == len(set(shown))


def test_a_cut_network_is_said_once_and_the_run_goes_on_by_itself(visit, app, slow):
    page = visit(own=True)
    run = begin(page, 40)
    page.evaluate(STATES)
    page.context.set_offline(True)
    expect(status(page)).to_have_text(AWAY)
    held = counts(page)
    seek(page, 2)
    page.wait_for_function(
        "decodingExplorer.lanes[0].scene.paintedStep === 1"
    )  # what is here can be replayed
    page.get_by_role("region", name="Lane 1").get_by_role("tab", name="Entropy").click()
    alert = page.locator("#explorer").get_by_role("alert").first
    expect(alert).to_have_text("Another view needs the app; this one stays.")
    assert page.evaluate("decodingExplorer.lanes[0].view") == "beam_tree" and len(marks(page, 0, 1)) > 4
    press(page, "Pause")
    expect(status(page)).to_have_text(AWAY + " Pause takes effect when it is back.")
    page.locator(".chips-row .dp-chip").first.click()
    expect(alert).to_have_text("There is no connection to the app; try again when it is back.")
    page.wait_for_timeout(1500)
    assert counts(page) == held
    page.context.set_offline(False)
    expect(status(page)).to_contain_text("Paused.")
    expect(alert).to_be_hidden()
    assert app.runs.find(run).state == "paused"
    assert page.evaluate("told.filter(text => text.startsWith('No connection')).length") == 2
    press(page, "Run")
    finished(page)
    whole(page, app)


def test_answers_that_are_lost_or_cut_on_their_way_are_asked_for_again(visit, app, slow):
    page = visit(own=True)
    pulls = []

    def lose(route) -> None:
        if '"explorer_pull"' not in (route.request.post_data or ""):
            return route.continue_()
        pulls.append(len(pulls))
        if pulls[-1] not in (1, 3, 4, 6):
            return route.continue_()
        answer = route.fetch()  # the server has answered and thinks that all is well
        if pulls[-1] % 2:
            return route.abort("connectionreset")
        return route.fulfill(status=200, content_type="application/json", body=answer.text()[:-40])

    ready(page)
    page.evaluate(STATES)
    page.route(CALLS, lose)
    start(page, "Once upon a time", 16)
    press(page, "Run")
    finished(page)
    page.unroute(CALLS)
    assert len(pulls) > 7 and not page.evaluate("told.filter(text => text.includes('connection')).length")
    whole(page, app)


def test_a_network_that_falls_silent_and_a_closed_laptop(visit, app, slow, monkeypatch):
    monkeypatch.setattr(
        runs_module, "FORGET_SECONDS", 1e9, raising=False
    )  # how long runs stay is not the matter
    page = visit(own=True)
    run = app.runs.find(begin(page, 20))
    page.clock.install()
    page.route(CALLS, lambda route: None)  # no answer, and no error either
    page.route("**/explorer-alive", lambda route: route.abort("timedout"))
    page.clock.run_for(12_000)
    expect(status(page)).to_have_text(AWAY)
    page.clock.pause_at(time.time() + 60)  # no timer fires any more
    run.heard -= 6000
    held = counts(page)
    page.unroute_all()
    page.clock.fast_forward("01:40:00")
    page.clock.resume()
    page.wait_for_function("n => decodingExplorer.lanes[0].count > n", arg=held[0], timeout=20_000)
    finished(page)
    whole(page, app)


def test_a_killed_browser_finds_its_run_again_and_no_other_tab_takes_it(visit, app, slow, chromium):
    page = visit(own=True)
    begin(page, 20, "A tale that was cut off")
    press(page, "Pause")
    page.wait_for_function("decodingExplorer.state === 'paused'")
    kept(page)
    held, had = counts(page), page.evaluate("decodingExplorer.run")
    other = page.context.new_page()
    other.goto(app.address)
    ready(other)
    other.wait_for_timeout(700)
    expect(other.locator(".offers")).to_be_hidden()  # the run is on show in the first tab
    before = page.context.storage_state(indexed_db=True)
    page.context.close()
    page = visit(storage_state=before)
    assert page.evaluate("decodingExplorer.lanes.map(l => l.count > 5)") == [True, True]  # the stored run
    expect(status(page)).to_have_text("Your last run, “A tale that was cut off”, is still here.")
    press(page, "Continue")
    page.wait_for_function("id => decodingExplorer.run === id", arg=had)
    page.wait_for_function(
        "n => decodingExplorer.lanes.map(l => l.count).join() === n", arg=",".join(map(str, held))
    )
    expect(status(page)).to_contain_text("Paused.")
    expect(page.get_by_role("textbox", name="Prompt")).to_have_value("A tale that was cut off")
    press(page, "Run")
    finished(page)
    assert page.evaluate("decodingExplorer.run") == had
    whole(page, app)


def test_what_the_browser_kept_is_there_when_the_app_has_lost_it_too(visit, app):
    page = visit(own=True)
    had = begin(page, 6, "A tale that ended", 0)
    finished(page)
    kept(page)
    page.wait_for_timeout(300)
    text, before = drawn(page), page.context.storage_state(indexed_db=True)
    page.context.close()
    app.runs.drop(had)
    page = visit(storage_state=before)
    expect(status(page)).to_contain_text(
        "The app no longer has your last run, “A tale that ended”, but this browser kept it."
    )
    name, data = downloaded(page, lambda: press(page, "Save"))
    assert (
        name == "a-tale-that-ended.run.json.gz" and run_file.unpack(data)[0]["prompt"] == "A tale that ended"
    )
    press(page, "Open")
    expect(status(page)).to_contain_text("Opened again.")
    assert drawn(page) == text
    page.reload()
    press(page, "Forget")
    page.reload()
    ready(page)
    page.wait_for_timeout(700)
    expect(page.locator(".offers")).to_be_hidden()
    assert "A tale that ended" not in str(page.context.storage_state(indexed_db=True))


def test_a_run_that_made_room_for_others_is_saved_opened_again_and_branched(visit, app):
    page = visit(own=True)
    had = begin(page, 8, "A tale", 0)
    finished(page)
    kept(page)
    app.runs.drop(had)
    page.locator(".chips-row .dp-chip").last.click()  # whatever is asked of it finds out
    expect(status(page)).to_have_text(
        "The app has dropped this run to make room. "
        "What you see is kept on this page: save it, or open it again."
    )
    section(page)
    name, data = saved(page, "Data (JSON)")
    page.get_by_role("tab", name="Decode", exact=True).click()
    traces = run_file.unpack(data)[1]
    assert name == "a-tale.run.json.gz"
    assert page.evaluate("decodingExplorer.lanes.map(l => l.count)") == [len(t.steps) for t in traces]
    press(page, "Reopen")
    expect(status(page)).to_contain_text("Opened again.")
    lane = page.get_by_role("region", name="Lane 2")
    lane.get_by_role("tab", name="Entropy").click()
    page.wait_for_function(
        "decodingExplorer.lanes[1].scene.paintedStep === decodingExplorer.lanes[1].count - 1"
    )
    again = page.evaluate("decodingExplorer.run")
    node = committed(traces[0])[-1]
    branch = {"run": again, "lane": 0, "node": node, "token": 5, "max_new_tokens": 60}
    grown = page.evaluate("request => decodingExplorer.call('explorer_branch', request)", branch)
    assert grown["run"] == again and grown["lane"] == 2


@pytest.mark.parametrize(
    ("said", "calls", "sentence"),
    [
        (
            {"status": 401, "body": "no"},
            {"status": 401, "body": "no"},
            "The app was started again with another address: open the address that it printed.",
        ),
        (
            {"json": {"started": "later", "version": "other"}},
            {"status": 404, "json": {"detail": "There is no such function."}},
            "The app was started again as another version: reload this page.",
        ),
    ],
    ids=["another address", "another version"],
)
def test_an_app_that_no_longer_understands_the_page_is_said_and_the_run_is_saved(
    visit, app, slow, said, calls, sentence
):
    page = visit(own=True)
    begin(page, 400)  # also on a slow machine it still decodes when the app is there again
    page.wait_for_function("decodingExplorer.app.run.kept?.steps.every(n => n > 0)")  # while more comes
    page.route(CALLS, lambda route: route.fulfill(**calls))
    page.route("**/explorer-alive", lambda route: route.fulfill(**said))
    expect(status(page)).to_contain_text(sentence)
    _, data = downloaded(page, lambda: press(page, "Save"))
    assert len(run_file.unpack(data)[1]) == 2
    page.unroute_all()
    expect(status(page)).to_contain_text("Decoding …")
    press(page, "Stop")


@pytest.fixture(scope="module", autouse=True)
def served():
    """An app in a process of its own, which comes up while other tests run: (port, process)."""
    port = free_port()
    command = [sys.executable, "-m", "tests.browser.tiny_server", str(port)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    yield port, process
    process.kill()
    process.wait()


@pytest.fixture
def mortal(app, served, monkeypatch):
    """The same as `address`, `kill()`, and `again()`: another start at that address."""
    port, process = served
    while process.poll() is None:
        with socket.socket() as knock:
            if knock.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.1)
    launched = []

    class Mortal:
        address = f"http://127.0.0.1:{port}/"

        def kill(self) -> None:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()

        def again(self) -> None:
            """In this process, as models take long to import; it counts its components as a new one does."""
            from gradio.context import Context

            from explorer.page.layout import build

            monkeypatch.setattr(Context, "id", 0)
            demo, launch = build(app.runs, app.loader)
            demo.launch(server_name="127.0.0.1", server_port=port, prevent_thread_lock=True, **launch)
            launched.append(demo)

    monkeypatch.setattr(alive, "STARTED", "another start")
    yield Mortal()
    for demo in launched:
        demo.close()


def test_a_killed_app_that_comes_back_takes_the_run_again(mortal, chromium):
    context = chromium.new_context(viewport={"width": 1400, "height": 900})
    page, loaded = context.new_page(), []
    page.set_default_timeout(WAIT)
    page.on("framenavigated", lambda frame: loaded.append(frame.url))
    page.goto(mortal.address, wait_until="domcontentloaded")
    page.wait_for_function("decodingExplorer.app.models.sentence && window.gradio_config")
    page.get_by_label("max_new_tokens").fill("300")
    press(page, "Run")
    page.wait_for_function("decodingExplorer.run !== 'example' && decodingExplorer.lanes[1].count > 12")
    page.wait_for_function("decodingExplorer.app.run.kept?.steps.every(n => n > 6)")  # shown below
    mortal.kill()
    expect(status(page)).to_have_text(AWAY)
    steps = page.evaluate("decodingExplorer.app.run.kept.steps")
    text = drawn(page)
    assert min(steps) > 6  # what is kept may lag behind what is shown, or be ahead of it
    mortal.again()
    expect(status(page)).to_contain_text("The app was started again and no longer has this run. What you see")
    assert drawn(page) == text and loaded == [mortal.address]  # nothing went, and nobody reloaded the page
    name, data = downloaded(page, lambda: press(page, "Save"))
    _, traces = run_file.unpack(data)
    assert name == "once-upon-a-time.run.json.gz" and [len(t.steps) for t in traces] == steps
    held = [committed(trace) for trace in traces]
    assert [len(nodes) for nodes in held] == steps
    assert all(a[: len(b)] == b[: len(a)] for a, b in zip(held, text, strict=True))
    press(page, "Reopen")
    expect(status(page)).to_contain_text("Opened again.")
    assert drawn(page) == held
    page.get_by_role("region", name="Lane 1").get_by_role("tab", name="Text").click()
    expect(page.locator(".lane:nth-child(1) .text-view .dp-chip").nth(6)).to_be_visible()
    section(page)
    choose(page, "again.run.json.gz", data)
    expect(page.get_by_text("Opened again.run.json.gz.")).to_be_visible()
    context.close()
