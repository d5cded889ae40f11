"""The tables of a study: every combination in a row, and the paper's tables for games of the ALE."""

import csv
import io

from quantail.evaluation.games import game_of
from quantail.evaluation.results import Result, by_agent, results_csv
from quantail.evaluation.sheets import Scores, Sheet, aggregates_sheet, raw_sheet, with_paper
from quantail.experiments.results import Results
from quantail.experiments.scoring import best, early, late, scale_of, score


def summary_sheet(results: Results) -> Sheet:
    """Each combination: early, late and best, over its games and seeds."""
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
    return Sheet(results.study.title, columns, rows, notes)


def game_scores(results: Results) -> list[Result]:
    """The best evaluation of each run that is done, as `quantail scores` takes it."""
    return [
        Result(
            agent=trace.job.config.label,
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


def sheets(results: Results) -> dict[str, Sheet]:
    """The summary; for an aggregate of games also the paper's tables, with the paper beside them."""
    found = {"summary": summary_sheet(results)}
    if results.study.figure == "aggregate" and any(trace.done for trace in results.traces):
        scores: Scores = by_agent(game_scores(results))
        if scale_of(results).name == "human-normalised score":
            scores = with_paper(scores)
            found["aggregates"] = aggregates_sheet(scores, human_starts=False)
        found["raw"] = raw_sheet(scores, human_starts=False)
    return found


def sheet_csv(sheet: Sheet) -> str:
    """A sheet as a plain table."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(sheet.columns)
    first = ""
    for row in sheet.rows:
        first = row[0] or first  # for people, only the first row of a group has its name
        writer.writerow([first, *row[1:]])
    return text.getvalue()


def scores_csv(results: Results) -> str:
    """What `quantail scores` reads."""
    return results_csv(game_scores(results))
