"""Access control and limits of the server, with real sockets."""

import http.client
import json
import os
import socket
import time
from contextlib import ExitStack

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from quantail.errors import QuantailError
from quantail.viewing.live.registry import RunRegistry
from quantail.viewing.live.serve import BOUNDS, _listen
from quantail.viewing.live.server import MAX_TABS
from tests.helpers.runs import command


def get(served, path="/", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
    connection.request("GET", path, headers=headers)
    return connection.getresponse()


def join(served, origin=None, **options):
    return connect(served.live, origin=origin or f"http://{served.host}", **options)


def receive(tab, kind):
    """Return the next message that has this key."""
    while True:
        message = json.loads(tab.recv(timeout=30))
        if "sent" in message:
            tab.send(json.dumps({"seen": message["sent"]}))
        if kind in message:
            return message


def until(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        os.sched_yield()


@pytest.fixture(autouse=True)
def _no_tab_is_open(served):
    """Wait for the tabs of the test before: a closed tab counts until the server has noticed."""
    until(lambda: not served.app.state.tabs)


def test_the_page_and_its_files_are_served_and_load_nothing_from_other_hosts(served):
    page = get(served)
    assert page.status == 200
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert b"http" not in page.read()
    for name in ("page.js", "plots.js", "page.css", "vendor/uPlot.iife.min.js"):
        assert get(served, f"/static/{name}").status == 200, name


@pytest.mark.parametrize(
    "path", ["/static/../server.py", "/static/%2e%2e/server.py", "/docs", "/openapi.json", "/run"]
)
def test_nothing_else_is_served(served, path):
    assert get(served, path).status == 404


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example", "", "[::1"],
)
def test_a_foreign_host_name_is_refused(served, host):
    assert get(served, Host=host).status in (400, 403)
    with (
        pytest.raises((InvalidStatus, ConnectionClosed)),
        join(served, additional_headers={"Host": host}) as tab,
    ):
        tab.recv(timeout=20)


def test_a_page_of_another_origin_is_refused(served):
    assert get(served, Origin="http://evil.example").status == 403
    assert get(served, Origin=f"http://{served.host}").status == 200
    for origin in ("http://evil.example", f"https://{served.host}", "null", "http://127.0.0.1:1"):
        with pytest.raises(InvalidStatus):
            join(served, origin)
    with pytest.raises(InvalidStatus):
        connect(served.live)  # no origin at all


def test_a_tab_receives_the_game_and_its_commands_are_executed(served):
    with join(served) as tab:
        hello = receive(tab, "hello")["hello"]
        assert hello["env"] == "Quantail/RiskyBandit-v0"
        assert {measure["name"] for measure in hello["measures"]} >= {"neutral", "cvar", "wang"}
        tab.send(json.dumps({"do": "play", "on": False}))
        while receive(tab, "panes")["playing"]:
            pass
        tab.send(json.dumps({"do": "restart", "seed": 3}))
        tab.send(json.dumps({"do": "risk", "pane": 0, "name": "cvar", "eta": 0.05}))
        while (shown := receive(tab, "panes"))["panes"][0]["risk"] != "cvar:0.05":
            pass
        assert shown["panes"][0]["names"][shown["panes"][0]["chosen"]] == "sure"
        assert shown["panes"][0]["picture"].startswith("data:image/png;base64,")


@pytest.mark.parametrize(
    "text",
    ["not json", b"bytes", "[" * 900, "[]", '{"do": "nothing"}', '{"seen": "x"}', "null", '{"do": {}}'],
)
def test_an_invalid_message_is_answered_with_an_error_and_the_tab_plays_on(served, text):
    with join(served) as tab:
        receive(tab, "hello")
        tab.send(text)
        assert "unknown command" in receive(tab, "error")["error"]
        assert receive(tab, "panes")


def test_a_message_that_is_too_long_closes_the_tab(served):
    with join(served) as tab:
        receive(tab, "hello")
        tab.send("x" * (BOUNDS["ws_max_size"] + 1))
        with pytest.raises(ConnectionClosed):
            receive(tab, "no such message")


def test_at_most_two_updates_are_sent_before_the_tab_acknowledges_them(served):
    with join(served) as tab:
        receive(tab, "hello")
        assert [json.loads(tab.recv(timeout=30))["sent"] for _ in range(2)] == [1, 2]
        playing = next(iter(served.app.state.tabs))
        until(lambda: playing.sent == 2 and not playing.changed.is_set())
        with pytest.raises(TimeoutError):
            tab.recv(timeout=0.5)


def test_a_closed_tab_closes_its_environment(served):
    closed = []
    with join(served) as tab:
        receive(tab, "panes")
        (playing,) = served.app.state.tabs
        playing.session.players[0].env.close = lambda: closed.append(True)
    until(lambda: not served.app.state.tabs)
    assert closed == [True]


def test_an_environment_error_is_shown_and_the_page_stays_open(served):
    def fail(action):
        raise QuantailError("the environment failed in step.")

    with join(served) as tab:
        receive(tab, "panes")
        (playing,) = served.app.state.tabs
        playing.session.players[0].env.step = fail
        tab.send(json.dumps({"do": "restart", "seed": 1}))
        assert receive(tab, "error")["error"] == "the environment failed in step."
        tab.send(json.dumps({"do": "view", "density": True}))
        while not receive(tab, "panes")["density"]:
            pass


def test_a_tab_that_cannot_start_shows_the_reason(served, monkeypatch):
    monkeypatch.setattr(
        RunRegistry, "agent", lambda *_: (_ for _ in ()).throw(QuantailError("it is gone."))
    )
    with join(served) as tab:
        assert receive(tab, "error")["error"] == "it is gone."


def test_the_server_listens_only_on_the_loopback_address_by_default(bandit, monkeypatch):
    given = {}
    monkeypatch.setattr("quantail.cli.watch.watch", lambda runs, **options: given.update(options))
    assert command("watch", bandit) == 0
    assert given["host"] == "127.0.0.1"


def test_one_tab_too_many_is_refused_with_an_error(served):
    with ExitStack() as stack:
        for _ in range(MAX_TABS):
            receive(stack.enter_context(join(served)), "hello")
        with join(served) as extra:
            assert f"{MAX_TABS} tabs are already open" in receive(extra, "error")["error"]
            with pytest.raises(ConnectionClosed):
                extra.recv(timeout=20)


def test_the_next_free_port_is_used_if_none_is_given():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(QuantailError, match=rf"127.0.0.1, port {port} \(address .*: choose another"):
            _listen("127.0.0.1", port)
    with _listen("127.0.0.1", None) as one, _listen("127.0.0.1", None) as two:
        assert one.getsockname()[1] < two.getsockname()[1]
        assert one.getsockname()[0] == "127.0.0.1"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["RUN", "--port", "70000"], "port takes a whole number from 1 to 65535"),
        (["RUN", "--port", "x"], "port takes a whole number"),
        (
            ["RUN", "--host", "no.such.host.invalid"],
            "quantail watch cannot listen on no.such.host.invalid",
        ),
        (["nowhere"], "there is no run at nowhere"),
    ],
)
def test_a_command_line_error_is_one_sentence(bandit, words, says, capsys):
    assert command("watch", *[bandit if word == "RUN" else word for word in words], "--no-browser") == 2
    said = capsys.readouterr().err
    assert says in said
    assert "Traceback" not in said


def test_missing_packages_are_named(bandit, monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "uvicorn", None)
    assert command("watch", bandit) == 2
    assert "pip install 'quantail[web]'" in capsys.readouterr().err
