"""`python -m explorer lens NAME`: what a lens sees in a text, as sentences, a figure, a graph or JSON."""

import argparse
import json

from decoders.lenses.registry import find, lenses, look
from decoders.refusal import Refusal
from explorer.text_file import read_text


def command(options: argparse.Namespace) -> None:
    """Runs a lens, or lists all lenses without a name. Refusal with one sentence."""
    if options.name is None:
        print_all(lenses())
        return
    lens, given = find(options.name), parse_settings(options.settings)
    read, shown = lens.check(given)
    text = options.prompt
    if text is None and options.prompt_file is not None:
        text = read_text(options.prompt_file)
    if not text:
        raise Refusal("name a text with --prompt or --prompt-file.")
    if options.graph and lens.name != "flow":
        raise Refusal("--graph writes the routes of the lens flow; use it only with flow.")

    from decoders.models.loading import load

    model = load(options.model, options.device)
    frame = look(lens.name, model, model.encode(text), read)
    if options.out:
        save_figure(lens, frame, options, shown)
    if options.graph:
        from visualizers.graphs import save
        from visualizers.graphs.flow_routes import routes

        save(routes(frame, tau=shown["tau"], renormalise=shown["renormalise"]), options.graph)
    if options.json:
        print(json.dumps(frame.to_json()))
    else:
        print(f"{frame.says}\n{frame.cost}")


def save_figure(lens, frame, options: argparse.Namespace, shown: dict) -> None:
    """Writes one figure of a frame. Refusal with one sentence for an unknown name."""
    from visualizers.figures import save
    from visualizers.figures.lenses import figures

    name = options.figure or lens.figures[0]
    if name not in lens.figures:
        raise Refusal(f"{lens.title} has no figure {name!r}; choose one of: {', '.join(lens.figures)}.")
    save(figures((name,), frame, "light", shown)[0], options.out)


def parse_settings(given: list[str]) -> dict[str, str]:
    """The options given with --set. Refusal with one sentence."""
    pairs = [one.partition("=") for one in given]
    for name, equals, _ in pairs:
        if not equals or not name:
            raise Refusal(f"--set takes KEY=VALUE, not {name!r}; for example --set tau=0.02.")
    return {name.strip(): value for name, _, value in pairs}


def print_all(lenses: dict) -> None:
    """Prints every lens with its options."""
    for name, lens in lenses.items():
        print(f"{name:10} {lens.summary}")
        for p in (*lens.parameters, *lens.shows):
            print(f"{'':10}   {p.name} = {p.default}: {p.help}")
