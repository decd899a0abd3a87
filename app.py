"""Starts Decoding Explorer; `python app.py --help` lists the options.

A Hugging Face Space runs this file, too. It knows how the parts are put together and nothing else.
"""

import argparse
import atexit
import errno
import gc
import os
import shutil
import signal
import socket
import sys
import tempfile
from typing import Any

from decoders.refusal import Refusal

os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # before gradio is imported: nothing leaves this machine


def options_parser() -> argparse.ArgumentParser:
    """The options of the app."""
    from decoders.models.address import ENGINE_HELP, ENGINES
    from decoders.models.catalog import DRAFT, TARGET
    from explorer.cli_options import device_option, kv_option

    parser = argparse.ArgumentParser(
        description="Watch language models decode, side by side and step by step."
    )
    parser.add_argument("--host", help="address to listen on; 0.0.0.0 for all (default: this machine only)")
    parser.add_argument("--port", type=int, help="port to listen on (default: the first free one from 7860)")
    parser.add_argument(
        "--model",
        default=TARGET,
        help="target model: a shipped name, a Hub id, a folder or http://host:port/v1#name",
    )
    parser.add_argument(
        "--draft",
        help="draft model, named in the same ways; several separated by commas, or none (default: "
        f"{DRAFT} for a target with its tokens, else none)",
    )
    parser.add_argument(
        "--heads",
        action="append",
        default=[],
        metavar="FOLDER",
        help="trained heads for these two models, see docs/heads.md (can be repeated)",
    )
    parser.add_argument(
        "--strategies",
        action="append",
        default=[],
        metavar="FILE",
        help="a Python file that declares strategies of your own (can be repeated)",
    )
    parser.add_argument("--engine", default=ENGINES[0], choices=ENGINES, help=ENGINE_HELP)
    device_option(parser)
    kv_option(parser)
    parser.add_argument(
        "--capture",
        action="store_true",
        help="on a GPU, record forward passes as CUDA graphs: several times faster, but most models then "
        "show no attention",
    )
    parser.add_argument(
        "--models",
        help="models that visitors may choose: any (including folders and Hub ids), embedded (those that "
        "come with the app), or names separated by commas (default: any if only this machine can "
        "reach the app, else embedded)",
    )
    parser.add_argument(
        "--share", action="store_true", help="also create a public link through Gradio's servers"
    )
    parser.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="ADDRESS",
        help="another address at which the app is opened, such as that of a proxy: https://demo.example.org "
        "(can be repeated)",
    )
    parser.add_argument(
        "--follow",
        metavar="FOLDER",
        help="list the requests that vLLM records into this folder, and follow them live: everybody who can "
        "reach the app can then read their texts",
    )
    parser.add_argument(
        "--run-code",
        action="store_true",
        help="run programs written by a model even if this system cannot sandbox them: anyone who can reach "
        "the app can then run any program",
    )
    return parser


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    """Parses the command line; unusable arguments end the program with one sentence and exit status 2."""
    from decoders.models.address import held_by
    from decoders.models.catalog import by_role
    from decoders.models.names import resolve
    from decoders.models.shared_tokens import default_draft
    from decoders.registry import include
    from decoders.watch.vllm.folder import Folder
    from explorer.access import LOOPBACK, Access, chosen_token

    parser = options_parser()
    options = parser.parse_args(given)
    options.model = held_by(options.engine, options.model)
    options.draft = options.draft or default_draft(options.model) or "none"
    if options.port is not None and not 0 < options.port < 65536:
        parser.error(f"--port must be a number from 1 to 65535, not {options.port}.")
    host = options.host or os.environ.get("GRADIO_SERVER_NAME", LOOPBACK[0])
    shares = options.share or os.environ.get("GRADIO_SHARE", "").lower() == "true"
    try:
        for name in by_role(options.model, None if options.draft == "none" else options.draft).values():
            resolve(name)
        for path in options.strategies:
            include(path)
        options.folder = Folder(options.follow) if options.follow else None
        options.allowed = allowed_models(options.models, public=shares or host not in LOOPBACK)
        token = chosen_token() if options.allowed is None else None
        options.access = Access(host, options.allow_origin, token)
    except Refusal as error:
        parser.error(str(error))
    return options


