"""The data with which a page starts, before it asks any server: a finished run, names and limits.

The app's page and a saved page start in the same way.
"""

from decoders import memory_options
from decoders.constraints.settings import KINDS
from decoders.models import catalog
from decoders.registry import FAMILIES
from decoders.strategy import SWITCHED_VIEWS, constraint_views
from decoders.trace.moments import KINDS as KINDS_OF_MOMENTS
from explorer.catalog import origins, recorded_runs
from explorer.export import fields, palette
from explorer.export.bars import Around, bars_html
from explorer.export.frames import find_html, guide_html, inspector_html, lane_html
from explorer.runs.run_state import Run, answer
from explorer.runs.validation import MAX_LANES, MAX_NEW_TOKENS, MAX_PROMPT_CHARACTERS
from visualizers.analysis.cost_summary import DEFINITIONS
from visualizers.registry import titles

# What the status line says of a run, by its state; none: of the stored run with which a page starts.
STANDING = {
    "none": "A stored run. Drag the slider to replay it, or press Run to decode your own prompt.",
    "running": "Decoding …",
    "paused": "Paused. Step does one step in every lane; Run continues.",
    "stopped": "Stopped. What was decoded stays.",
    "done": "Done. Drag the slider or press ▶ to replay.",
    "failed": "No lane could continue: each says why.",
}
# The buttons of a run that make sense, by its state.
BUTTONS = {
    **dict.fromkeys(("none", "stopped", "done", "failed"), ("run", "step")),
    "starting": (),
    "running": ("step", "pause", "stop"),
    "paused": ("run", "step", "stop"),
}
SAVED = "A saved run: replay it with the slider. Decoding Explorer can decode new ones."


def page_data(
    run: Run | None,
    setup: dict,
    declarations: list[dict],
    models: dict[str, str],
    around: Around,
    saved: bool = False,
) -> dict:
    """Returns the data of a page that shows `run`, or only the lanes of `setup` if that is None.

    `setup`: its settings, `{prompt, max_new_tokens, lanes: [{strategy, parameters, seed, view}]}`;
    `declarations`: of the strategies known so far; `models`: role -> name; `saved`: see `lane_html`.
    """
    cursors = [{"view": lane.get("view"), "ops": 0, "rows": 0} for lane in setup["lanes"]]
    shown = {"run": run.id, "answer": answer(run, cursors)} if run else {"run": None, "answer": None}
    prompts = [] if saved else recorded_runs.prompts()  # nothing can be decoded in a saved page
    known = fields.known(declarations, saved)
    return {
        "example": {**setup, **shown},
        **known,
        "families": FAMILIES,
        "start": origins.START,
        "views": titles(),
        "added_views": added_views(),
        "memory": fields.memory(known["fields"], saved),
        "prompts": prompts,
        "bars": bars_html(prompts, setup["max_new_tokens"], MAX_NEW_TOKENS, models, around),
        "frames": {
            "lane": lane_html(saved),
            "guide": guide_html(saved),
            "find": find_html(),
            "inspector": inspector_html(),
            "groups": fields.groups_html(),
            "constraint": fields.constraint_html(prompts),
        },
        "saved": saved,
        "palette": palette.palette(),
        "costs": DEFINITIONS,
        "moments": [kind.kind for kind in KINDS_OF_MOMENTS],
        "buttons": BUTTONS,
        "standing": STANDING | ({"none": SAVED} if saved else {}),
        "models": models,
        "shipped": {"names": catalog.shipped(), "models": recorded_runs.MODELS},
        "limits": {"lanes": MAX_LANES, "max_new_tokens": MAX_NEW_TOKENS, "prompt": MAX_PROMPT_CHARACTERS},
    }


def added_views() -> dict[str, dict[str, tuple[str, ...]]]:
    """The views that parameters add to those of a lane's strategy: parameter -> value as text -> views."""
    return {
        "constraint": {kind: constraint_views(kind) for kind in KINDS},
        **{switch: {"true": views} for switch, views in SWITCHED_VIEWS.items()},
        "memory": {name: memory_options.views({"memory": name}) for name in memory_options.memories()},
    }
