"""Go on with the queue: the planned runs that have no row yet, then the stale ones again."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from threading import Lock

import psutil

from quantail.errors import QuantailError
from quantail.files import hold
from quantail.text import counted
from tools.children import Children, StoppedError
from tools.results.check import Checker
from tools.results.plan import Plan, Spec, Study
from tools.results.runner import FailedError, Runner
from tools.results.site import Site, head, take_request

LOWEST = 19


class Queue:
    """The queue of a site, at work from its worktree."""

    def __init__(self, site: Site, plan: Plan, python: str = sys.executable) -> None:
        self.site, self.plan = site, plan
        self.children = Children()
        self.runner = Runner(site, head(site.worktree), python, self.children)
        self.failed: dict[str, str] = {}  # why, by the ids of runs
        self.update = ""  # the commit to go on with
        self._taken: set[str] = set()
        self._choosing = Lock()

    def work(self, jobs: int) -> int:
        """Run until nothing is left or a newer commit is asked for; return an exit code."""
        be_nice()
        with hold(self.site.lock, "the results queue of this clone is being run"):
            self.site.tables.restore()
            with stopping(self.children), ThreadPoolExecutor(jobs) as pool:
                for stage in (self._unfinished, self._stale):
                    if not self.update:
                        self._together(pool, jobs, stage())
        if not self.update:
            print(f"the queue is done; {counted(len(self.failed), 'run')} failed", flush=True)
        return 1 if self.failed else 0

    def _together(
        self, pool: ThreadPoolExecutor, jobs: int, next_run: Callable[[], tuple[Study, Spec] | None]
    ) -> None:
        """Let as many threads as asked for take runs, until there are none."""
        try:
            for done in as_completed([pool.submit(self._take_all, next_run) for _ in range(jobs)]):
                done.result()
        except BaseException:
            self.children.stop()
            raise

    def _take_all(self, next_run: Callable[[], tuple[Study, Spec] | None]) -> None:
        while not self.children.stopping:
            with self._choosing:
                self.update = self.update or take_request(self.site, self.runner.commit)
                chosen = None if self.update else next_run()
                if chosen is None:
                    return
                self._taken.add(chosen[1].id)
            with suppress(StoppedError):
                self._run(*chosen)

    def _run(self, study: Study, spec: Spec) -> None:
        try:
            self.runner.run(study, spec)
        except FailedError as error:
            self.failed[spec.id] = str(error)
            print(f"failed: {error}", file=sys.stderr, flush=True)

    def _unfinished(self) -> Callable[[], tuple[Study, Spec] | None]:
        """Return a function that gives the next planned run without a row, in the plan's order."""

        def choose() -> tuple[Study, Spec] | None:
            self.site.tables.restore()  # what a branch switch took away is not run again
            done, _ = self.site.tables.read()
            for study, spec in self.plan.background():
                if spec.id not in done and spec.id not in self._taken:
                    return study, spec
            return None

        return choose

    def _stale(self) -> Callable[[], tuple[Study, Spec] | None]:
        """Return a function that gives the next run whose fingerprint has changed since."""
        done, _ = self.site.tables.read()
        self._taken.clear()
        checker = Checker(self.runner.fingerprint)
        planned = iter(self.plan.background())

        def choose() -> tuple[Study, Spec] | None:
            for study, spec in planned:
                if spec.id in done and checker.verdict(done[spec.id]).stale:
                    return study, spec
            return None

        return choose


@contextmanager
def stopping(children: Children) -> Iterator[None]:
    """Stop the children on Ctrl-C and SIGTERM, after they have saved."""

    def terminated(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, terminated)
    try:
        yield
    except KeyboardInterrupt:
        print("stopping: the runs under way save what they have", file=sys.stderr, flush=True)
        children.stop()
        raise SystemExit(128 + signal.SIGINT) from None
    finally:
        children.stop()
        signal.signal(signal.SIGTERM, before)


def be_nice() -> None:
    """Take the lowest priority for the processor and the disk; children inherit it."""
    if hasattr(os, "nice"):
        os.nice(LOWEST)
    if hasattr(psutil, "IOPRIO_CLASS_IDLE"):
        with suppress(psutil.Error, OSError):
            psutil.Process().ionice(psutil.IOPRIO_CLASS_IDLE)


def run_alone(site: Site, plan: Plan, name: str, python: str = sys.executable) -> int:
    """Do the runs of a study that is not part of the background queue."""
    study, children = plan.study(name), Children()
    runner = Runner(site, head(site.worktree), python, children)
    with hold(site.lock, f"the study {name} of this clone is being run"), stopping(children):
        site.tables.restore()
        done, _ = site.tables.read()
        left = [spec for spec in study.runs() if spec.id not in done]
        print(f"{name}: {counted(len(left), 'run')} to do", flush=True)
        for spec in left:
            try:
                runner.run(study, spec)
            except FailedError as error:
                raise QuantailError(str(error)) from error
            except StoppedError:
                return 1
    return 0
