"""Gradio does what it did, without computing that nobody needs."""

import gradio as gr
import pytest

from explorer.page import lighter, serve

EVENT = {"function": "f", "status": "success", "process_time": 1.0}


def test_no_file_of_gradio_is_changed_but_those_that_are_named():
    files = [path for path in serve.FRONT_END.iterdir() if path.suffix == ".js"]
    changed = [path for path in files if lighter.content(path) != path.read_bytes()]
    names = {name for name, _, _ in lighter.CHANGES}
    assert len(changed) == len(names) and all(any(map(path.match, names)) for path in changed)


@pytest.mark.parametrize(("name", "old", "new"), lighter.CHANGES)
def test_what_is_changed_is_there_once(name, old, new):
    (path,) = serve.FRONT_END.glob(name)
    assert path.read_bytes().count(old) == 1 and new not in path.read_bytes()
    assert lighter.content(path).count(new) == 1


def blocks() -> gr.Blocks:
    with gr.Blocks() as demo:
        demo._queue.events_recorded = 1
        return demo


def test_the_queue_of_gradio_is_asked_less_often_and_computes_no_statistics():
    before, after = blocks(), blocks()
    lighter.relieve_queue(after)
    before, after = before._queue, after._queue
    assert before.sleep_when_free < lighter.EVENTS == after.sleep_when_free
    assert before.progress_update_sleep_when_free < lighter.PROGRESS == after.progress_update_sleep_when_free
    assert before.compute_analytics_summary([EVENT])["functions"]["f"]["success_rate"] == 1.0
    assert after.compute_analytics_summary([EVENT]) == {"functions": {}}
