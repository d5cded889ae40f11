"""Screenshots of the live page with the agents of `quantail demo`, in headless Chromium."""

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from playwright.sync_api import Page, sync_playwright

from quantail.demo import DEMOS, offers
from quantail.viewing.live.serve import BOUNDS, _listen
from quantail.viewing.live.server import build_app

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
QUIET = (
    *("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
SHARPNESS = 2  # pixels of the image for each of the page
MARGIN = 8


def draw(images: Path, dark: bool) -> None:
    """Write watch.png and watch-breakout.png; the page has no dark version in the docs."""
    if dark:
        return
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        raise SystemExit(f"the screenshots need one of {', '.join(BROWSERS)} on the PATH.")
    with serving() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(QUIET))
        with opened(browser, address, "cliff", 980) as page:
            play(page, seed=3, steps=3)
            shoot(page, images / "watch.png", ".controls", ".weights")
        with opened(browser, address, "breakout", 1080) as page:
            play(page, seed=3, steps=40)
            shoot(page, images / "watch-breakout.png", ".controls", ".strip")
        browser.close()


@contextmanager
def serving() -> Iterator[str]:
    """Serve the demo from this process, and yield its address."""
    bound = _listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(build_app(offers()), **BOUNDS))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join(timeout=30)
        bound.close()


@contextmanager
def opened(browser: Any, address: str, name: str, width: int) -> Iterator[Page]:
    """Open the page in a window of this width, paused, with one of the demos."""
    page = browser.new_page(
        viewport={"width": width, "height": 800}, color_scheme="light", device_scale_factor=SHARPNESS
    )
    page.set_default_timeout(60_000)
    page.goto(address)
    page.get_by_role("button", name=DEMOS[name].title).click()
    page.wait_for_function(f"() => now && hello.offer === {list(DEMOS).index(name)} && panes.length")
    page.evaluate("() => send({ do: 'play', on: false })")
    page.wait_for_function("() => !now.playing")
    yield page
    page.close()


def play(page: Page, seed: int, steps: int) -> None:
    """Play the first steps of an episode."""
    page.locator("#seed").fill(str(seed))
    page.locator("#seed").press("Enter")
    page.wait_for_function(f"() => now.seed === {seed} && now.panes.every(pane => pane.steps === 0)")
    for step in range(1, steps + 1):
        page.locator("#step").click()
        page.wait_for_function(f"() => now.panes.every(pane => pane.steps === {step})")
    page.evaluate("() => { document.activeElement.blur(); redraw(); }")  # with ranges that fit


def shoot(page: Page, file: Path, first: str, last: str) -> None:
    """Save the part of the page from one element to another, with a margin."""
    top, bottom = page.locator(first).first.bounding_box(), page.locator(last).first.bounding_box()
    if top is None or bottom is None:
        raise SystemExit(f"the page shows no {first} or no {last}.")
    height = bottom["y"] + bottom["height"] - top["y"] + 2 * MARGIN
    width = page.evaluate("document.documentElement.clientWidth")
    clip = {"x": 0, "y": top["y"] - MARGIN, "width": width, "height": height}
    page.screenshot(path=file, clip=clip, full_page=True)
