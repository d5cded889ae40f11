"""The sections of a report: each function adds one of them."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from quantail.agents.agent import Agent
from quantail.errors import QuantailError
from quantail.evaluation.games import family_of
from quantail.evaluation.result_tables import (
    ResultTable,
    aggregates_table,
    normalised_table,
    raw_table,
    results_table,
    seeds_table,
)
from quantail.evaluation.results import Result, by_agent, csv_text, require_one_protocol, results_csv
from quantail.evaluation.scores import normalise
from quantail.recipes import composition
from quantail.runs.history import Group, History
from quantail.runs.select_results import SavedResult
from quantail.settings import shown
from quantail.text import duration
from quantail.training.train import load
from quantail.trust import Trust
from quantail.viewing import figures
from quantail.viewing.moments import find_moments
from quantail.viewing.page import Report, Section
from quantail.viewing.seeds import INTERVAL_NOTE

Results = dict[Path, tuple[Result, SavedResult]]  # the result of each run, and its saved content
ALE = "ALE"


def families(groups: Sequence[Group], results: Results) -> dict[str, list[Result]]:
    """Group the results: all ALE games together, and every other environment by itself."""
    found: dict[str, list[Result]] = {}
    for run in (run for group in groups for run in group.runs if run.path in results):
        result, env = results[run.path][0], run.info.env
        ale = family_of(env) == ALE
        found.setdefault(ALE if ale else env, []).append(result if ale else replace(result, game=env))
    return found


def learning_curves(report: Report, groups: Sequence[Group]) -> None:
    """Add the learning curves, one figure for each environment."""
    section = Section("Learning", [])
    rows = []
    for env in dict.fromkeys(group.env for group in groups):
        members = [group for group in groups if group.env == env]
        for group in members:
            for run in group.runs:
                columns = zip(*(run.curve[name] for name in ("steps", "frames", "mean")), strict=True)
                seed = run.config.run.seed
                for steps, frames, mean in columns:
                    rows.append(
                        [
                            env,
                            group.label,
                            seed,
                            int(steps),
                            int(frames),
                            repr(float(mean)),
                        ]
                    )
        drawn = [group for group in members if len(group.curves()[0])]
        for group in members:
            if group not in drawn:
                section.text.append(
                    f"{group.label} in {env} has no evaluation at a step that all of its seeds share."
                )
        if drawn:
            several = any(len(group.runs) > 1 for group in drawn)
            note = INTERVAL_NOTE if several else "There is one seed each, so there is no interval."
            caption = (
                f"{env}: mean raw return of evaluations during training. {note} {_curve_protocol(drawn)}"
            )
            section.pictures.append(
                report.picture(
                    f"learning-{_slug(env)}", caption, partial(figures.learning_curves, drawn)
                )
            )
        _add_metrics(report, section, [*drawn, *(one for one in members if one not in drawn)])
    report.table(
        "curves.csv", csv_text(["env", "agent", "seed", "steps", "frames", "mean_return"], rows)
    )
    report.sections.append(section)


def _add_metrics(report: Report, section: Section, groups: Sequence[Group]) -> None:
    """Add the curves of the metrics that heads and callbacks of one environment's runs report."""
    env = groups[0].env
    if figures.new_metrics(groups):
        caption = f"{env}: metrics of the head and of callbacks during training, one line for each run."
        draw = partial(figures.metric_curves, groups)
        section.pictures.append(report.picture(f"metrics-{_slug(env)}", caption, draw))


def _curve_protocol(groups: Sequence[Group]) -> str:
    return f"Protocol of each point: {groups[0].runs[0].protocol.describe()}."


def evaluation_scores(report: Report, groups: Sequence[Group], results: Results) -> None:
    """Add the scores after training, and histograms of the episode returns."""
    section = Section("Scores")
    found = families(groups, results)
    if not found:
        section.text.append("No run has a result yet: create one with `quantail eval`.")
        report.sections.append(section)
        return
    everything = [result for members in found.values() for result in members]
    report.table("scores.csv", results_csv(everything))
    section.text.append(
        "The evaluation uses episodes that were not used to choose the checkpoint, so the choice does "
        "not bias the scores."
    )
    for family, members in found.items():
        protocol = require_one_protocol(members)
        agents = by_agent(members)
        human_starts = members[0].human_starts
        section.tables.append(seeds_table(f"{family}: protocol {protocol}", agents))
        section.tables.append(results_table(members))
        if family == ALE:
            section.tables += [raw_table(agents, human_starts), normalised_table(agents, human_starts)]
            section.tables.append(aggregates_table(agents, human_starts))
            normalised = {
                agent: normalise(games, human_starts).scores for agent, games in agents.items()
            }
            scores = {agent: matrix for agent, matrix in normalised.items() if matrix.size}
            if any(matrix.shape[1] > 1 for matrix in scores.values()):
                caption = "Performance profiles over games and seeds."
                draw = partial(figures.profiles, scores)
                section.pictures.append(report.picture("profiles", caption, draw))
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
                    f"{env}: returns of single episodes, pooled over seeds.",
                    partial(figures.return_histograms, returns),
                )
            )
    report.sections.append(section)


