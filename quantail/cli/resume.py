"""quantail resume RUN"""

from quantail.cli.parser import Parser, add_callbacks, add_trust, callbacks_of
from quantail.config import coerce
from quantail.runs.folder import RunFolder
from quantail.training.loggers.terminal import ProgressBar, exit_status
from quantail.training.train import resume


def run(words: list[str]) -> int:
    parser = Parser(
        prog="quantail resume",
        description="Continue a run from its last checkpoint. The result is bit for bit the same as if "
        "it had never stopped.",
    )
    parser.add_argument("run", metavar="RUN", help="folder of the run")
    parser.add_argument("--steps", metavar="N", help="new total length of the run, in steps")
    parser.add_argument(
        "--checkpoint",
        default="last",
        metavar="last|previous",
        help="checkpoint to continue from [last]",
    )
    parser.add_argument(
        "--threads",
        metavar="N",
        help="number of CPU threads; another number than before may change the last bits of the result "
        "[the number that the run had; 0: PyTorch's default]",
    )
    parser.add_argument("--quiet", action="store_true", help="print only the summary")
    add_trust(parser)
    add_callbacks(parser)
    arguments = parser.parse(words)
    steps = None if arguments.steps is None else coerce("steps", arguments.steps)
    bar = ProgressBar(quiet=arguments.quiet)
    return exit_status(
        bar,
        lambda: resume(
            arguments.run,
            steps=steps,
            checkpoint=arguments.checkpoint,
            callbacks=[bar, *callbacks_of(arguments.callback)],
            trust=arguments.trust,
            threads=arguments.threads or RunFolder(arguments.run).read().threads,
        ),
    )
