"""Makes the lanes of a run from a checked request. Knows lanes and models, nothing of runs or pages."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from decoders.callbacks import Callbacks
from decoders.refusal import Refusal
from explorer.runs.model_pool import Loader, share_cores
from explorer.runs.slices import between, pause, wait
from explorer.tasks import sandbox
from explorer.tasks.own_syntax import allowed
from explorer.tasks.own_tests import pass_rate, runs_code

PROGRAMS = ThreadPoolExecutor(sandbox.AT_ONCE, thread_name_prefix="programs")
# for lanes of the app, the CLI and the experiments
CALLBACKS = Callbacks(pass_rate, allowed, between, pause, wait, PROGRAMS)


def lane_maker(loader: Loader) -> Callable[[dict], list]:
    """Returns a function that makes the lanes of a checked request; it waits for the models. See `Runs`."""

    def make(request: dict) -> list:
        chosen = loader.find(request.get("models"))
        models = chosen.wait()
        from decoders.lane import Lane, Limits  # torch is imported by now

        share_cores(models)
        prompt = prompt_tokens(models["target"], request["prompt"], request.get("chat"))
        limits = Limits(max_new_tokens=request["max_new_tokens"])
        lanes: list = []
        for lane in request["lanes"]:
            try:
                wanted = (lane["strategy"], prompt, models, lane["parameters"], lane["seed"], limits)
                lanes.append(Lane(*wanted, begin=lane.get("begin"), callbacks=CALLBACKS))
                check_tests(lanes[-1].strategy, lanes[-1].parameters, text_before(lanes[-1]))
            except Refusal as error:
                for made in lanes:
                    made.close()
                where = f"Lane {len(lanes) + 1}: " if len(request["lanes"]) > 1 else ""
                raise Refusal(f"{where}{error}") from error
        chosen.lanes.update(lanes)
        return lanes

    return make


def check_tests(strategy, parameters: dict, prompt: str) -> None:
    """Raises ValueError with one sentence if a lane would run programs that its model writes and that is
    off.
    """
    runs = any(part.name == "tests" for part in strategy.parts(parameters)) and runs_code(prompt)
    if runs and not sandbox.protection().runs:
        raise Refusal(f"The tests of this prompt would run a program. {sandbox.protection().sentence}")


def text_before(lane) -> str:
    """The text before a lane's first own token: the prompt and the tokens that it was given to begin with."""
    from decoders.search.stepwise.scorers import decoded

    return decoded(lane, lane.tree.path(lane.tip))


def prompt_tokens(target, prompt: str, chat: dict | None) -> list[int]:
    """Token ids of a prompt, rendered with the chat template if there is a chat. ValueError with one
    sentence.
    """
    if chat is None:
        return target.encode(prompt)
    return target.cut(target.render(prompt, chat["system"]))
