"""The Chromium that browser tests and page benchmarks use, and its flags. Installs nothing."""

import os
import shutil
from pathlib import Path

# Popups under the address bar, which are never seen here: two internal pages that every window would load.
UNSEEN = ("WebUIOmniboxPopup", "WebUIOmniboxAimPopup")
# What Playwright itself disables; repeated here because Chromium reads only the last --disable-features.
PLAYWRIGHTS = (
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable",
    "LensOverlay",
    "MediaRouter",
    "PaintHolding",
    "ThirdPartyStoragePartitioning",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "TcpPortRandomizationWin",
    "OptimizationHints",
    "NetworkTimeServiceQuerying",
    "AimEnabled",
    "PreconnectToSearch",
)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-gpu-rasterization",  # Debian asks for it; without a GPU it costs more
    "--disable-background-networking",
    f"--disable-features={','.join(UNSEEN + PLAYWRIGHTS)}",
]
BARE = "chromium-headless-shell"  # Debian's Chromium without windows, which takes a tenth less computing
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"


def find(bare: bool = False) -> str | None:
    """The path of an installed Chromium or Chrome, Playwright's own included; None if there is none.

    `bare`: rather one that knows no windows, for tests. Benchmarks take what people use.
    """
    named = os.environ.get("CHROMIUM")
    if named:
        return named
    for name in (BARE, *NAMES) if bare else NAMES:
        if path := shutil.which(name):
            return path
    if Path(MAC).exists():
        return MAC
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
    return own if Path(own).exists() else None
