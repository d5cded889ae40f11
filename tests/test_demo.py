"""The agents that come with Quantail, and `quantail demo`."""

import json
import os
import select
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
import webbrowser

import pytest
import uvicorn
from websockets.sync.client import connect

import quantail
from quantail.demo import AGENTS, DEMOS, folder, offers
from quantail.envs.worlds.games import WindyCliff
from quantail.files import read_sealed, write_sealed
from quantail.runs.checkpoints import Checkpoints
from quantail.runs.folder import SCHEMA
from tests.helpers.runs import command
from tests.helpers.serving import serving
from tools import demo_agents
from tools.demo_agents import TRAININGS

RANDOM_BREAKOUT = 0.3  # mean return of random play


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as bound:
        return bound.getsockname()[1]


def receive(tab, kind):
    """Return the next message that has this key."""
    while True:
        message = json.loads(tab.recv(timeout=60))
        if "sent" in message:
            tab.send(json.dumps({"seen": message["sent"]}))
        if kind in message:
            return message


def rows_walked(agent, risk):
    """Return the rows that a walker is in who never falls."""
    world, rows = WindyCliff(), []
    state = world.states[0]
    while state is not None:
        action = agent.act(world.number(state), risk)
        state = world.outcomes(state, action)[0].state
        rows += [] if state is None else [state[1]]
    return rows


# The shipped agents


def test_they_take_less_than_a_megabyte_and_hold_weights_alone():
    files = [path for path in AGENTS.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 1_000_000
    assert {path.name for path in files} == {"run.json", "last", "state.json", "agent.safetensors"}
    assert {path.name for path in AGENTS.iterdir()} == DEMOS.keys()


@pytest.mark.parametrize("name", DEMOS)
def test_a_shipped_agent_loads_from_each_of_its_checkpoints(name):
    for one in Checkpoints(folder(name) / "checkpoints").names():
        assert quantail.load(folder(name), str(int(one))).checkpoint == int(one)


@pytest.mark.parametrize("name", DEMOS)
def test_a_shipped_agent_has_the_settings_of_the_present_code(name):
    """A new setting makes it unloadable until its settings are written again."""
    stored = json.loads((folder(name) / "run.json").read_text(encoding="utf-8"))["settings"]
    present = quantail.configure(TRAININGS[name].env, **TRAININGS[name].settings).to_dict()
    assert stored.keys() == present.keys(), "write the settings again: make demo-agents KEEP=1"


def test_keeping_the_weights_mends_an_agent_that_lacks_a_setting(tmp_path, monkeypatch):
    new = tmp_path / "cliff"
    shutil.copytree(folder("cliff"), new)
    old = read_sealed(new / "run.json", SCHEMA)
    del old["settings"]["keep_checkpoints"]
    write_sealed(new / "run.json", old)
    with pytest.raises(quantail.QuantailError, match="lacks settings"):
        quantail.load(new)
    monkeypatch.setattr(demo_agents, "folder", lambda name: tmp_path / name)
    monkeypatch.setattr(sys, "argv", ["demo_agents", "cliff", "--keep-weights"])
    demo_agents.main()
    for file in sorted(one.relative_to(new) for one in new.rglob("*.safetensors")):
        assert (new / file).read_bytes() == (folder("cliff") / file).read_bytes()
    assert quantail.load(new).config == quantail.load(folder("cliff")).config


def test_training_an_unknown_demo_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["demo_agents", "clif"])
    with pytest.raises(SystemExit) as left:
        demo_agents.main()
    assert left.value.code == 2
    assert "there is no agent 'clif': use cliff or breakout" in capsys.readouterr().err


def test_one_walker_goes_along_the_edge_and_the_other_above_it():
    agent = quantail.load(folder("cliff"))
    assert agent.risk.is_neutral
    assert rows_walked(agent, DEMOS["cliff"].risks[0]) == [0, 0, 0, 0]
    assert rows_walked(agent, DEMOS["cliff"].risks[1]) == [1, 1, 1, 1, 1]


def test_the_shipped_breakout_agent_plays_far_better_than_random():
    result = quantail.evaluate(quantail.load(folder("breakout")), episodes=10)
    assert result.mean > 10 * RANDOM_BREAKOUT


# The page


