"""Code that must run before other modules are imported. It imports only what Python has loaded."""

import os
import sys


def leave_working_folder() -> None:
    """Remove the working folder from the search path, where `python -m quantail` has put it first.

    Otherwise a file there called `csv.py` or `torch.py` would be imported instead of the module of that
    name. The search path of other programs is not changed.
    """
    if sys.argv[:1] != ["-m"] or sys.flags.safe_path:  # Python sets argv[0] once it has found the module
        return
    program = sys.orig_argv[-len(sys.argv)].rpartition("-m")[2]  # from "-m quantail" or "-mquantail"
    if program.partition(".")[0] != "quantail":
        return
    try:
        here = os.getcwd()
    except OSError:  # the folder was removed
        return
    if sys.path[:1] == [here]:
        del sys.path[0]


leave_working_folder()
