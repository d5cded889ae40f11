"""Studies with made-up results, for figures and tables."""

import csv
import io

import numpy as np

from quantail.experiments.folder import StudyFolder
from quantail.experiments.results import FIRST, SCORES, THEN


def fake_results(path, study, score, share=1.0, points=20, there=None):
    """Create a study folder with a results.csv of `score(job, progress)` at `points` evaluations.

    A fraction `share` of the runs is done, the next one is half way, and the others have not started.
    If given, `there(job)` is the progress of each run instead, from 0 (not started) to 1 (done).
    """
    folder = StudyFolder(path)
    folder.open(study)
    jobs = list(folder.jobs.values())
    done = int(share * len(jobs))
    axes = [axis.name for axis in study.grid if axis.name not in (*FIRST, *THEN)]
    text = io.StringIO()
    writer = csv.DictWriter(text, [*FIRST, *axes, *THEN, *SCORES], lineterminator="\n", restval="0")
    writer.writeheader()
    for index, job in enumerate(jobs):
        last = points if index < done else points // 2 if index == done else -1
        if there:
            last = int(there(job) * points) or -1
        for point in range(last + 1):
            steps = job.config.run.steps * point // points
            writer.writerow(
                {
                    "job": job.name,
                    "env": job.env,
                    "config": job.combination.label,
                    "agent": job.config.run.agent,
                    "seed": job.seed,
                    "total_steps": job.config.run.steps,
                    "steps": steps,
                    "frames": steps * job.frames_per_step,
                    "policy": "agent" if point else "random",
                    "protocol": "own v1 (0000000000)",
                    "risk": job.config.risk.risk,
                    "episodes": 10,
                    "mean": float(score(job, point / points)),
                }
            )
    folder.results.write_text(text.getvalue())
    return folder


def rising(job, progress, seed=0):
    """Return a plausible noisy learning curve that is better with more samples."""
    s = job.config
    noise = np.random.default_rng([seed, sum(map(ord, job.name)), int(1000 * progress)])
    samples = (s.to_dict().get(name, 64) for name in ("online_samples", "target_samples"))
    online, target = np.log2(list(samples))
    good = 1 + 0.15 * online + 0.05 * target
    good *= {"dqn": 0.5, "qr-dqn": 0.9}.get(s.run.agent, 1.0)
    good *= {"cvar:0.1": 0.8, "wang:0.75": 0.7}.get(s.risk.risk, 1.0)
    return 0.5 + 6 * good * (1 - np.exp(-3 * progress)) + 0.4 * noise.standard_normal() * (progress > 0)
