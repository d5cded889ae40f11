"""Access control of the live server: only pages that it served itself may send requests."""

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
    """Refuses requests for a foreign host name (DNS rebinding) or from a page of another origin.

    Accepted host names are the one that the server listens on, `localhost`, and IP addresses: a page of
    another site would send that site's name instead.
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
            await send({"type": "http.response.body", "body": b"forbidden: foreign host or origin\n"})

    def allows(self, scope: Scope) -> bool:
        """Return whether a request comes from a page that this server served."""
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        origins = [value for name, value in scope["headers"] if name == b"origin"]
        if len(hosts) != 1 or len(origins) > 1:
            return False
        host = hosts[0].decode("latin-1").lower()
        if not self._is_own(host):
            return False
        if not origins:
            return bool(scope["type"] == "http")  # browsers always send the origin of a websocket
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