def predicted_returns(
    report: Report, groups: Sequence[Group], say: Callable[[str], None], trust: Trust
) -> None:
    """Add the predicted return distributions of each agent at moments of an episode."""
    section = Section(
        "Predicted returns",
        [
            "The predicted quantile function of every action's discounted return, at moments of one "
            "episode. A steep curve means an uncertain return; risk-averse agents give more weight to "
            "its left end."
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
        say(f"drawing the predicted returns of {group.label} in {group.env}")
        for moment in moments:
            agent_name = f"{group.label} (seed {run.config.run.seed}) in {group.env}"
            caption = f"{agent_name}, step {moment.step}: {moment.why}."
            if moment.picture is None:
                caption += " The environment renders no picture."
            name = f"predicted-{number + 1}-step-{moment.step}"
            section.pictures.append(
                report.picture(name, caption, partial(figures.quantile_functions, agent, moment))
            )
    report.sections.append(section)


def training_time(report: Report, groups: Sequence[Group]) -> None:
    """Add the training time of each run, and how it is divided."""
    section = Section("Training time")
    seconds, rows = {}, []
    runs = [run for group in groups for run in group.runs]
    for run, name in zip(runs, short_names([run.path for run in runs]), strict=True):
        total = sum(run.seconds.values())
        if total:
            seconds[name] = run.seconds
            rows.append([name, duration(total), f"{run.steps:,}", f"{run.steps / total:,.0f}"])
    if seconds:
        columns = ["run", "time", "steps", "steps per second, including evaluation"]
        section.tables.append(ResultTable("up to the last checkpoint", columns, rows))
        section.pictures.append(
            report.picture(
                "time", "Shares of the time of each run.", partial(figures.time_shares, seconds)
            )
        )
        report.sections.append(section)


def short_names(paths: Sequence[Path]) -> list[str]:
    """Return the shortest end of each path that distinguishes it from the others."""
    all_parts = [path.resolve().parts for path in paths]

    def name(parts: tuple[str, ...]) -> str:
        length = 1
        while length < len(parts) and sum(other[-length:] == parts[-length:] for other in all_parts) > 1:
            length += 1
        return "/".join(parts[-length:])

    return [name(parts) for parts in all_parts]


def run_details(report: Report, groups: Sequence[Group]) -> None:
    """Add settings, protocol, versions and machine."""
    section = Section("Run details")
    for group in groups:
        first = group.runs[0]
        section.tables.append(_settings_table(group, first))
        about = [
            ["runs", ", ".join(str(run.path) for run in group.runs)],
            ["seeds", ", ".join(str(run.config.run.seed) for run in group.runs)],
            ["preset", first.info.preset],
            ["protocol during training", first.protocol.describe()],
            ["started", ", ".join(str(run.about.get("created", "?")) for run in group.runs)],
            ["command", str(first.about.get("command", "?"))],
            ["versions", ", ".join(f"{k} {v}" for k, v in first.about.get("versions", {}).items())],
            ["machine", ", ".join(f"{k} {v}" for k, v in first.about.get("machine", {}).items())],
        ]
        section.tables.append(
            ResultTable(f"{group.label} in {group.env}: provenance", ["property", "value"], about)
        )
    report.sections.append(section)


def _settings_table(group: Group, run: History) -> ResultTable:
    """Return all settings that are active in the run, with unit and source."""
    config = run.config
    try:
        chosen = composition(run.info.preset, {"agent": config.run.agent}).sources
    except QuantailError:  # the preset file no longer exists
        chosen = {}
    rows = [
        [name, shown(value), config.about(name).unit, chosen.get(name, "")]
        for name, value in config.to_dict().items()
        if config.is_active(name)
    ]
    return ResultTable(
        f"{group.label} in {group.env}: settings", ["setting", "value", "unit", "source"], rows
    )


def _slug(env: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", env.lower()).strip("-")
