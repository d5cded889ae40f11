"""What a queue at work can be seen to do."""

import csv
import time

import psutil


def rows(home, table="runs"):
    path = home.results / f"{table}.csv"
    return list(csv.DictReader(path.open())) if path.exists() else []


def processes(home):
    """The processes that work for the queue of a clone."""
    found = []
    for process in psutil.process_iter():
        try:
            words = " ".join(process.cmdline())
            if str(home.site) in words and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def wait_until(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.05)
