"""What must happen before other modules are imported. It imports only what Python itself has by then."""

import os
import sys


def leave_working_folder() -> None:
    """Take the working folder off the search path where `python -m quantail` has put it first.

    A file there that is called `csv.py` or `torch.py` would otherwise be imported in place of the module
    of that name. The search path of any other program is left as it is.
    """
    if sys.argv[:1] != ["-m"] or sys.flags.safe_path:  # Python sets argv[0] once it has found the module
        return
    program = sys.orig_argv[-len(sys.argv)].rpartition("-m")[2]  # of "-m quantail" or "-mquantail"
    if program.partition(".")[0] != "quantail":
        return
    try:
        here = os.getcwd()
    except OSError:  # the folder was removed
        return
    if sys.path[:1] == [here]:
        del sys.path[0]


leave_working_folder()
