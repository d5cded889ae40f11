"""What stands in a report: each function adds one section."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from quantail.acting.agent import Agent
from quantail.errors import QuantailError
from quantail.evaluation.games import family_of
from quantail.evaluation.results import Result, by_agent, csv_text, require_one_protocol, results_csv
from quantail.evaluation.scores import normalise
from quantail.evaluation.sheets import (
    Sheet,
    aggregates_sheet,
    normalised_sheet,
    raw_sheet,
    results_sheet,
    seeds_sheet,
)
from quantail.recipes import sources
from quantail.registry import Trust
from quantail.settings import ABOUT, shown
from quantail.training.chosen_results import Kept
from quantail.training.history import Group, History
from quantail.training.progress import duration
from quantail.training.train import load
from quantail.viewing import figures
from quantail.viewing.moments import find_moments
from quantail.viewing.page import Report, Section

Results = dict[Path, tuple[Result, Kept]]  # of each run, the evaluation that counts
ALE = "ALE"


def families(groups: Sequence[Group], results: Results) -> dict[str, list[Result]]:
    """The results of ALE games together, and of any other environment by itself."""
    found: dict[str, list[Result]] = {}
    for run in (run for group in groups for run in group.runs if run.path in results):
        result, env = results[run.path][0], run.info.env
        ale = family_of(env) == ALE
        found.setdefault(ALE if ale else env, []).append(result if ale else replace(result, game=env))
    return found


def learning(report: Report, groups: Sequence[Group]) -> None:
    """Curves over training, one figure for each environment."""
    section = Section("Learning", [])
    rows = []
    for env in dict.fromkeys(group.env for group in groups):
        here = [group for group in groups if group.env == env]
        for group in here:
            for run in group.runs:
                columns = zip(*(run.curve[name] for name in ("steps", "frames", "mean")), strict=True)
                for steps, frames, mean in columns:
                    rows.append(
                        [env, group.label, run.settings.seed, int(steps), int(frames), repr(float(mean))]
                    )
        drawn = [group for group in here if len(group.curves()[0])]
        for group in here:
            if group not in drawn:
                section.text.append(
                    f"{group.label} in {env} has not been evaluated at a step common to its seeds."
                )
        if drawn:
            several = any(len(group.runs) > 1 for group in drawn)
            note = figures.INTERVAL_NOTE if several else "One seed each, so there is no interval."
            caption = (
                f"{env}: mean raw return of evaluations during training. {note} {_curve_budget(drawn)}"
            )
            section.pictures.append(
                report.picture(f"learning-{_slug(env)}", caption, figures.learning_curves(drawn))
            )
    report.table(
        "curves.csv", csv_text(["env", "agent", "seed", "steps", "frames", "mean_return"], rows)
    )
    report.sections.append(section)


def _curve_budget(groups: Sequence[Group]) -> str:
    return f"Protocol {groups[0].runs[0].protocol.describe()} a point."


def scores_of_runs(report: Report, groups: Sequence[Group], results: Results) -> None:
    """Scores after training, and how single returns spread."""
    section = Section("Scores")
    found = families(groups, results)
    if not found:
        section.text.append("No run has a result: make one with `quantail eval`.")
        report.sections.append(section)
        return
    tidy = [result for members in found.values() for result in members]
    report.table("scores.csv", results_csv(tidy))
    section.text.append(
        "Evaluated after training on episodes that did not choose the checkpoint, so that the choice "
        "does not flatter the score."
    )
    for family, members in found.items():
        protocol = require_one_protocol(members)
        agents = by_agent(members)
        human_starts = members[0].human_starts
        section.sheets.append(seeds_sheet(f"{family}: protocol {protocol}", agents))
        section.sheets.append(results_sheet(members))
        if family == ALE:
            section.sheets += [raw_sheet(agents, human_starts), normalised_sheet(agents, human_starts)]
            section.sheets.append(aggregates_sheet(agents, human_starts))
            normal = {agent: normalise(games, human_starts).scores for agent, games in agents.items()}
            scores = {agent: matrix for agent, matrix in normal.items() if matrix.size}
            if any(matrix.shape[1] > 1 for matrix in scores.values()):
                caption = "Performance profiles over games and seeds."
                section.pictures.append(report.picture("profiles", caption, figures.profiles(scores)))
    for env in dict.fromkeys(group.env for group in groups):
        returns = {}
        for group in groups:
            pooled = [results[run.path][1]["returns"] for run in group.runs if run.path in results]
            if group.env == env and pooled:
                returns[group.label] = np.concatenate([np.array(one, np.float64) for one in pooled])
        if returns:
            section.pictures.append(
                report.picture(
                    f"returns-{_slug(env)}",
                    f"{env}: returns of single episodes, all seeds together.",
                    figures.return_histograms(returns),
                )
            )
    report.sections.append(section)


def distributions(
    report: Report, groups: Sequence[Group], say: Callable[[str], None], trust: Trust
) -> None:
    """What each agent expects at moments of a game."""
    section = Section(
        "What the agents expect",
        [
            "At moments of one game: for every action the quantile function of the discounted return. "
            "A steep curve is an uncertain return; its left end is bad luck, which careful agents weigh."
        ],
    )
    for number, group in enumerate(groups):
        run = group.runs[0]
        try:
            agent: Agent = load(run.path, trust=trust)
            moments = find_moments(agent)
        except QuantailError as error:
            section.text.append(f"{group.label} in {group.env}: not shown. {error}")
            continue
        say(f"drawing what {group.label} expects in {group.env}")
        for moment in moments:
            who = f"{group.label} (seed {run.settings.seed}) in {group.env}"
            caption = f"{who}, step {moment.step}: {moment.why}."
            if moment.picture is None:
                caption += " The environment has no picture of itself."
            name = f"expects-{number + 1}-step-{moment.step}"
            section.pictures.append(
                report.picture(name, caption, figures.quantile_functions(agent, moment))
            )
    report.sections.append(section)


def time_spent(report: Report, groups: Sequence[Group]) -> None:
    """Where the time of each run went."""
    section = Section("Where time went")
    seconds, rows = {}, []
    runs = [run for group in groups for run in group.runs]
    for run, name in zip(runs, short_names([run.path for run in runs]), strict=True):
        total = sum(run.seconds.values())
        if total:
            seconds[name] = run.seconds
            rows.append([name, duration(total), f"{run.steps:,}", f"{run.steps / total:,.0f}"])
    if seconds:
        columns = ["run", "time", "steps", "steps a second, with evaluation"]
        section.sheets.append(Sheet("to the last checkpoint", columns, rows))
        section.pictures.append(
            report.picture("time", "Shares of each run's time.", figures.time_shares(seconds))
        )
        report.sections.append(section)


def short_names(paths: Sequence[Path]) -> list[str]:
    """As much of the end of each path as tells it from the others."""
    whole = [path.resolve().parts for path in paths]

    def name(parts: tuple[str, ...]) -> str:
        length = 1
        while length < len(parts) and sum(other[-length:] == parts[-length:] for other in whole) > 1:
            length += 1
        return "/".join(parts[-length:])

    return [name(parts) for parts in whole]


def details(report: Report, groups: Sequence[Group]) -> None:
    """Settings, protocol, versions and machine."""
    section = Section("The runs")
    for group in groups:
        first = group.runs[0]
        section.sheets.append(_settings_sheet(group, first))
        about = [
            ["runs", ", ".join(str(run.path) for run in group.runs)],
            ["seeds", ", ".join(str(run.settings.seed) for run in group.runs)],
            ["preset", first.info.preset],
            ["protocol in training", first.protocol.describe()],
            ["begun", ", ".join(str(run.about.get("created", "?")) for run in group.runs)],
            ["command", str(first.about.get("command", "?"))],
            ["versions", ", ".join(f"{k} {v}" for k, v in first.about.get("versions", {}).items())],
            ["machine", ", ".join(f"{k} {v}" for k, v in first.about.get("machine", {}).items())],
        ]
        section.sheets.append(
            Sheet(f"{group.label} in {group.env}: how it was made", ["what", ""], about)
        )
    report.sections.append(section)


def _settings_sheet(group: Group, run: History) -> Sheet:
    """Every setting that counts, those that were chosen first."""
    settings = run.settings.to_dict()
    try:
        chosen = sources(run.info.preset, {"agent": run.settings.agent})
    except QuantailError:  # a preset file that is gone
        chosen = {}
    rows = [
        [name, shown(value), ABOUT[name].unit, chosen.get(name, "")]
        for name, value in settings.items()
        if run.settings.counts(name)
    ]
    return Sheet(f"{group.label} in {group.env}: settings", ["setting", "value", "unit", "source"], rows)


def _slug(env: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", env.lower()).strip("-")
