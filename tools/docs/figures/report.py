"""The beginning of a report of six runs at the windy cliff, as a browser shows it.

Needs Playwright and Chromium, which is found on the PATH or where Playwright has installed it.
"""

import shutil
from functools import cache
from pathlib import Path

from quantail.viewing import write_report
from tools.docs.figures import _runs

WIDTH, HEIGHT = 900, 1_240  # pixels


@cache
def page() -> Path:
    """Return the page of a report."""
    risks = ("neutral", "cvar:0.1")
    runs = [_runs.cliff(risk, seed) for risk in risks for seed in range(_runs.SEEDS)]
    return write_report(runs, _runs.folder() / "report")


def draw(folder: Path, dark: bool) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        shown = browser.new_page(
            viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="dark" if dark else "light"
        )
        shown.goto(page().as_uri())
        shown.screenshot(path=folder / f"report{'-dark' * dark}.png")
        browser.close()
