"""The tables of a study: one row per combination, and scores next to the paper's for ALE games."""

import csv
import io

from quantail.evaluation.games import game_of
from quantail.evaluation.result_tables import (
    ResultTable,
    Scores,
    aggregates_table,
    raw_table,
    with_paper,
)
from quantail.evaluation.results import Result, by_agent, results_csv
from quantail.experiments.results import Results
from quantail.experiments.scoring import best, early, late, scale_of, score


def summary_table(results: Results) -> ResultTable:
    """Return a table of the early, late and best score of each combination, over games and seeds."""
    scale, window = scale_of(results), f"{results.study.window:.0%}"
    rows = []
    for config in results.configs:
        scores = [score(results, scale, config, one) for one in (early(results), late(results), best)]
        runs = f"{scores[1].runs} of {scores[1].planned}"
        rows.append([config.label, runs, *(scale.text(one.value) for one in scores)])
    notes = [
        f"{scale.name}, mean over games of the mean over seeds; early and late are the evaluations in "
        f"the first and the last {window} of training, best is the highest evaluation of a run"
    ]
    if results.partial:
        notes.append(results.partial)
    columns = ["combination", "runs done", "early", "late", "best"]
    return ResultTable(results.study.title, columns, rows, notes)


def game_scores(results: Results) -> list[Result]:
    """Return the best evaluation of each finished run, in the form that `quantail scores` reads."""
    return [
        Result(
            agent=trace.job.combination.label,
            game=game_of(trace.job.env),
            seed=str(trace.job.seed),
            score=best(trace),
            protocol=trace.protocol,
            frames=str(trace.job.frames),
            episodes=str(trace.episodes),
            source=trace.job.name,
        )
        for trace in results.traces
        if trace.done
    ]


def tables(results: Results) -> dict[str, ResultTable]:
    """Return the summary; for an aggregate over games also the score tables, next to the paper's."""
    found = {"summary": summary_table(results)}
    if results.study.figure == "aggregate" and any(trace.done for trace in results.traces):
        scores: Scores = by_agent(game_scores(results))
        if scale_of(results).name == "human-normalised score":
            scores = with_paper(scores)
            found["aggregates"] = aggregates_table(scores, human_starts=False)
        found["raw"] = raw_table(scores, human_starts=False)
    return found


def table_csv(table: ResultTable) -> str:
    """Return a table as CSV text, with the group name in every row."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    first = ""
    for row in table.rows:
        first = row[0] or first  # in the printed table, only the first row of a group has its name
        writer.writerow([first, *row[1:]])
    return text.getvalue()


def scores_csv(results: Results) -> str:
    """Return the scores as CSV text, as `quantail scores` reads it."""
    return results_csv(game_scores(results))
