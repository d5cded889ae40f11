"""quantail video RUN --out FILE.mp4"""

from quantail.cli.parser import Parser, add_trust
from quantail.text import counted
from quantail.training.train import load
from quantail.validation import whole_number
from quantail.viewing.video import MAX_FPS, make_video


def run(words: list[str]) -> int:
    parser = Parser(
        prog="quantail video",
        description="Film an episode of the agent of a run: the environment, and next to it the "
        "quantile function of the return of every action, with the chosen action in bold.",
    )
    parser.add_argument("run", metavar="RUN", help="folder of the run")
    parser.add_argument("--out", required=True, metavar="FILE.mp4", help="video file to write")
    parser.add_argument("--steps", default="300", metavar="N", help="maximum number of steps [300]")
    parser.add_argument(
        "--fps", metavar="F", help="steps per second, 1 to 120 [the environment's, at most 15]"
    )
    parser.add_argument("--risk", help="risk measure of the policy, such as cvar:0.1 [the run's own]")
    parser.add_argument("--seed", default="1", metavar="S", help="seed of the episode [1]")
    parser.add_argument("--checkpoint", metavar="last|best|N", help="checkpoint to load [best, or last]")
    add_trust(parser)
    arguments = parser.parse(words)
    steps, seed = whole_number("steps", arguments.steps, 1), whole_number("seed", arguments.seed, 0)
    fps = None if arguments.fps is None else whole_number("fps", arguments.fps, 1, MAX_FPS)
    agent = load(arguments.run, arguments.checkpoint, risk=arguments.risk, trust=arguments.trust)
    filmed = make_video(agent, arguments.out, steps=steps, seed=seed, fps=fps)
    print(
        f"{counted(filmed.decisions, 'decision')} of the checkpoint at {agent.checkpoint:,} steps, "
        f"under {agent.risk.label}, in {arguments.out}"
    )
    if not filmed.pictured:
        print("the environment cannot be rendered, so the video shows only the distributions")
    return 0
