"""`python -m tests.newcomers [TASK ...]`: does with the app what newcomers were asked to do, and judges by
what the page then shows.

Starts the app on the shipped models, or takes one that runs (--url), and drives Chromium by clicks and keys.
Prints a line per task: well, half, not, or look where only an eye can judge; with --pictures, each line ends
with the picture of how the task ended. Run by hand: it takes about ten minutes.
"""

import argparse
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, Error, sync_playwright

from explorer.benchmarks.browser import FLAGS, find
from tests.house import ROOT
from tests.newcomers import new_tasks, phone, researcher, teacher
from tests.newcomers.guest import Guest
from tests.newcomers.tasks import TASKS, Judged, Task, judged

FILES = (teacher, researcher, phone, new_tasks)  # which register the tasks, in this order


def main() -> int:
    """Reads the command line; the exit status is 1 when a task that was judged is not well."""
    parser = argparse.ArgumentParser(prog="python -m tests.newcomers", description=__doc__)
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=f"{', '.join(TASKS)}; all if none is named")
    parser.add_argument("--url", help="an app that runs, with its token, instead of one that is started here")
    parser.add_argument("--pictures", type=Path, metavar="DIR", help="saves a picture per task there")
    given = parser.parse_args()
    if unknown := [name for name in given.tasks if name not in TASKS]:
        parser.error(f"there is no task {', '.join(unknown)}")
    if (path := find()) is None:
        parser.error("no Chromium was found: install one or set CHROMIUM to its path")
    verdicts: Counter[str] = Counter()
    with served(given.url) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        for name in given.tasks or TASKS:
            verdicts[attempt(browser, url, TASKS[name], given.pictures)] += 1
        browser.close()
    print(", ".join(f"{verdicts[verdict]} {verdict}" for verdict in ("well", "half", "not", "look")))
    return int(verdicts["half"] + verdicts["not"] > 0)


@contextmanager
def served(url: str | None) -> Iterator[str]:
    """The address of an app with its token: the given one, or that of an app which is ended afterwards."""
    if url:
        yield url
        return
    command = [sys.executable, str(ROOT / "app.py"), "--device", "cpu"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        said = (line.split() for line in process.stdout or ())
        yield next(word for line in said for word in line if "?token=" in word)
        process.terminate()


def attempt(browser: Browser, url: str, task: Task, pictures: Path | None) -> str:
    """Does a task, prints its line, and takes its picture; its verdict."""
    address, _, token = url.partition("?")
    began = time.monotonic()
    with TemporaryDirectory() as folder:
        guest = Guest(browser, address, f"?{token}" if token else "", task.person, Path(folder))
        found = judged(task, guest)
        seconds = time.monotonic() - began
        if picture := pictures and taken(guest, found, pictures / f"{task.name}.png"):
            found.findings.append((True, str(picture)))
        guest.leaves()
    print(
        f"{task.name:4}{found.verdict():5} {seconds:3.0f} s  {task.person}: {task.words}. {found.facts()}",
        flush=True,
    )
    return found.verdict()


def taken(guest: Guest, found: Judged, path: Path) -> Path | None:
    """Saves a picture of the page as the task left it; None if there is no page, as on the command line."""
    if not guest.contexts:
        return None
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        guest.page.screenshot(path=path)
    except Error as error:
        found.findings.append((None, f"no picture: {str(error).splitlines()[0]}"))
        return None
    return path


if __name__ == "__main__":
    sys.exit(main())