def test_the_command_opens_a_page_with_two_walkers():
    port = free_port()
    words = [sys.executable, "-m", "quantail", "demo", "--no-browser", "--port", str(port)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        deadline, page = time.monotonic() + 120, b""
        while not page:
            assert time.monotonic() < deadline
            assert process.poll() is None
            try:
                page = urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=20).read()
            except OSError:
                time.sleep(0.1)
        assert b"<title>Quantail</title>" in page
        assert select.select([process.stdout], [], [], 0)[0]  # the address is written at once
        assert f"http://127.0.0.1:{port}/" in process.stdout.readline()
        with connect(f"ws://127.0.0.1:{port}/live", origin=f"http://127.0.0.1:{port}") as tab:
            hello = receive(tab, "hello")["hello"]
            assert hello["offers"] == ["Windy cliff", "MinAtar Breakout"]
            assert "same network" in hello["note"]
            assert len(hello["runs"][0]["checkpoints"]) > 2
            panes = receive(tab, "panes")["panes"]
        assert [pane["risk"] for pane in panes] == ["neutral", "cvar:0.1"]
        assert all(len(pane["exact"]) == 3 for pane in panes)
    finally:
        process.kill()
        process.wait()


def test_a_tab_changes_to_breakout_and_back():
    with serving(offers=offers()) as served, connect(served.live, origin=served.page[:-1]) as tab:
        assert receive(tab, "hello")["hello"]["offer"] == 0
        tab.send(json.dumps({"do": "show", "offer": 1}))
        hello = receive(tab, "hello")["hello"]
        assert (hello["env"], hello["offer"]) == ("MinAtar/Breakout-v1", 1)
        while len((shown := receive(tab, "panes"))["panes"]) != 1:
            pass
        assert shown["panes"][0]["names"] == ["nothing", "left", "right"]
        assert shown["panes"][0]["picture"]
        tab.send(json.dumps({"do": "show", "offer": 7}))
        assert "offer takes a whole number from 0 to 1" in receive(tab, "error")["error"]
        tab.send(json.dumps({"do": "show", "offer": 0}))
        assert receive(tab, "hello")["hello"]["env"] == "Quantail/WindyCliff-v0"


# Bad input


def test_the_cliff_works_without_minatar_and_the_page_says_what_breakout_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "minatar.gym", None)
    with serving(offers=offers()) as served, connect(served.live, origin=served.page[:-1]) as tab:
        receive(tab, "panes")
        tab.send(json.dumps({"do": "show", "offer": 1}))
        assert "pip install 'quantail[minatar]'" in receive(tab, "error")["error"]
        assert len(receive(tab, "panes")["panes"]) == 2


@pytest.mark.parametrize(
    ("missing", "words", "says"),
    [
        ("uvicorn", [], "quantail demo needs uvicorn: pip install 'quantail[web]'"),
        ("minatar.gym", ["breakout"], "quantail demo breakout needs MinAtar: pip install"),
    ],
)
def test_a_missing_package_is_named(missing, words, says, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, missing, None)
    assert command("demo", *words, "--no-browser") == 2
    assert says in capsys.readouterr().err


def test_a_port_in_use_is_reported_in_one_sentence(capsys):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert command("demo", "--no-browser", "--port", port) == 2
    said = capsys.readouterr().err
    where = f"quantail: quantail demo cannot listen on 127.0.0.1, port {port}"
    assert said == f"{where} (address already in use): choose another one with --port.\n"


def test_without_a_browser_the_address_is_printed(monkeypatch, capsys):
    monkeypatch.setattr(webbrowser, "open", lambda address: False)
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: None)
    port = free_port()
    assert command("demo", "--port", port) == 0
    said = capsys.readouterr().out
    assert f"no browser was found: open http://127.0.0.1:{port}/ in one" in said


@pytest.mark.parametrize("name", ["w3m", "/usr/bin/www-browser"])
def test_a_browser_without_scripts_is_not_opened(name, monkeypatch, capsys):
    monkeypatch.setattr(webbrowser, "get", lambda: webbrowser.GenericBrowser(name))
    monkeypatch.setattr(webbrowser, "open", lambda address: pytest.fail("opened a text browser"))
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: None)
    assert command("demo", "--port", free_port()) == 0
    assert "no browser was found: open http" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["pong"], "demo takes cliff or breakout, not 'pong'"),
        (["--port", "x"], "port takes a whole number"),
        (["--prot", "8000"], "unknown argument '--prot'. Did you mean '--port'?"),
    ],
)
def test_a_wrong_argument_is_explained(words, says, capsys):
    assert command("demo", *words) == 2
    assert says in capsys.readouterr().err
