"""The beginning of a report of six runs in CartPole, as a browser shows it.

Needs Playwright and Chromium, which is found on the PATH or where Playwright has installed it.
"""

import shutil
from contextlib import chdir
from functools import cache
from pathlib import Path

from quantail.viewing import write_report
from tools.docs.figures import _runs

WIDTH, HEIGHT = 900, 1_560  # pixels
AGENTS, SEEDS = ("iqn", "dqn"), 3


@cache
def page() -> Path:
    """Return the page of a report, which names its runs as seen from the folder they are in."""
    runs = [_runs.cartpole(agent, seed) for agent in AGENTS for seed in range(SEEDS)]
    folder = _runs.folder()
    with chdir(folder):
        return folder / write_report([run.relative_to(folder) for run in runs], "report")


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
