"""Many people on one server: nobody sees or steers another's run, and a page that is gone stops its run."""

import time

import pytest

from explorer.runs.scheduler import UNHEARD_SECONDS
from tests.browser.test_page import press, run, start

ASKED = [
    ("explorer_pull", {"cursors": [{"view": "text", "ops": 0, "rows": 0}] * 2, "wait": 0}),
    ("explorer_control", {"action": "stop"}),
    ("explorer_trace", {"lane": 0}),
    ("explorer_inspect", {"lane": 0, "node": 8}),
    ("explorer_what_if", {"lane": 0}),
]


def steps(app, run_id: str) -> int:
    return sum(len(record.rows) for record in app.runs.find(run_id).records)


def test_even_with_its_id_another_page_cannot_read_or_steer_a_run(visit, app, slow):
    ours, theirs = visit(), visit()
    start(ours, "A secret of ours", 200)
    press(ours, "Run")
    ours.wait_for_function("decodingExplorer.run !== 'example' && decodingExplorer.lanes[0].count > 2")
    mine = ours.evaluate("decodingExplorer.run")
    theirs.wait_for_function("decodingExplorer.app.models.state === 'ready'")
    for name, request in ASKED:
        answer = theirs.evaluate("([n, r]) => decodingExplorer.call(n, r)", [name, {"run": mine, **request}])
        assert list(answer) == ["error"] and "is gone" in answer["error"]
    assert app.runs.find(mine).state == "running"
    for name, request in ASKED[:1] + ASKED[2:]:
        answer = ours.evaluate("([n, r]) => decodingExplorer.call(n, r)", [name, {"run": mine, **request}])
        assert "error" not in answer
    press(ours, "Stop")


def test_two_pages_run_at_the_same_time_and_each_gets_its_own_text(visit, app):
    pages = [visit(), visit()]
    for number, page in enumerate(pages):
        start(page, f"Story number {number} begins", 16)
    for page in pages:
        press(page, "Run")
    for page in pages:
        page.wait_for_function("decodingExplorer.state === 'done'")
    ids = [page.evaluate("decodingExplorer.run") for page in pages]
    sessions = [app.runs.find(i).session for i in ids]
    assert len(set(ids)) == len(set(sessions)) == 2 and all(len(s) >= 32 for s in sessions)
    prompts = [app.runs.find(i).records[0].trace for i in ids]
    texts = [b"".join(t.vocabulary[token] for token in t.prompt).decode() for t in prompts]
    assert texts == ["Story number 0 begins", "Story number 1 begins"]


@pytest.mark.parametrize("how", ["closed", "cut off"])
def test_a_page_that_is_gone_stops_its_run(visit, app, slow, how, monkeypatch):
    told, leave = [], app.runs.leave
    monkeypatch.setattr(app.runs, "leave", lambda session: (told.append(session), leave(session)))
    page = visit(own=True)
    start(page, "Once", 256)
    press(page, "Run")
    page.wait_for_function("decodingExplorer.run !== 'example' && decodingExplorer.lanes[0].count > 2")
    mine = app.runs.find(page.evaluate("decodingExplorer.run"))
    if how == "closed":
        page.goto("about:blank")  # as for a closed tab, the browser has time to say so
    else:
        page.context.set_offline(True)  # nothing can be said any more
    page.wait_for_timeout(2000)
    assert time.monotonic() - mine.heard >= UNHEARD_SECONDS
    assert (mine.session in told) == (how == "closed")
    assert mine.state == "running", "it came to its end before it could be stopped"
    held = steps(app, mine.id)
    page.wait_for_timeout(500)
    assert steps(app, mine.id) <= held + 1  # the step that was under way


def test_a_page_that_nobody_looks_at_goes_on(visit, app):
    page = visit(lone=True)
    page.add_init_script("Object.defineProperty(document, 'hidden', {get: () => true})")
    page.reload()
    page.wait_for_function("window.decodingExplorer && decodingExplorer.drawn")
    run(page, "Once upon a time", 24)
    assert page.evaluate("decodingExplorer.lanes.every(l => l.count > 0)")
