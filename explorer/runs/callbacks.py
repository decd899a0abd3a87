"""What lanes of the app, the command line and the experiments call while they decode: the tests and the
syntax of programs that their model writes, and the pauses in which other lanes compute.

The tasks are imported where a lane first asks for them: most lanes write no program.
"""

from concurrent.futures import ThreadPoolExecutor

from decoders.callbacks import Callbacks
from decoders.refusal import Refusal
from decoders.strategy import Strategy
from explorer.runs.slices import between, pause, wait
from explorer.tasks import sandbox


def pass_rate(prompt: str, written: str) -> float | None:
    """See `own_tests.pass_rate`."""
    from explorer.tasks import own_tests

    return own_tests.pass_rate(prompt, written)


def allowed(prompt: str, written: str, whole: bool) -> bool | None:
    """See `own_syntax.allowed`."""
    from explorer.tasks import own_syntax

    return own_syntax.allowed(prompt, written, whole)


PROGRAMS = ThreadPoolExecutor(sandbox.AT_ONCE, thread_name_prefix="programs")
CALLBACKS = Callbacks(pass_rate, allowed, between, pause, wait, PROGRAMS)


def check_tests(strategy: Strategy, parameters: dict, prompt: str) -> None:
    """Raises Refusal with one sentence if a lane would run programs that its model writes and that is
    off.
    """
    if not any(part.name == "tests" for part in strategy.parts(parameters)):
        return
    from explorer.tasks.own_tests import runs_code

    if runs_code(prompt) and not sandbox.protection().runs:
        raise Refusal(f"The tests of this prompt would run a program. {sandbox.protection().sentence}")
