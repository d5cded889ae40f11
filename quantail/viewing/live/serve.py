"""Start the server of the live page."""

import errno
import os
import socket
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from quantail.errors import QuantailError
from quantail.extras import require_extra
from quantail.trust import Trust

PORT = 8750
PORTS_TRIED = 10  # if no port is given
# Browsers without scripts, which would also occupy the terminal.
TEXT_BROWSERS = ("www-browser", "links", "elinks", "lynx", "w3m")
# Limits on the size (bytes) and number of a tab's messages, and on the number of connections.
BOUNDS: dict[str, Any] = {
    "log_level": "warning",
    "ws_max_size": 1024,
    "ws_max_queue": 16,
    "limit_concurrency": 64,
    "timeout_graceful_shutdown": 1,
}


def _print(sentence: str) -> None:
    """Print at once, even if the output is a file or a pipe: the server runs until it is stopped."""
    print(sentence, flush=True)


def watch(
    runs: str | Path | Sequence[str | Path],
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    seed: int = 1,
    browser: bool = True,
    say: Callable[[str], None] = _print,
    trust: Trust = (),
) -> None:
    """Serve a page on which the agents of runs play, until Ctrl-C.

    `trust` lists the modules that may be imported if the runs name them.
    """
    require_extra("web", "quantail watch")
    from quantail.viewing.live.registry import Offer

    listed = [runs] if isinstance(runs, str | Path) else list(runs)
    offer = Offer(listed, trust)
    title = f"watching {', '.join(map(str, listed))}"
    serve([offer], title, "quantail watch", host=host, port=port, seed=seed, browser=browser, say=say)


def serve(
    offers: Sequence[Any],
    title: str,
    command: str,
    *,
    first: int = 0,
    host: str = "127.0.0.1",
    port: int | None = None,
    seed: int = 1,
    browser: bool = True,
    say: Callable[[str], None] = _print,
) -> None:
    """Serve these offers, beginning with the one numbered `first`, until Ctrl-C.

    `title` says what is shown, and `command` what the user called.
    """
    import uvicorn

    from quantail.viewing.live import server

    _ = offers[first].registry  # fail before a page opens if a run cannot be loaded
    app = server.build_app(offers, host, seed, first)
    bound = _listen(host, port, command)
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    address = f"http://{f'[{shown}]' if ':' in shown else shown}:{bound.getsockname()[1]}/"
    say(f"{title} at {address} (press Ctrl-C to stop)")
    if host not in ("127.0.0.1", "::1", "localhost"):
        say(f"listening on {host}: anyone who can reach its IP address can watch and use the controls")
    if browser and not _open_browser(address):
        say(f"no browser was found: open {address} in one")
    with bound:
        try:
            uvicorn.Server(uvicorn.Config(app, **BOUNDS)).run(sockets=[bound])
        except KeyboardInterrupt:
            return


def _open_browser(address: str) -> bool:
    try:
        if Path(getattr(webbrowser.get(), "name", "")).name in TEXT_BROWSERS:
            return False
        return webbrowser.open(address)
    except webbrowser.Error:
        return False


def _listen(host: str, port: int | None, command: str = "quantail watch") -> socket.socket:
    """Return a socket on the port; without a port, on the first free one from PORT on."""
    ports = range(PORT, PORT + PORTS_TRIED) if port is None else [port]
    for one in ports:
        try:
            family = socket.getaddrinfo(host, one, type=socket.SOCK_STREAM)[0][0]
            return socket.create_server((host, one), family=family)
        except OSError as error:
            failed = error
    where = f"port {ports[0]}" if len(ports) == 1 else f"ports {ports[0]} to {ports[-1]}"
    # Python adds the address to the reason of the system; host names have reasons of their own.
    is_name = isinstance(failed, socket.gaierror) or not failed.errno
    reason = (failed.strerror or str(failed) if is_name else os.strerror(failed.errno or 0)).lower()
    advice = ": choose another one with --port" if failed.errno == errno.EADDRINUSE else ""
    raise QuantailError(f"{command} cannot listen on {host}, {where} ({reason}){advice}.")
