"""Lets all sessions of an app share Gradio's component configurations instead of computing them per session.

Gradio keeps the configuration of every component per session, so that a link can restore the values of a
page. Computing it for the 490 components of this page takes 0.1 seconds on the event loop, at the first event
of each visitor and at each call of a tool.
"""

from copy import copy
from typing import Any

import gradio as gr
from gradio.blocks import Block, BlocksConfig


class SharedConfig(BlocksConfig):
    """The components of an app. Its sessions share the configurations of components they have not changed."""

    shared: dict[int, dict]

    @classmethod
    def install(cls, demo: gr.Blocks) -> None:
        """Makes all future sessions of `demo` share configurations. Call it once `demo` is built."""
        demo.default_config = cls.copy_of(demo.default_config, {})

    @classmethod
    def copy_of(cls, other: BlocksConfig, shared: dict[int, dict]) -> "SharedConfig":
        """Copies `other`, as Gradio does for each session; `shared`: component id -> its configuration."""
        config, plain = cls(other.root_block), BlocksConfig.__copy__(other)
        for name in ("blocks", "fns", "fn_id", "renderables"):
            setattr(config, name, getattr(plain, name))
        config.shared = shared
        return config

    def __copy__(self) -> "SessionConfig":
        return SessionConfig.copy_of(self, self.shared)


class SessionConfig(SharedConfig):
    """The components of one session."""

    def config_for_block(self, _id: int, rendered_ids: list[int], block: Block, *rendered: Any) -> dict:
        """The configuration of a component; it is computed anew if this session has changed the component."""
        if any(rendered) or self.root_block.blocks.get(_id) is not block:
            return super().config_for_block(_id, rendered_ids, block, *rendered)
        if _id not in self.shared:
            self.shared[_id] = super().config_for_block(_id, rendered_ids, block)
        config = self.shared[_id]
        return config | {"props": copy(config["props"])}  # each session writes its own values into props
