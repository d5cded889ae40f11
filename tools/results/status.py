"""What of the queue is done, under way and left, and how many core-hours that will take."""

from collections.abc import Iterable
from pathlib import Path

from quantail.files import is_held
from quantail.runs.tables import read_rows
from quantail.text import counted
from tools.results.plan import Plan, Spec
from tools.results.site import Site, head
from tools.results.table import RunRow

ASSUMED = 450.0  # steps a second on one core, where nothing was measured


class Speed:
    """Seconds a step, as finished runs took them."""

    def __init__(self, rows: Iterable[RunRow]) -> None:
        totals: dict[tuple[str, str], tuple[float, int]] = {}
        for row in rows:
            seconds, steps = totals.get((row.agent, row.preset), (0.0, 0))
            totals[row.agent, row.preset] = (seconds + row.seconds, steps + row.trained)
        self._measured = {key: seconds / max(steps, 1) for key, (seconds, steps) in totals.items()}

    def seconds(self, spec: Spec) -> float:
        """Estimate a run by its agent and preset, or else by the assumption or the slowest agent."""
        key = (spec.agent, spec.preset)
        others = [one for (_, preset), one in self._measured.items() if preset == spec.preset]
        return spec.steps * self._measured.get(key, max([1 / ASSUMED, *others]))

    def is_measured(self, spec: Spec) -> bool:
        return (spec.agent, spec.preset) in self._measured


def status(site: Site, plan: Plan) -> str:
    """Describe the state of the queue in a few lines."""
    rows, _ = site.tables.read()
    background = plan.background()
    planned = {spec.id for _, spec in background}
    speed = Speed(rows.values())
    lines = [_running(site)]
    for study in plan.studies:
        runs = [spec for owner, spec in background if owner is study] or study.runs()
        left = [spec for spec in runs if spec.id not in rows]
        hours = sum(speed.seconds(spec) for spec in left) / 3600
        cost = f"about {hours:.1f} core-hours left" if left else "done"
        cost = cost if study.background else "done" if not left else "run by a command of its own"
        lines.append(f"{study.name:<24}{len(runs) - len(left):>4} of {len(runs):>3} runs   {cost}")
    left = [spec for _, spec in background if spec.id not in rows]
    lines += _under_way(site, {spec.id: spec for spec in left})
    hours = sum(speed.seconds(spec) for spec in left) / 3600
    lines.append(
        f"in all: {counted(len(planned & rows.keys()), 'run')} done, {counted(len(left), 'run')} left, "
        f"about {hours:.1f} core-hours"
    )
    guessed = [f"{spec.agent} ({spec.preset})" for spec in left if not speed.is_measured(spec)]
    if guessed:
        lines.append(
            f"not measured yet: {', '.join(dict.fromkeys(guessed))}; assumed {ASSUMED:g} steps/s, or as "
            "slow as the slowest agent with that preset"
        )
    if others := [row for name, row in rows.items() if name not in planned and not _alone(plan, row)]:
        lines.append(f"{counted(len(others), 'row')} of the tables not in the plan")
    return "\n".join(lines)


def _alone(plan: Plan, row: RunRow) -> bool:
    return any(row.study == study.name and not study.background for study in plan.studies)


def _running(site: Site) -> str:
    if not site.lock.exists() or not is_held(site.lock):
        return "the queue is not running: `make results` goes on with it"
    process = site.lock.read_text(encoding="utf-8").strip()
    text = f"the queue is running as process {process} at commit {head(site.worktree)[:7]}"
    if site.request.exists():
        text += f", and will take {site.request.read_text(encoding='utf-8')[:7]} after the present run"
    return text


def _under_way(site: Site, left: dict[str, Spec]) -> list[str]:
    """Describe the runs that have begun and are not finished."""
    lines = []
    for path in sorted(site.runs.glob("*.commit")):
        spec = left.get(path.stem)
        if spec is not None:
            steps = _steps(site.run(spec.id))
            lines.append(f"under way: {spec.label}, {steps:,} of {spec.steps:,} steps")
    return lines


def _steps(folder: Path) -> int:
    rows = read_rows(folder / "timing.csv")
    return int(rows[-1]["steps"]) if rows else 0
