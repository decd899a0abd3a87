"""What Gradio notes of each component for each session, described once for all sessions.

It keeps a description of all components per session, so that links could restore a page's values. To make
these for the 490 components of this page takes a tenth of a second on the event loop, at the first event of
each visitor and at each call of a tool. Knows Gradio's sessions, nothing of the page.
"""

from copy import copy
from typing import Any

import gradio as gr
from gradio.blocks import Block, BlocksConfig


class OncePerApp(BlocksConfig):
    """The components of an app, whose sessions share what is said of those that they have not changed."""

    known: dict[int, dict]

    @classmethod
    def take_over(cls, demo: gr.Blocks) -> None:
        """From now on the sessions of `demo`, which is built, share their descriptions."""
        demo.default_config = cls.like(demo.default_config, {})

    @classmethod
    def like(cls, other: BlocksConfig, known: dict[int, dict]) -> "OncePerApp":
        """A copy, as Gradio makes one for each session."""
        made, plain = cls(other.root_block), BlocksConfig.__copy__(other)
        for name in ("blocks", "fns", "fn_id", "renderables"):
            setattr(made, name, getattr(plain, name))
        made.known = known
        return made

    def __copy__(self) -> "OncePerSession":
        return OncePerSession.like(self, self.known)


class OncePerSession(OncePerApp):
    """The components of a session."""

    def config_for_block(self, _id: int, rendered_ids: list[int], block: Block, *rendered: Any) -> dict:
        """The description of a component; one that this session has changed is described again."""
        if any(rendered) or self.root_block.blocks.get(_id) is not block:
            return super().config_for_block(_id, rendered_ids, block, *rendered)
        if _id not in self.known:
            self.known[_id] = super().config_for_block(_id, rendered_ids, block)
        found = self.known[_id]
        return found | {"props": copy(found["props"])}  # a session writes its own values there
