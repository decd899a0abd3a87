"""What a visitor reads when an event of the page fails inside the program. Gradio would show nothing."""

from typing import Any

import gradio as gr
from gradio.blocks import BlockFunction

from explorer.runs.validation import is_ours, sentence


def tell(demo: gr.Blocks) -> None:
    """Lets the events of a page say in a message over it that they failed; the log says where. Named
    endpoints are answered by `bad_requests` with a status instead.
    """
    usual = demo.call_function

    async def call_function(block_fn: BlockFunction | int, *given: Any, **options: Any) -> dict:
        function = demo.fns[block_fn] if isinstance(block_fn, int) else block_fn
        try:
            return await usual(function, *given, **options)
        except gr.Error:
            raise
        except Exception as error:
            if function.api_visibility != "private":
                raise
            raise gr.Error(sentence(error), print_exception=not is_ours(error)) from error

    demo.call_function = call_function  # a class of our own would make Gradio write type stubs for it
