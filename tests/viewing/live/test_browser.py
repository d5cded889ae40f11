"""The page in a real browser: headless Chromium, controlled by keys and buttons."""

import re
import shutil

import pytest
from playwright.sync_api import expect, sync_playwright

from quantail.demo import folder, offers
from tests.helpers.serving import serving

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]


@pytest.fixture(scope="module")
def chromium():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium, served):
    """The page, open and playing; any console error or request to another host is a failure."""
    tab = chromium.new_page(viewport={"width": 1280, "height": 720})
    tab.set_default_timeout(30_000)
    wrong = []
    tab.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("request", lambda request: None if local(request.url, served) else wrong.append(request.url))
    tab.goto(served.page)
    tab.locator(".pane[data-chosen]").wait_for()
    yield tab
    tab.close()
    assert wrong == []


def local(url, served):
    return url.startswith((served.page, "data:"))


def chosen(page, pane=0):
    return page.locator(".pane").nth(pane)


def slide(page, eta, pane=0):
    """Move the slider, with an input event."""
    page.locator(".eta").nth(pane).fill(str(eta))


def test_changing_the_risk_measure_changes_the_action_at_once(page):
    page.locator("#play").click()
    expect(page.locator("#play")).to_have_text("play")
    page.locator("#restart").click()
    expect(chosen(page)).to_have_attribute("data-chosen", "risky")
    page.locator(".measure").select_option("cvar")
    slide(page, 0.05)
    expect(chosen(page)).to_have_attribute("data-risk", "cvar:0.05")
    expect(chosen(page)).to_have_attribute("data-chosen", "sure")
    expect(page.locator(".actions li.chosen")).to_contain_text("sure")
    expect(page.locator(".game .status")).to_have_text("step 0, score 0")
    page.locator("#step").click()
    expect(page.locator(".game .status")).to_have_text("step 1, score 1, terminated")
    slide(page, 1)
    page.locator("#restart").click()
    expect(chosen(page)).to_have_attribute("data-chosen", "risky")


def test_every_control_has_a_key(page):
    page.keyboard.press(" ")
    expect(page.locator("#play")).to_have_text("play")
    page.keyboard.press("d")
    expect(page.locator("#density")).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".distribution figcaption")).to_contain_text("density")
    page.keyboard.press("[")
    expect(chosen(page)).to_have_attribute("data-risk", "cvar:0.95")
    page.keyboard.press("0")
    expect(chosen(page)).to_have_attribute("data-risk", "neutral")
    page.locator("#seed").fill("41")
    page.locator("#seed").press("Enter")
    page.locator("#seed").blur()
    page.keyboard.press("n")
    expect(page.locator("#seed")).to_have_value("42")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".game .status")).to_contain_text("step 1")
    page.keyboard.press("-")
    expect(page.locator("#rate")).to_contain_text("2/s")
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()


def test_two_risk_measures_play_side_by_side_with_their_own_controls(page):
    page.locator("#play").click()
    page.locator("#compare").click()
    expect(page.locator(".pane")).to_have_count(2)
    page.locator("#restart").click()
    expect(chosen(page, 0)).to_have_attribute("data-chosen", "risky")
    expect(chosen(page, 1)).to_have_attribute("data-chosen", "sure")
    slide(page, 1, pane=1)
    expect(chosen(page, 1)).to_have_attribute("data-chosen", "risky")
    expect(chosen(page, 0)).to_have_attribute("data-risk", "neutral")
    page.locator("#compare").click()
    expect(page.locator(".pane")).to_have_count(1)


def test_the_plots_are_drawn_and_fit_a_small_screen_in_light_and_dark(page):
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 720})
            page.wait_for_function(
                "() => [...document.querySelectorAll('.plot canvas')].length === 3 && "
                "document.documentElement.scrollWidth <= innerWidth"
            )
            drawn = page.evaluate(
                """() => [...document.querySelectorAll('.plot canvas')].map(canvas => {
                    const { width, height } = canvas;
                    const { data } = canvas.getContext('2d').getImageData(0, 0, width, height);
                    return data.some((value, index) => index % 4 === 3 && value > 0);
                })"""
            )
            assert drawn == [True, True, True]


def test_one_steps_through_the_checkpoints_of_a_run(chromium):
    with serving(folder("cliff")) as running:
        tab = chromium.new_page()
        tab.goto(running.page)
        tab.locator(".pane[data-chosen]").wait_for(timeout=30_000)
        tab.keyboard.press(" ")
        expect(tab.locator(".checkpoint")).to_have_value("60000")
        expect(tab.locator(".later")).to_be_disabled()
        tab.locator(".earlier").click()
        expect(tab.locator(".checkpoint")).to_have_value("32000")
        tab.keyboard.press(",")
        expect(tab.locator(".checkpoint")).to_have_value("20000")
        tab.keyboard.press(".")
        expect(tab.locator(".checkpoint")).to_have_value("32000")
        tab.locator(".progress").fill("0")
        expect(tab.locator(".checkpoint")).to_have_value("4000")
        expect(tab.locator(".earlier")).to_be_disabled()
        expect(tab.locator(".distribution figcaption")).to_contain_text("exact under the learned policy")
        press = "document.body.dispatchEvent(new KeyboardEvent('keydown', { key: '.', bubbles: true }))"
        tab.evaluate(f"{press}; {press}; {press};")  # faster than the server loads them
        expect(tab.locator(".checkpoint")).to_have_value("20000")
        tab.close()


def test_the_page_changes_between_the_demos(chromium):
    with serving(offers=offers()) as running:
        tab = chromium.new_page()
        tab.goto(running.page)
        expect(tab.locator(".pane")).to_have_count(2, timeout=30_000)
        expect(tab.locator("#note")).to_contain_text("same network")
        tab.get_by_role("button", name="MinAtar Breakout").click()
        expect(tab.locator("#env")).to_have_text("MinAtar/Breakout-v1", timeout=30_000)
        expect(tab.locator(".pane")).to_have_count(1)
        expect(tab.locator(".actions")).to_contain_text("nothing")
        tab.close()


def test_an_error_is_shown_on_the_page(page):
    page.locator("#seed").fill("-5")
    page.locator("#seed").press("Enter")
    expect(page.locator("#message")).to_contain_text("seed takes a whole number")


@pytest.mark.parametrize("name", ["iqn-0", "dqn-0"])
def test_an_episode_plays_by_itself_with_its_picture(chromium, cartpoles, name):
    with serving(cartpoles / name) as running:
        tab = chromium.new_page()
        tab.goto(running.page)
        expect(tab.locator("#env")).to_have_text("CartPole-v1")
        expect(tab.locator(".game .status")).to_contain_text(re.compile(r"step \d"), timeout=30_000)
        tab.wait_for_function("() => now.panes[0].steps >= 5")
        size = tab.evaluate("document.querySelector('.picture').naturalWidth")
        assert size == 600
        tab.close()
