"""results/README.md, drawn from the tables. What stands below its last line is written by hand."""

import re
from collections import Counter
from pathlib import Path

from quantail.errors import QuantailError
from quantail.files import write_text
from quantail.recipes import compose
from quantail.text import counted
from tools.results import tables
from tools.results.figure import draw_curves
from tools.results.plan import Plan, value_text
from tools.results.sections import Section, published, sections
from tools.results.site import Site
from tools.results.table import RunRow

MARK = "<!-- Above this line: written by `make results-page`. Below: written by hand. -->"
FEW = 5  # seeds below which a bootstrap interval is too narrow


def write_page(site: Site, plan: Plan) -> Path:
    """Draw the page and its figures; return the path of the page."""
    path = site.results / "README.md"
    before = path.read_text(encoding="utf-8") if path.exists() else MARK
    if MARK not in before:
        raise QuantailError(f"{path} has no line {MARK!r} that separates what is written by hand.")
    site.tables.restore()
    rows, curves = site.tables.read()
    known = sections(plan, rows, curves)
    parts = [_introduction(rows, plan)]
    parts += [_section(section, site.results) for section in known if section.rows]
    if left := [section.title for section in known if not section.rows]:
        parts.append("Planned, without a finished run yet: " + "; ".join(left) + ".")
    write_text(path, "\n\n".join([*parts, MARK]) + before.partition(MARK)[2])
    return path


def _introduction(rows: dict[str, RunRow], plan: Plan) -> str:
    planned = {spec.id for study in plan.studies for spec in study.runs()}
    done = [row for name, row in rows.items() if name in planned]
    text = [
        "# Results",
        "What agents reach with this code, from runs of the [queue](queue.toml). `make results` goes on "
        "with it and adds a row for each finished run to [runs.csv](runs.csv), and its evaluations in "
        "training to [curves.csv](curves.csv); `make results-page` draws this page from them.",
        f"**{len(done)} of {counted(len(planned), 'planned run')} done.**",
    ]
    if done:
        hours = sum(row.seconds for row in done) / 3600
        text.append(
            f"They took {hours:.1f} core-hours, with "
            f"commits {_counted(row.commit[:7] for row in done)}; "
            f"kernels {_counted(row.kernels for row in done)}; "
            f"torch {_counted(row.torch for row in done)}; "
            f"processor {_counted(row.processor for row in done)}. "
            "`make results-check` lists rows that the present code would not give again."
        )
    text.append(
        "How to read the tables: a score is the mean return of the last weights over fresh episodes, "
        "averaged over seeds. From two seeds on, a 95 % bootstrap interval over seeds follows as "
        "[low, high], and the number of seeds in parentheses. With fewer than "
        f"{FEW} seeds such an interval is too narrow: take it as the spread of the seeds."
    )
    return "\n\n".join(text)


def _section(section: Section, folder: Path) -> str:
    text = [f"## {section.title}", _budget(section)]
    if section.is_grid:
        text.append(tables.grid(section))
    else:
        text.append(tables.scores(section))
        stem = re.sub(r"[^a-z0-9]+", "-", section.title.lower().replace(",", "")).strip("-")
        draw_curves(section, folder / "figures" / f"{stem}.png")
        text.append(f"![Mean return in evaluations during training](figures/{stem}.png)")
        text.append("Lines are means over seeds, bands their 95 % intervals, dots random play.")
    clear: list[str] = []
    if not section.is_grid:
        if found := tables.aggregates(section):
            text += [
                "Scores over all games, where 0 is random play and 1 is DQN of the MinAtar paper after "
                "5M frames:",
                found,
            ]
        table, clear = tables.improvements(section)
        if table:
            text += [
                "Probability that a run of the row's agent scores higher than one of the column's:",
                table,
            ]
    if not section.reported:
        text += _choice(section)
    text += [_shown(section, clear), _protocols(section)]
    return "\n\n".join(text)


