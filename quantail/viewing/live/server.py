"""The server of the live page: one page, and one websocket a tab."""

import asyncio
import contextlib
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from fastapi import FastAPI, WebSocket, WebSocketDisconnect
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

from quantail.errors import QuantailError
from quantail.viewing.live.guard import Guard
from quantail.viewing.live.shelf import Shelf
from quantail.viewing.live.stage import Stage

Answer = TypeVar("Answer")

STATIC = Path(__file__).parent / "static"
TABS = 4  # at once
UNSEEN = 2  # pictures under way to a tab: more would make its controls slow
SAFE = {
    "content-security-policy": "default-src 'none'; script-src 'self'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


def build_app(shelf: Shelf, host: str = "127.0.0.1", seed: int = 1) -> FastAPI:
    """The application. `app.state.tabs` are the tabs that are open."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.state.tabs = set()
    # One thread for all that plays: tabs share networks, and two cores are soon busy.
    worker = ThreadPoolExecutor(max_workers=1)

    @app.get("/")
    async def page() -> FileResponse:
        return FileResponse(STATIC / "index.html", headers=SAFE)

    @app.websocket("/live")
    async def live(socket: WebSocket) -> None:
        await socket.accept()
        if len(app.state.tabs) >= TABS:
            told = f"{TABS} tabs are open already: close one of them, then load this page again."
            await socket.send_text(json.dumps({"error": told}))
            await socket.close(1013)
            return
        tab = Tab(socket, worker)
        app.state.tabs.add(tab)
        try:
            await tab.run(shelf, seed)
        finally:
            app.state.tabs.discard(tab)

    app.mount("/static", StaticFiles(directory=STATIC))
    app.add_middleware(Guard, host=host)
    return app


class Tab:
    """A tab of a browser: it says what it wants, and is sent what to show."""

    def __init__(self, socket: WebSocket, worker: ThreadPoolExecutor) -> None:
        self.socket, self.worker = socket, worker
        self.changed = asyncio.Event()
        self.stage: Stage
        self.sent = self.seen = 0
        self.stale = True  # what the tab shows is not what is

    async def run(self, shelf: Shelf, seed: int) -> None:
        """Play until the tab is closed."""
        try:
            self.stage = await self._work(lambda: Stage(shelf, seed))
        except QuantailError as error:
            await self._send({"error": str(error)})
            return
        try:
            await self._send({"hello": self.stage.hello()})
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
            with contextlib.suppress(WebSocketDisconnect, RuntimeError):  # it may be closed by now
                await self._send({"error": f"{type(error).__name__}: {error}. Load this page again."})
                raise
        finally:
            await self._work(self.stage.close)

    async def _listen(self) -> None:
        """Do what the tab asks for, until it is closed."""
        while True:
            message = await self.socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            try:
                asked = _parsed(message.get("text"))
                if "seen" in asked:
                    self.seen = max(self.seen, int(asked["seen"]))
                elif asked.get("do") == "runs":  # what checkpoints there are by now
                    await self._send({"hello": await self._work(self.stage.hello)})
                else:
                    await self._work(lambda asked=asked: self.stage.do(asked))  # type: ignore[misc]
                    self.stale = True
            except QuantailError as error:
                await self._send({"error": str(error)})
            self.changed.set()

    async def _play(self) -> None:
        """A decision whenever one is due, and a picture whenever something has changed."""
        clock = asyncio.get_running_loop().time
        due = clock()
        while True:
            self.changed.clear()
            if self.sent - self.seen >= UNSEEN or not (self.stale or self.stage.playing):
                await self.changed.wait()
                due = max(due, clock())
            elif self.stale:
                await self._show()
            elif due > clock():
                await _either(self.changed, due - clock())
            else:
                due = max(due + 1 / self.stage.speed, clock())
                try:
                    await self._work(self.stage.step)
                except QuantailError as error:  # the environment's own: the page stays
                    self.stage.playing = False
                    await self._send({"error": str(error)})
                self.stale = True

    async def _show(self) -> None:
        self.stale = False
        shown = await self._work(self.stage.show)
        self.sent += 1
        await self._send(shown | {"sent": self.sent})

    async def _send(self, content: dict[str, Any]) -> None:
        await self.socket.send_text(json.dumps(content, ensure_ascii=False))

    async def _work(self, what: Callable[[], Answer]) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self.worker, what)


async def _either(event: asyncio.Event, seconds: float) -> None:
    """Until the event, or so many seconds."""
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return


def _parsed(text: str | None) -> dict[str, Any]:
    try:
        asked = json.loads(text or "")
        if not isinstance(asked, dict) or not isinstance(asked.get("seen", 0), int):
            raise ValueError
    except (ValueError, RecursionError):
        raise QuantailError("the page asked for something that there is not.") from None
    return asked
