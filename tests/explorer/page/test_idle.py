"""A page and an app at rest leave the processor alone."""

from types import SimpleNamespace

import gradio as gr

from explorer.page import idle, serve


def test_the_status_tracker_of_gradio_requests_no_frames_and_no_other_file_is_changed():
    files = [path for path in serve.FRONT_END.iterdir() if path.suffix == ".js"]
    changed = {path: idle.content(path) for path in files if idle.content(path) != path.read_bytes()}
    assert len(changed) == 1
    ((path, data),) = changed.items()
    assert path.read_bytes().count(idle.EVERY_FRAME) == 1 and b"requestAnimationFrame" not in data


def test_the_queue_of_gradio_is_asked_less_often():
    with gr.Blocks() as demo:
        pass
    before = SimpleNamespace(**vars(demo._queue))
    idle.poll_less_often(demo)
    assert before.sleep_when_free < idle.EVENTS == demo._queue.sleep_when_free
    assert before.progress_update_sleep_when_free < idle.PROGRESS
    assert demo._queue.progress_update_sleep_when_free == idle.PROGRESS
