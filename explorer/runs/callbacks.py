"""What lanes of the app, the command line and the experiments call while they decode: the tests and the
syntax of programs that their model writes, and the pauses in which other lanes compute.
"""

from concurrent.futures import ThreadPoolExecutor

from decoders.callbacks import Callbacks
from decoders.refusal import Refusal
from decoders.strategy import Strategy
from explorer.runs.slices import between, pause, wait
from explorer.tasks import sandbox
from explorer.tasks.own_syntax import allowed
from explorer.tasks.own_tests import pass_rate, runs_code

PROGRAMS = ThreadPoolExecutor(sandbox.AT_ONCE, thread_name_prefix="programs")
CALLBACKS = Callbacks(pass_rate, allowed, between, pause, wait, PROGRAMS)


def check_tests(strategy: Strategy, parameters: dict, prompt: str) -> None:
    """Raises Refusal with one sentence if a lane would run programs that its model writes and that is
    off.
    """
    runs = any(part.name == "tests" for part in strategy.parts(parameters)) and runs_code(prompt)
    if runs and not sandbox.protection().runs:
        raise Refusal(f"The tests of this prompt would run a program. {sandbox.protection().sentence}")
