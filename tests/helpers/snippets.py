"""Run the code blocks of a page of the docs, in its order and in one folder.

- ```python``` blocks run in one process and share their names. A block with title="my_env.py" is written
  to that file instead.
- ```console``` blocks: each line that begins with `$ ` is a command; the others are sample output.
- `steps` and `episodes` are cut down, and servers run only until they answer.

Processes are forked from one that has imported Quantail already (multiprocessing's fork server), since
importing torch anew takes longer than most snippets.
"""

import ctypes
import dataclasses
import math
import multiprocessing
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import textwrap
import time
import traceback
import types
import urllib.request
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<info>[^`]*)$")
OTHER_FENCE = re.compile(r"^ *(~{3,}|(> *)+`{3,})")  # which the site knows too
STEPS, EPISODES = 300, 3
STUDY_STEPS = (
    600  # of a run of a study, which are processes of their own: its small grids learn from step 500
)
LEARNING_STARTS = 100  # at the latest, in what the tests run
SERVERS = ("watch", "demo")
SECONDS = 300  # for one snippet, on a busy machine
SHELL = set("|<>&;$*?(){}")  # a command with one of these needs a shell
PRELOAD = (
    "quantail.cli.main",
    "quantail.training.train",
    "quantail.evaluation.evaluate",
    "quantail.experiments.reading",
    "quantail.viewing.live.server",
    "tests.helpers.snippets",
)


@dataclasses.dataclass(frozen=True)
class Block:
    """A fenced block of code, with the number of its first line in the page."""

    language: str
    title: str
    text: str
    line: int

    @property
    def commands(self) -> list[tuple[int, str]]:
        """Return the commands of a console block, each with its line in the page."""
        found: list[tuple[int, str]] = []
        lines = iter(enumerate(self.text.splitlines(), self.line))
        for number, line in lines:
            if line.startswith("$ "):
                command = line[2:]
                while command.endswith("\\"):
                    command = command[:-1] + next(lines)[1].removeprefix("> ").strip()
                found.append((number, command))
        return found


def blocks_of(page: Path) -> list[Block]:
    """Return the fenced blocks of a page."""
    found, inside = [], None
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if inside is None:
            if match := FENCE.match(line):
                inside, first, lines = match, number + 1, []
            elif OTHER_FENCE.match(line):
                raise AssertionError(f"{page}: line {number} begins a block that the tests do not see")
        elif line.strip() == inside["ticks"]:
            language = (inside["info"].split() or [""])[0]
            title = re.search(r'title="([^"]*)"', inside["info"])
            text = textwrap.dedent("\n".join(lines))
            found.append(Block(language, title[1] if title else "", text, first))
            inside = None
        else:
            lines.append(line)
    assert inside is None, f"{page}: the code block at line {first - 1} is not closed"
    return found


def fewer(number: str, few: int = STEPS) -> str:
    """Return a few hundred steps instead of many; more steps stay more, so that a run can be resumed."""
    steps = int(number.replace("_", ""))
    return str(steps if steps <= few else few + round(20 * math.log10(steps / few)))


def cut_code(code: str) -> str:
    """Return Python code with fewer steps and episodes."""
    code = re.sub(r"\bsteps=(\d[\d_]*)", lambda match: f"steps={fewer(match[1])}", code)
    return re.sub(r"\bepisodes=(\d[\d_]*)", lambda match: f"episodes={few(match[1])}", code)


def cut_file(text: str) -> str:
    """Return a TOML file with fewer steps and episodes."""
    text = re.sub(
        r"^episodes = (\d[\d_]*)", lambda match: f"episodes = {few(match[1])}", text, flags=re.M
    )
    starts = (
        "" if re.search(r"^learning_starts = ", text, re.M) else f"\nlearning_starts = {LEARNING_STARTS}"
    )
    return re.sub(
        r"^steps = (\d[\d_]*)",
        lambda match: f"steps = {fewer(match[1], STUDY_STEPS)}{starts}",
        text,
        flags=re.M,
    )


def cut_command(command: str) -> str:
    """Return a command with fewer steps and episodes; one that trains always gets a number of steps."""
    least = STUDY_STEPS if command.startswith("quantail study ") else STEPS
    command = re.sub(
        r"(?<!\S)--steps[ =](\d[\d_]*)", lambda match: f"--steps {fewer(match[1], least)}", command
    )
    command = re.sub(
        r"(?<!\S)--episodes[ =](\d[\d_]*)", lambda match: f"--episodes {few(match[1])}", command
    )
    if command.startswith("quantail train ") and not re.search(
        r" (--steps|--help|--help-all)\b", command
    ):
        command = command.replace("quantail train", f"quantail train --steps {STEPS}", 1)
    return command


def few(number: str) -> str:
    return str(min(int(number.replace("_", "")), EPISODES))


def run_page(page: Path, folder: Path) -> None:
    """Run the snippets of a page in a folder; fail with the page, the snippet and its error."""
    (folder / "here").mkdir()
    runner = Runner(folder)
    try:
        for block in blocks_of(page):
            if block.title:
                runner.write(block)
            elif block.language == "python":
                _check(page, block.line, block.text, runner.python(page, block))
            elif block.language == "console":
                for line, command in block.commands:
                    _check(page, line, f"$ {command}", runner.command(cut_command(command)))
            elif block.language == "sh":
                for line, command in planned(block):
                    _check(page, line, command, runner.parsed(command))
    finally:
        runner.close()


def _check(page: Path, line: int, snippet: str, error: str) -> None:
    if error:
        named = page.relative_to(ROOT) if page.is_relative_to(ROOT) else page.name
        where = f"{named}, line {line}, has a snippet that fails:"
        text = "\n\n".join((where, textwrap.indent(snippet.strip(), "    "), error.strip()))
        pytest.fail(text, pytrace=False)