def _budget(section: Section) -> str:
    done, planned = len(section.rows), sum(section.planned.values())
    steps = _joined(f"{study.steps:,}" for study in section.studies)
    short = [row for row in section.rows if row.trained < row.steps]
    ended = "".join(f" {row.spec.label} ended after {row.trained:,} steps." for row in short)
    return f"{done} of {counted(planned, 'run')}, {steps} steps each.{ended}"


def _choice(section: Section) -> list[str]:
    """Say which combination is best for each agent, and whether its preset has it."""
    lines = ["These runs choose settings; their seeds are not used again. Games count equally."]
    study = section.studies[0]
    for agent in section.agents:
        found = tables.best(section, agent)
        if found is None:
            lines.append(f"- `{agent}`: not all runs are done.")
            continue
        combination, means, runs = found
        words = ", ".join(f"{name} {text}" for name, text in combination)
        games = zip(section.envs, means, strict=True)
        scores = ", ".join(f"{tables.name(env)} {mean:.1f}" for env, mean in games)
        edge = [n for n, text in combination if text in (str(study.grid[n][0]), str(study.grid[n][-1]))]
        note = ", at the edge of the grid" if edge else ""
        preset = compose(study.preset, {"agent": agent}).to_dict()
        used = ", ".join(value_text(preset[name]) for name, _ in combination)
        lines.append(
            f"- `{agent}`: best with {words} ({scores}; {counted(runs, 'run')}{note}); the preset "
            f"`{study.preset}` has {used} for it."
        )
    return ["\n".join([lines[0], "", *lines[1:]])]


def _shown(section: Section, clear: list[str]) -> str:
    """Say what the section shows and what it does not, from the numbers of its runs."""
    counts = sorted({len(rows) for rows in section.runs.values()})
    seeds = counted(counts[0], "seed") if len(counts) == 1 else f"{counts[0]} to {counts[-1]} seeds"
    shows = "; ".join(clear) or "no two agents can be told apart yet"
    if section.is_grid or len(section.agents) < 2:
        shows = "the scores above"
    one = not section.is_grid and len(section.agents) < 2
    limits = [] if one else [f"an order where intervals overlap ({seeds} a cell)"]
    if clear:
        limits.append(
            "that every one of these pairs would come out again: many pairs were compared"
            + f", and with fewer than {FEW} seeds intervals are too narrow" * (counts[-1] < FEW)
        )
    if not section.is_grid:
        limits.append("agents at their best: settings were not tuned for each game")
    if len(section.rows) < sum(section.planned.values()):
        limits.append("the whole study, which is not finished")
    if counts[-1] < 2:
        limits.append("how much scores vary between seeds")
    if any(published(env) for env in section.envs) and not section.is_grid:
        limits.append(
            "a comparison on equal terms with the published figures, whose protocol differs (below)"
        )
    return f"What it shows: {shows}. What it does not show: {'; '.join(limits)}."


def _protocols(section: Section) -> str:
    """List the protocol of every game, and of the published figures."""
    protocols: dict[str, list[str]] = {}
    for row in section.rows:
        games = protocols.setdefault(row.protocol, [])
        games += [tables.name(row.game)] * (tables.name(row.game) not in games)
    lines = [f"- {', '.join(games)}: {protocol}" for protocol, games in protocols.items()]
    if not section.is_grid:
        sources = {source.name: source for env in section.envs for source, *_ in published(env)}
        lines += [
            f"- *{one.title}*: {one.measured}, {one.seeds} seeds, while training with ε 0.1 and six "
            f"actions; sticky actions 0.1, ramping ({one.origin})"
            for one in sources.values()
        ]
    return "\n".join(["Protocols:", "", *lines])


def _counted(values) -> str:
    counts = Counter(values)
    only = len(counts) == 1
    return _joined(name if only else f"{name} ({count})" for name, count in counts.most_common())


def _joined(words) -> str:
    return ", ".join(dict.fromkeys(words))
