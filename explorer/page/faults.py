"""What a visitor reads when an event of the page fails inside the program. Gradio would show nothing."""

from typing import Any

import gradio as gr
from gradio.blocks import BlockFunction

from explorer.runs.validation import is_ours, sentence


class Page(gr.Blocks):
    """Gradio's Blocks whose events say in a message over the page that they failed; the log says where.

    Named endpoints are answered by `bad_requests` with a status instead.
    """

    async def call_function(self, block_fn: BlockFunction | int, *given: Any, **options: Any) -> dict:
        """Calls the function of an event. Raises gr.Error with one sentence if it raises anything else."""
        function = self.fns[block_fn] if isinstance(block_fn, int) else block_fn
        try:
            return await super().call_function(function, *given, **options)
        except gr.Error:
            raise
        except Exception as error:
            if function.api_visibility != "private":
                raise
            raise gr.Error(sentence(error), print_exception=not is_ours(error)) from error