def planned(block: Block) -> list[tuple[int, str]]:
    """Return the commands of Quantail in a block that is not run, with their lines in the page."""
    lines = enumerate(block.text.splitlines(), block.line)
    return [(number, line) for number, line in lines if line.startswith("quantail ")]


class Runner:
    """What runs the snippets of one page: a folder and a process for the page's Python."""

    def __init__(self, folder: Path):
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(list(PRELOAD))
        self.folder, self.here = folder, folder / "here"
        self.session, self.pipe = None, None

    def write(self, block: Block) -> None:
        """Write a block to the file that its title names."""
        path = self.here / block.title
        assert path.resolve().is_relative_to(self.here.resolve()), path
        path.parent.mkdir(parents=True, exist_ok=True)
        cut = cut_file if block.language == "toml" else cut_code
        path.write_text(cut(block.text) + "\n", encoding="utf-8")

    def python(self, page: Path, block: Block) -> str:
        """Run a block in the page's process; return its error, or nothing."""
        if self.session is None:
            self.pipe, theirs = self.context.Pipe()
            self.session = self._start(_session, theirs)
            theirs.close()
        code = "\n" * (block.line - 1) + cut_code(block.text)  # so that errors have the page's lines
        self.pipe.send((code, str(page)))
        try:
            if not self.pipe.poll(SECONDS):
                return f"did not end within {SECONDS} s" + self._output()
            error: str = self.pipe.recv()
        except EOFError:
            return "the process ended" + self._output()
        return error and error + self._output()

    def command(self, command: str) -> str:
        """Run a command; return its error, or nothing."""
        words = shlex.split(command, comments=True)
        plain = words[:1] == ["quantail"] and not any(SHELL & set(word) for word in words)
        if not plain:
            return self._shell(command)
        if words[1:2] and words[1] in SERVERS and "--help" not in words:
            return self._server(words[1:])
        return self._run(_command, words[1:])

    def parsed(self, command: str) -> str:
        """Parse a command without running it; return its error, or nothing."""
        return self._run(_parse, shlex.split(command, comments=True)[1:])

    def close(self) -> None:
        """End the page's process."""
        if self.session is not None:
            _end(self.session)

    def _run(self, target, words: list[str]) -> str:
        process = self._start(target, words)
        process.join(SECONDS)
        if process.exitcode is None:
            _end(process)
            return f"did not end within {SECONDS} s" + self._output()
        return f"ended with status {process.exitcode}" + self._output() if process.exitcode else ""

    def _start(self, target, argument):
        process = self.context.Process(target=_child, args=(target, argument, str(self.here), self._log))
        process.start()
        return process

    def _shell(self, command: str) -> str:
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-ec", command],
            cwd=self.here,
            env=os.environ | {"PATH": path},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        return f"ended with status {done.returncode}\n{done.stdout}{done.stderr}" * bool(done.returncode)

    def _server(self, words: list[str]) -> str:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        if "--port" in words:
            del words[words.index("--port") : words.index("--port") + 2]
        words = [
            *(word for word in words if word != "--no-browser"),
            "--no-browser",
            "--port",
            str(port),
        ]
        process = self._start(_command, words)
        try:
            until = time.monotonic() + SECONDS
            while time.monotonic() < until and process.exitcode is None:
                if _answers(port):
                    return ""
                time.sleep(0.1)
            return "the server did not answer" + self._output()
        finally:
            _end(process)

    @property
    def _log(self) -> str:
        return str(self.folder / "output.txt")

    def _output(self) -> str:
        text = Path(self._log).read_text(encoding="utf-8", errors="replace")
        return "\n" + "\n".join(text.splitlines()[-30:])


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


def _end(process) -> None:
    process.terminate()
    process.join(10)
    if process.exitcode is None:
        process.kill()
        process.join()


def _child(target, argument, folder: str, log: str) -> None:
    """Prepare a forked process, and run what it is for."""
    if sys.platform == "linux":  # it ends with the fork server, and so with the tests
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    os.chdir(folder)
    os.environ["WANDB_MODE"] = "offline"
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", line_buffering=True)
    sys.path[:0] = [folder]
    _learn_early()
    target(argument)


def _learn_early() -> None:
    """Let runs of a few hundred steps learn: presets collect thousands of transitions first."""
    from quantail.learning.config import LearnerConfig

    check = LearnerConfig.__post_init__

    def lower(self: LearnerConfig) -> None:
        object.__setattr__(self, "learning_starts", min(self.learning_starts, LEARNING_STARTS))
        check(self)

    LearnerConfig.__post_init__ = lower


def _command(words: list[str]) -> None:
    from quantail.cli.main import main

    sys.argv = ["quantail", *words]
    sys.path.pop(0)  # a command looks into its folder only where the user names a module
    main()


class _ParsedError(Exception):
    """A command's words could be parsed."""


def _parse(words: list[str]) -> None:
    from quantail.cli.main import run
    from quantail.cli.parser import Parser

    parse = Parser.parse

    def stop(self: Parser, words: list[str]):
        parse(self, words)
        raise _ParsedError

    Parser.parse = stop
    try:
        status = run(words)
    except _ParsedError:
        status = 0
    sys.exit(status)


def _session(pipe: Connection) -> None:
    """Run code from the pipe in one namespace, that of a script."""
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    while True:
        try:
            code, page = pipe.recv()
        except EOFError:
            return
        try:
            exec(compile(code, page, "exec"), vars(main))
            error = ""
        except BaseException as raised:
            frames = raised.__traceback__.tb_next if raised.__traceback__ else None
            error = "".join(traceback.format_exception(raised.with_traceback(frames)))
        sys.stdout.flush()
        pipe.send(error)
