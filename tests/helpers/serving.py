"""The live page's server, in this process."""

import threading
from contextlib import contextmanager

import uvicorn

from quantail.viewing.live.registry import Offer
from quantail.viewing.live.serve import BOUNDS, _listen
from quantail.viewing.live.server import build_app


class Running:
    """A server in this process, on its own port."""

    def __init__(self, app, port):
        self.app, self.port = app, port
        self.host = f"127.0.0.1:{port}"
        self.page, self.live = f"http://{self.host}/", f"ws://{self.host}/live"


@contextmanager
def serving(*runs, offers=None):
    """Start the server for these runs as `watch` does, or for these offers."""
    app = build_app(offers or [Offer(runs)])
    bound = _listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app, **BOUNDS))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        yield Running(app, bound.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(timeout=30)
        bound.close()
