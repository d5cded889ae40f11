"""The server of the live page: one page, and one websocket per tab."""

import asyncio
import contextlib
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from fastapi import FastAPI, WebSocket, WebSocketDisconnect
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

from quantail.errors import QuantailError
from quantail.validation import whole_number
from quantail.viewing.live.guard import Guard
from quantail.viewing.live.registry import Offer
from quantail.viewing.live.session import Session

Answer = TypeVar("Answer")

STATIC = Path(__file__).parent / "static"
MAX_TABS = 4
MAX_UNSEEN = 2  # updates in flight to a tab: more would make its controls slow
SECURITY_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


def build_app(
    offers: Sequence[Offer], host: str = "127.0.0.1", seed: int = 1, first: int = 0
) -> FastAPI:
    """Build the application; a tab begins with the offer `first`.

    `app.state.tabs` holds the open tabs.
    """
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.state.tabs = set()
    # All tabs play in one thread, because they share networks and few cores are soon busy.
    worker = ThreadPoolExecutor(max_workers=1)

    @app.get("/")
    async def page() -> FileResponse:
        return FileResponse(STATIC / "index.html", headers=SECURITY_HEADERS)

    @app.websocket("/live")
    async def live(socket: WebSocket) -> None:
        await socket.accept()
        if len(app.state.tabs) >= MAX_TABS:
            error = f"{MAX_TABS} tabs are already open: close one of them, then reload this page."
            await socket.send_text(json.dumps({"error": error}))
            await socket.close(1013)
            return
        tab = Tab(socket, worker)
        app.state.tabs.add(tab)
        try:
            await tab.run(offers, seed, first)
        finally:
            app.state.tabs.discard(tab)

    app.mount("/static", StaticFiles(directory=STATIC))
    app.add_middleware(Guard, host=host)
    return app


class Tab:
    """One tab of a browser: receives its commands and sends it what to show."""

    def __init__(self, socket: WebSocket, worker: ThreadPoolExecutor) -> None:
        self.socket, self.worker = socket, worker
        self.changed = asyncio.Event()
        self.session: Session
        self.sent = self.seen = 0
        self.stale = True  # whether the tab shows an outdated state

    async def run(self, offers: Sequence[Offer], seed: int, first: int) -> None:
        """Play until the tab is closed."""
        self.offers, self.offer, self.seed = offers, first, seed
        try:
            self.session = await self._work(lambda: Session(offers[first], seed))
        except QuantailError as error:
            await self._send({"error": str(error)})
            return
        try:
            await self._greet()
            playing = asyncio.create_task(self._play())
            listening = asyncio.create_task(self._listen())
            done, waiting = await asyncio.wait((playing, listening), return_when=asyncio.FIRST_COMPLETED)
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            for task in done:
                if failed := task.exception():
                    raise failed
        except WebSocketDisconnect:
            return
        except Exception as error:
            with contextlib.suppress(WebSocketDisconnect, RuntimeError):  # it may be closed already
                await self._send({"error": f"{type(error).__name__}: {error}. Reload this page."})
                raise
        finally:
            await self._work(self.session.close)

    async def _listen(self) -> None:
        """Execute the commands of the tab until it is closed."""
        while True:
            message = await self.socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            try:
                command = _parse(message.get("text"))
                if "seen" in command:
                    self.seen = max(self.seen, int(command["seen"]))
                elif command.get("do") == "runs":  # refresh the list of checkpoints
                    await self._greet()
                elif command.get("do") == "show":
                    await self._choose(command)
                else:
                    await self._work(lambda command=command: self.session.do(command))  # type: ignore[misc]
                    self.stale = True
            except QuantailError as error:
                await self._send({"error": str(error)})
            self.changed.set()

    async def _greet(self) -> None:
        """Send what the page needs to know besides what it shows now."""
        hello = await self._work(self.session.hello)
        titles = [offer.title for offer in self.offers]
        await self._send({"hello": hello | {"offers": titles, "offer": self.offer}})

    async def _choose(self, command: dict[str, Any]) -> None:
        """Show another offer in this tab."""
        chosen = whole_number("offer", command.get("offer"), 0, len(self.offers) - 1)
        new = await self._work(lambda: Session(self.offers[chosen], self.seed))
        old, self.session, self.offer = self.session, new, chosen
        await self._work(old.close)
        await self._greet()
        self.stale = True

    async def _play(self) -> None:
        """Take a step whenever one is due, and send an update whenever something has changed."""
        clock = asyncio.get_running_loop().time
        due = clock()
        while True:
            self.changed.clear()
            if self.sent - self.seen >= MAX_UNSEEN or not (self.stale or self.session.playing):
                await self.changed.wait()
                due = max(due, clock())
            elif self.stale:
                await self._show()
            elif due > clock():
                await _wait(self.changed, due - clock())
            else:
                due = max(due + 1 / self.session.speed, clock())
                try:
                    await self._work(self.session.step)
                except QuantailError as error:  # the environment failed: the page stays open
                    self.session.playing = False
                    await self._send({"error": str(error)})
                self.stale = True

    async def _show(self) -> None:
        self.stale = False
        shown = await self._work(self.session.show)
        self.sent += 1
        await self._send(shown | {"sent": self.sent})

    async def _send(self, content: dict[str, Any]) -> None:
        await self.socket.send_text(json.dumps(content, ensure_ascii=False))

    async def _work(self, what: Callable[[], Answer]) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self.worker, what)


async def _wait(event: asyncio.Event, seconds: float) -> None:
    """Wait for the event, but no longer than this many seconds."""
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return


def _parse(text: str | None) -> dict[str, Any]:
    try:
        command = json.loads(text or "")
        if not isinstance(command, dict) or not isinstance(command.get("seen", 0), int):
            raise ValueError
    except (ValueError, RecursionError):
        raise QuantailError("the page sent an unknown command.") from None
    return command
