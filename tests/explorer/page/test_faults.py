"""What a visitor reads when an event or a call of the page fails: a refusal as it is, a fault as a fault."""

import asyncio
import json

import gradio as gr
import pytest

from decoders.refusal import Refusal
from explorer.page import faults
from explorer.runs.validation import as_json

REFUSAL = "The prompt is empty; type at least one character."
FAULT = "This failed inside the program (ValueError); the log of the app says where."


def failing(error: Exception):
    def fail() -> str:
        raise error

    return fail


@pytest.mark.parametrize(
    "error, told, printed",
    [(Refusal(REFUSAL), REFUSAL, False), (ValueError("not enough values to unpack"), FAULT, True)],
)
def test_an_event_says_that_it_failed(error, told, printed):
    with gr.Blocks() as demo:
        gr.Button().click(failing(error), None, gr.Markdown(), api_visibility="private")
    faults.tell(demo)
    with pytest.raises(gr.Error) as raised:
        asyncio.run(demo.call_function(0, []))
    assert raised.value.message == told and raised.value.print_exception is printed


def test_a_named_endpoint_is_answered_with_a_status_instead():
    with gr.Blocks() as demo:
        gr.Button().click(failing(ValueError("a fault")), None, gr.Markdown(), api_name="named")
    faults.tell(demo)
    with pytest.raises(ValueError, match="a fault"):
        asyncio.run(demo.call_function(0, []))


@pytest.mark.parametrize("error, told", [(Refusal(REFUSAL), REFUSAL), (ValueError("a fault"), FAULT)])
def test_a_call_shows_only_refusals_as_advice(error, told):
    async def called():
        raise error

    assert json.loads(asyncio.run(as_json(called()))) == {"error": told}
