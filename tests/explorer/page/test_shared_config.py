"""Descriptions of components for sessions: those that Gradio makes, made once, and each session's own."""

from types import SimpleNamespace

import gradio as gr
import pytest
from gradio.blocks import BlocksConfig
from gradio.state_holder import SessionState

from explorer.page.layout import build
from explorer.page.shared_config import SharedConfig
from explorer.runs.lane_factory import lane_maker
from explorer.runs.scheduler import Runs
from tests.helpers.ready_loader import ready_loader


@pytest.fixture(scope="module")
def page():
    """The whole page, and what Gradio itself would keep of its components for a session."""
    loader = ready_loader()
    runs = Runs(lane_maker(loader))
    demo, _ = build(runs, loader)
    ours, demo.default_config = demo.default_config, BlocksConfig.__copy__(demo.default_config)
    plain = SessionState(demo).config_values
    demo.default_config = ours
    yield SimpleNamespace(demo=demo, plain=plain)
    runs.close()


def test_each_session_has_what_gradio_says_of_every_component(page):
    for _ in range(2):
        assert SessionState(page.demo).config_values == page.plain
    assert len(page.plain) > 400


def test_components_are_described_once_for_all_sessions(page, monkeypatch):
    described, plain = [], BlocksConfig.config_for_block
    SessionState(page.demo)
    monkeypatch.setattr(
        BlocksConfig,
        "config_for_block",
        staticmethod(lambda key, *rest: described.append(key) or plain(key, *rest)),
    )
    SessionState(page.demo)
    assert described == []


def test_what_a_session_changes_is_its_own():
    with gr.Blocks() as demo:
        field, state = gr.Textbox("first", label="Field"), gr.State(1)
    SharedConfig.install(demo)
    one, other = SessionState(demo), SessionState(demo)
    one._update_value_in_config(field._id, "second")
    one[state._id] = 2
    assert one.config_values[field._id]["props"]["value"] == "second" and one[state._id] == 2
    one[field._id] = gr.Textbox("third", label="Other")
    one._update_config(field._id)  # as Gradio does where an event answers with an update
    assert one.config_values[field._id]["props"]["label"] == "Other"
    for session in (other, SessionState(demo)):
        props = session.config_values[field._id]["props"]
        assert (props["value"], props["label"], session[state._id]) == ("first", "Field", 1)
    assert demo.blocks[field._id] is field
