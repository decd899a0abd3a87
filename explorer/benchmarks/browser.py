"""Which Chromium the browser tests and the page's benchmarks drive, and with what flags. Installs nothing."""

import os
import shutil
from pathlib import Path

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"


def find() -> str | None:
    """The path of an installed Chromium or Chrome, Playwright's own included; None if there is none."""
    named = os.environ.get("CHROMIUM")
    if named:
        return named
    for name in NAMES:
        if path := shutil.which(name):
            return path
    if Path(MAC).exists():
        return MAC
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
    return own if Path(own).exists() else None
