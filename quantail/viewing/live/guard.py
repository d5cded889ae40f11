"""Who may speak to the server: pages that it served itself, under an address that is its own."""

import ipaddress
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HEADERS = [
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"cache-control", b"no-store"),
]


class Guard:
    """Refuses requests under a foreign host name (DNS rebinding) or from a page of another origin.

    A name is the server's own if it is the one that it was told to listen on, `localhost`, or an IP
    address: no other site's name can be made to stand for those.
    """

    def __init__(self, app: App, host: str) -> None:
        self.app, self.host = app, host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or self.allows(scope):
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        else:
            await send({"type": "http.response.start", "status": 403, "headers": HEADERS})
            await send({"type": "http.response.body", "body": b"not from here\n"})

    def allows(self, scope: Scope) -> bool:
        """Whether a request comes from a page of ours."""
        found = [value for name, value in scope["headers"] if name == b"host"]
        origins = [value for name, value in scope["headers"] if name == b"origin"]
        if len(found) != 1 or len(origins) > 1:
            return False
        host = found[0].decode("latin-1").lower()
        if not self._is_own(host):
            return False
        if not origins:
            return bool(scope["type"] == "http")  # a browser always names the origin of a websocket
        return bool(origins[0].decode("latin-1").lower() == f"http://{host}")

    def _is_own(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if name in ("localhost", self.host.lower()):
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True
