"""What `python -m explorer run` and `compare` are asked for. What was mistyped is refused before torch and
transformers are imported: they take seconds.
"""

import argparse

from decoders import registry
from decoders.models.catalog import by_role
from decoders.models.names import existing_folder, resolve
from decoders.refusal import Refusal
from explorer.runs import MAX_LANES
from explorer.text_file import read_text


def checked(options: argparse.Namespace) -> tuple[str, list[dict]]:
    """The prompt, and the lanes as `requested_lanes` gives them. Raises Refusal with one sentence if they or
    the names of the models cannot be used.
    """
    lanes = requested_lanes(options)
    prompt = options.prompt if options.prompt is not None else read_text(options.prompt_file)
    if not prompt:
        raise Refusal("the prompt is empty; type at least one character.")
    check_models(options.model, options.draft)
    if options.stop_when:
        from decoders.trace.breakpoints import parse_all  # which few runs need

        parse_all(options.stop_when)
    return prompt, lanes


def requested_lanes(options: argparse.Namespace) -> list[dict]:
    """The lanes that the options ask for: `{strategy, parameters, seed}`, with the parameters that are given.

    A --set before the first --strategy belongs to that first strategy. Raises Refusal with one sentence.
    """
    lanes: list[tuple[str, dict]] = [(value, {}) for kind, value in options.lanes if kind == "NAME"]
    if len(lanes) > MAX_LANES:
        raise Refusal(f"compare takes at most {MAX_LANES} strategies, not {len(lanes)}.")
    index = -1
    for kind, value in options.lanes:
        if kind == "NAME":
            index += 1
        else:
            key, setting = split_setting(value)
            lanes[max(index, 0)][1][key] = setting
    for name, given in lanes:
        registry.check_given(name, given)
    return [{"strategy": name, "parameters": given, "seed": options.seed} for name, given in lanes]


def split_setting(setting: str) -> tuple[str, str]:
    """Splits "num_beams=4" into ("num_beams", "4"). Raises Refusal with one sentence."""
    key, equals, value = setting.partition("=")
    if not equals or not key:
        raise Refusal(f"--set takes KEY=VALUE, not {setting!r}; for example --set num_beams=4.")
    return key.strip(), value.strip()


def check_models(target: str, draft: str | None) -> None:
    """Raises Refusal with one sentence if one of these is the name of no model. What lies in the folder of a
    draft, which may be heads, is checked when it is loaded.
    """
    for role, name in by_role(target, draft).items():
        if role == "target" or existing_folder(name) is None:
            resolve(name)
