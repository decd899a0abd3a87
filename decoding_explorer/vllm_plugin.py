"""vLLM's entry point for the plugin: a module that has this name in a checkout and once installed."""


def register() -> None:
    """Lets vLLM's workers record; see decoders/watch/vllm/plugin.py."""
    from decoders.watch.vllm import plugin

    plugin.register()
