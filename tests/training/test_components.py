"""Every component of a run is saved and restored, and nothing else changes while it runs."""

import json
import re
import shutil

import numpy as np
import pytest
import torch

import quantail as q
from quantail.errors import QuantailError
from quantail.files import checksum, read_arrays, write_arrays
from quantail.risk import parse_risk
from quantail.runs.checkpoints import Checkpoints
from quantail.runs.folder import RunFolder
from quantail.training.build import build_parts
from quantail.training.components import Components
from quantail.training.trainer import Trainer
from tests.helpers.graph import values_of
from tests.helpers.runs import prepare, quick
from tests.helpers.sealed import editing

AGENTS = ("iqn", "rainbow")
STEPS, SAVED = 200, 130


class Watch(q.Callback):
    """Notes what a callback sees, records one metric and keeps a count of its own."""

    def __init__(self, stop=False):
        self.stop, self.seen, self.count = stop, [], 0

    def on_start(self, progress):
        self.seen += [repr(progress.status), repr(progress.summary.scores)]

    def on_warning(self, progress):
        self.seen.append(progress.warning)

    def on_step(self, progress):
        self.count += 1
        if progress.steps == SAVED - 5:
            progress.record("mark", 5.0)
        if self.stop and progress.steps >= SAVED:
            progress.stop("half way")

    def state_dict(self):
        return {"count": self.count}

    def load_state_dict(self, state):
        self.count = state["count"]


@pytest.fixture(scope="module", params=AGENTS)
def half(request, tmp_path_factory):
    """A run that was stopped between two rows, evaluations and checkpoints."""
    run = tmp_path_factory.mktemp("half") / "run"
    settings = quick(request.param) | {"steps": STEPS}
    q.train("CartPole-v1", out=run, callbacks=[Watch(stop=True)], **settings)
    return run


@pytest.fixture(scope="module")
def whole(half, tmp_path_factory):
    return outcome(half, tmp_path_factory.mktemp("whole") / "run", lambda folder: None)


