"""Gradio does what it did, without computing that nobody needs."""

from types import SimpleNamespace

import gradio as gr
import pytest

from explorer.page import lighter, serve


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


def test_the_queue_of_gradio_is_asked_less_often():
    with gr.Blocks() as demo:
        pass
    before = SimpleNamespace(**vars(demo._queue))
    lighter.poll_less_often(demo)
    assert before.sleep_when_free < lighter.EVENTS == demo._queue.sleep_when_free
    assert before.progress_update_sleep_when_free < lighter.PROGRESS
    assert demo._queue.progress_update_sleep_when_free == lighter.PROGRESS
