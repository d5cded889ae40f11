"""python -m tools.results run | update | status | check | page | pong"""

import argparse
import json
import sys
from pathlib import Path

from quantail.errors import QuantailError
from quantail.files import hold, is_held
from tools.bits import BitsError
from tools.results.plan import Plan
from tools.results.reading import read_plan, require_trainable
from tools.results.site import ROOT, Site, git, head, launch, request_update

PONG = "pong"


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.results", description=__doc__)
    parser.add_argument("command", choices=["run", "update", "status", "check", "page", "pong", "work"])
    parser.add_argument("work", nargs="?", default="", help=argparse.SUPPRESS)
    parser.add_argument("--home", type=Path, default=ROOT, help="the clone with results/ [this one]")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time [1]")
    parser.add_argument("--queue", type=Path, help="the plan [results/queue.toml of the commit]")
    parser.add_argument("--study", default="", help="the only study that `work` runs, by its name")
    parser.add_argument(
        "--python", default="", help="an interpreter for the runs [an environment from the lock]"
    )
    return parser


def main(words: list[str] | None = None) -> int:
    asked = parser().parse_args(words)
    try:
        return COMMANDS[asked.command](asked)
    except (QuantailError, BitsError) as error:
        print(f"results: {error}", file=sys.stderr)
        return 2


def _run(asked: argparse.Namespace) -> int:
    """Start the queue at the present commit, in its worktree."""
    site = Site(asked.home.resolve())
    site.folder.mkdir(parents=True, exist_ok=True)
    if asked.jobs < 1:
        raise QuantailError(f"jobs is {asked.jobs}: it takes 1 or more.")
    with hold(site.lock, "the results queue of this clone is being run"):
        require_trainable(_plan(asked, site.home))
        site.tables.restore()
        site.request.unlink(missing_ok=True)
        commit = head(site.home)
        if git(site.home, "status", "--porcelain", "--", "quantail", "tools"):
            print(f"changes that are not committed are left out: the runs are of {commit[:7]}")
    launch(site, commit, _words(asked), asked.python)
    return 1  # not reached


def _pong(asked: argparse.Namespace) -> int:
    """Start or resume Pong in a worktree of its own, which stays at the commit it began with."""
    site = Site(asked.home.resolve(), ".results-pong")
    site.folder.mkdir(parents=True, exist_ok=True)
    with hold(site.lock, f"the study {PONG} of this clone is being run"):
        plan = _plan(asked, site.home)
        begun = [site.commit_file(spec.id) for spec in plan.study(PONG).runs()]
        commits = [path.read_text(encoding="utf-8") for path in begun if path.exists()]
        commit = commits[0] if commits else head(site.home)
    launch(site, commit, [*_words(asked), "--study", PONG], asked.python)
    return 1  # not reached


def _words(asked: argparse.Namespace) -> list[str]:
    queue = ["--queue", str(asked.queue.resolve())] if asked.queue else []
    return [*queue, "--jobs", str(asked.jobs)]


def _work(asked: argparse.Namespace) -> int:
    """Work from the worktree. `run` and `pong` become this."""
    from tools.results.queue import Queue, run_alone

    given = json.loads(asked.work)
    site = Site(Path(given["home"]), given["site"])
    plan = _plan(asked, site.worktree)
    if asked.study:
        return run_alone(site, plan, asked.study)
    queue = Queue(site, plan)
    code = queue.work(asked.jobs)
    if queue.update:
        print(f"going on with commit {queue.update[:7]}", flush=True)
        launch(site, queue.update, _words(asked), given["python"])
    return code


def _update(asked: argparse.Namespace) -> int:
    site = Site(asked.home.resolve())
    if not site.lock.exists() or not is_held(site.lock):
        print("the queue is not running: `make results` starts it at the present commit")
        return 0
    print(f"the queue takes commit {request_update(site)[:7]} after the present run")
    return 0


def _status(asked: argparse.Namespace) -> int:
    from tools.results.status import status

    print(status(Site(asked.home.resolve()), _plan(asked, asked.home)))
    return 0


def _check(asked: argparse.Namespace) -> int:
    from tools.results.check import check, fingerprints_here

    site = Site(asked.home.resolve())
    rows, _ = site.tables.read()
    return check(rows.values(), fingerprints_here(site) if rows else None)


def _page(asked: argparse.Namespace) -> int:
    from tools.results.page import write_page

    print(f"wrote {write_page(Site(asked.home.resolve()), _plan(asked, asked.home))}")
    return 0


def _plan(asked: argparse.Namespace, folder: Path) -> Plan:
    return read_plan(asked.queue or folder / "results" / "queue.toml")


COMMANDS = {
    "run": _run,
    "update": _update,
    "status": _status,
    "check": _check,
    "page": _page,
    "pong": _pong,
    "work": _work,
}

if __name__ == "__main__":
    sys.exit(main())