def allowed_models(models: str | None, public: bool) -> frozenset[str] | None:
    """The names of the models that visitors may choose; None for all. Refusal for an unknown name."""
    from decoders.models.catalog import shipped
    from decoders.models.names import resolve

    chosen = models or ("embedded" if public else "any")
    if chosen == "any":
        return None
    if chosen == "embedded":
        return frozenset(shipped())
    names = frozenset(name.strip() for name in chosen.split(",") if name.strip())
    for name in names:
        resolve(name)
    return names


def make(options: argparse.Namespace) -> tuple[Any, dict[str, Any], Any]:
    """Returns the Gradio app, its launch arguments, and the loader of its models, not yet started."""
    from explorer.page.import_gradio import import_gradio

    import_gradio()
    from explorer.catalog import opening_lanes, recorded_runs
    from explorer.page.layout import build
    from explorer.runs.lane_factory import lane_maker
    from explorer.runs.model_pool import Loader
    from explorer.runs.scheduler import Runs
    from explorer.tasks import sandbox

    if options.run_code:
        sandbox.allow_unsealed()
    draft = None if options.draft == "none" else options.draft
    loader = Loader(options.model, draft, options.device, options.allowed, options.heads, options.capture)
    stored = loader.names == recorded_runs.MODELS  # the first picture is never one of other models
    opening = None if stored else opening_lanes.expected(loader.names)
    demo, launch = build(Runs(lane_maker(loader)), loader, options.access, opening, options.folder)
    return demo, launch, loader


def use_private_temp_folder() -> None:
    """Gives Gradio a folder for the files that visitors save and open. Only this user can read it, and it is
    deleted when the app ends. A folder that is already set in the environment is used unchanged and kept.
    """
    if "GRADIO_TEMP_DIR" not in os.environ:
        folder = os.environ["GRADIO_TEMP_DIR"] = tempfile.mkdtemp(prefix="decoding-explorer-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        signal.signal(signal.SIGTERM, end)  # a bare SIGTERM would skip atexit


def end(*_: object) -> None:
    """Ends the app at its first SIGTERM; make passes on a second one, which must not interrupt that."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(0)


def unusable_address(host: str | None, port: int | None) -> str | None:
    """The sentence that says why the app cannot listen at this address; None if it can."""
    host = (host or os.environ.get("GRADIO_SERVER_NAME") or "127.0.0.1").strip("[]")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port or 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            if os.name == "posix":  # elsewhere this would let two programs listen at one port
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return f"Port {port} is taken by another program; choose another --port."
        if error.errno == errno.EACCES:
            return f"Port {port} is reserved for the system; choose a --port from 1024 on."
        return f"This machine cannot listen at {host!r}; choose another --host."
    return None


def main(given: list[str] | None = None) -> int:
    """Runs the app until it is interrupted. Returns the exit status."""
    gc.disable()  # imports make many objects that live on; scanning them again and again costs seconds
    from explorer import tidying

    options = arguments(given)
    if problem := unusable_address(options.host, options.port):
        print(problem, file=sys.stderr)
        return 2
    use_private_temp_folder()
    demo, launch, loader = make(options)
    loader.start()
    try:
        _, address, shared = demo.launch(
            server_name=options.host,
            server_port=options.port,
            share=options.share,
            prevent_thread_lock=True,
            **launch,
        )
    except OSError:  # Gradio tried all ports that it may use
        print("No port that the app may use is free; choose another --port.", file=sys.stderr)
        return 2
    if shared:
        options.access.allow(shared)
    token = f"?token={options.access.token}" if options.access.token else ""
    places = " and at ".join(place + token for place in (address, shared) if place)
    print(f"Decoding Explorer is at {places} (Ctrl+C ends it)", flush=True)
    loader.done.wait()
    tidying.begin()
    print(loader.sentence, file=sys.stderr if loader.state == "failed" else sys.stdout, flush=True)
    demo.block_thread()
    return 0


if __name__ == "__main__":
    sys.exit(main())