def outcome(run, copy, change):
    """Change a copy of a run, resume it, and return all that came of it, without small times."""
    shutil.copytree(run, copy)
    change(copy / "checkpoints" / f"{SAVED:09d}")
    watch = Watch()
    try:
        q.resume(copy, callbacks=[watch])
    except QuantailError as error:
        return str(error)
    last = copy / "checkpoints" / (copy / "checkpoints/last").read_text().strip()
    state = json.loads((last / "state.json").read_text())
    for name in ("checksum", "checksums", "replay"):
        del state[name]
    for name in ("clock", "metrics"):
        state[name] = {key: value // 1e5 for key, value in state[name].items()}
    timing = (copy / "timing.csv").read_text().split("\n", 1)[1]
    return {
        "seen": [line.replace(str(copy), "") for line in watch.seen],
        "state": state,
        "arrays": {path.name: path.read_bytes() for path in sorted(last.glob("*.safetensors"))},
        "checkpoints": sorted(path.name for path in (copy / "checkpoints").iterdir()),
        "timing": [float(number) // 1e5 for number in re.split("[,\n]", timing) if number],
        **{name: (copy / f"{name}.csv").read_bytes() for name in ("metrics", "episodes", "evaluations")},
    }


def leaves(value, path=()):
    """Yield the paths to the numbers of a JSON value: all of a dictionary, the first of a list."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from leaves(one, (*path, key))
    elif isinstance(value, list):
        yield from leaves(value[0], (*path, 0)) if value else ()
    elif type(value) in (int, float):
        yield path


def nudge_json(component, path, sign):
    def change(folder):
        with editing(folder / "state.json") as content:
            place = content[component]
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] += sign * (1000 if type(place[path[-1]]) is int else 1e6)

    return change


def nudge_array(component, name, sign):
    def change(folder):
        path = folder / f"{component}.safetensors"
        arrays = {key: array.copy() for key, array in read_arrays(path).items()}
        arrays[name].reshape(-1)[0] += arrays[name].dtype.type(sign)
        write_arrays(path, arrays)
        with editing(folder / "state.json") as content:
            content["checksums"][path.name] = checksum(path)

    return change


def entries(run):
    """Return a way to change each entry of each component, one for each kind of tensor."""
    folder = run / "checkpoints" / f"{SAVED:09d}"
    content = json.loads((folder / "state.json").read_text())
    for component in content.keys() - {"schema", "checksum", "checksums"}:
        for path in leaves(content[component]):
            # Half of a draw that a generator may keep: a flag, and a number that is read if it is set.
            if path[-1] not in ("has_uint32", "uinteger"):
                yield (component, *path), nudge_json(component, path, 1), nudge_json(component, path, -1)
    for file in content["checksums"]:
        component = file.removesuffix(".safetensors")
        kinds = {}
        for name in read_arrays(folder / file):
            parts = name.split(".")
            kinds.setdefault((parts[0] if len(parts) > 2 else "", parts[-1]), name)
        for name in kinds.values():
            yield (component, name), nudge_array(component, name, 1), nudge_array(component, name, -1)


def test_every_entry_of_every_component_is_restored(half, whole, tmp_path):
    assert whole == outcome(half, tmp_path / "again", lambda folder: None)
    unnoticed = []
    for number, (name, *changes) in enumerate(entries(half)):
        for sign, change in enumerate(changes):
            if outcome(half, tmp_path / f"{number}-{sign}", change) != whole:
                break
        else:
            unnoticed.append(name)
    assert not unnoticed


def test_a_checkpoint_consists_of_the_components_of_the_run(half):
    saved = Checkpoints(half / "checkpoints").read("last").components
    assert saved >= {"counters", "due", "scores", "clock", "generators", "agent", "learner", "replay"}
    assert saved >= {"sampler", "collector", "metrics", "tables", "progress", "callback.Watch"}


# The other direction: what a run holds is the same after it was restored. These need not be.
NOT_RESTORED = {
    r"\.clock\.seconds\[files\]": "the time that the checkpoint itself took",
    r"\._gradients\b": "gradients are written before they are read",
    r"\.noise\b": "noisy layers draw their noise before each use",
    r"\.recorder\._ended\b": "`run` hands these episodes to the callbacks after each step",
    r"\.saver\._segments\b": "files of older checkpoints, which only pruning needs",
    r"\.callbacks\.progress\._": "what callbacks have seen in this session",
    r"\.evaluator\._envs\b": "environments kept open; each evaluation seeds them anew",
    r"\.signals\._before\b": "the handlers of this process",
}


def restored(run):
    folder = RunFolder(run)
    info = folder.read()
    measures = info.config.risk.measures(parse_risk(info.config.risk.risk))
    trainer = Trainer(build_parts(folder, info, info.env, measures, torch.device("cpu")))
    trainer.restore(Checkpoints(folder.checkpoints).read("last"))
    trainer.start()
    return trainer


def lost_values(agent, run):
    """Return what a run that was stopped held, and a restored one does not."""
    held = []

    class Look(q.Callback):
        def on_start(self, progress):
            held.append(values_of(trainer, NOT_RESTORED))

        def on_step(self, progress):
            if progress.steps >= SAVED:
                progress.stop("half way")

        def on_end(self, progress):
            held.append(values_of(trainer, NOT_RESTORED))

    settings = quick(agent) | {"steps": STEPS}
    trainer = prepare("CartPole-v1", out=run, callbacks=[Look()], **settings)
    trainer.run()
    before, saved = held
    again = restored(run)
    found = values_of(again, NOT_RESTORED)
    again.close()
    changed = [path for path in saved if saved[path] != before.get(path)]
    assert len(changed) > 50
    return [path for path in changed if saved[path] != found.get(path)]


@pytest.mark.parametrize("agent", AGENTS)
def test_a_restored_trainer_holds_what_the_saved_one_held(agent, tmp_path):
    assert not lost_values(agent, tmp_path / "run")


@pytest.mark.parametrize(
    "name", ["counters", "due", "scores", "metrics", "generators", "agent", "learner", "sampler"]
)
def test_a_component_that_is_forgotten_is_noticed(name, tmp_path, monkeypatch):
    build = Components.__init__

    def without(self, by_name, warn):
        build(self, {key: one for key, one in by_name.items() if key != name}, warn)

    monkeypatch.setattr(Components, "__init__", without)
    assert lost_values("rainbow", tmp_path / "run")


def test_arrays_are_compared_by_their_values():
    assert values_of({"a": np.zeros(3)}) != values_of({"a": np.array([0.0, 0.0, 1.0])})
