"""Finds a Chromium for the browser tests, or installs one: Debian's package where apt is at hand, else
Playwright's own.

Run by `make test`; the tests import `find`. Chromium's place can be named with CHROMIUM=/path/to/chromium.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"


def find() -> str | None:
    """The path of an installed Chromium or Chrome, Playwright's own included; None if there is none."""
    named = os.environ.get("CHROMIUM")
    if named:
        return named
    for name in NAMES:
        if found := shutil.which(name):
            return found
    if Path(MAC).exists():
        return MAC
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
    return own if Path(own).exists() else None


def main() -> None:
    """Installs a browser if none is found; exit status 1 with one sentence if that fails too."""
    if find():
        return
    if shutil.which("apt-get") and os.geteuid() == 0:
        subprocess.run(["apt-get", "update", "-qq"], check=False)
        subprocess.run(["apt-get", "install", "-y", "-qq", "chromium"], check=False)
    if not find():
        subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False)
    if not find():
        sys.exit(
            "No Chromium was found or could be installed; install one, or set CHROMIUM to its path."
        )


if __name__ == "__main__":
    main()
