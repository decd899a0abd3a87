"""Installs a Chromium for the browser tests where none is found: Debian's packages where apt is at hand, else
Playwright's own.

Run by `make test`. Chromium's place can be named with CHROMIUM=/path/to/chromium.
"""

import os
import shutil
import subprocess
import sys

from explorer.benchmarks.browser import BARE, find


def main() -> None:
    """Installs a browser if none is found; exit status 1 with one sentence if that fails too."""
    if find(bare=True):
        return
    if shutil.which("apt-get") and os.geteuid() == 0:
        subprocess.run(["apt-get", "update", "-qq"], check=False)
        for package in ("chromium", BARE):  # older releases do not have the second
            subprocess.run(["apt-get", "install", "-y", "-qq", package], check=False)
    if not find(bare=True):
        subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False)
    if not find(bare=True):
        sys.exit("No Chromium was found or could be installed; install one, or set CHROMIUM to its path.")


if __name__ == "__main__":
    main()
