import os
import sys
from pathlib import Path

import pytest

from tools.children import Children

AUTOGROUP = Path("/proc/self/autogroup")


@pytest.mark.skipif(not AUTOGROUP.exists(), reason="only Linux shares the processor between sessions")
def test_a_child_in_its_own_session_has_the_priority_of_its_parent_there_too(tmp_path):
    report = f"import os; print(os.nice(0), open({str(AUTOGROUP)!r}).read().split()[-1])"
    parent = (
        "import os, sys; from pathlib import Path; from tools.children import Children; os.nice(7); "
        f"print(Children().run([sys.executable, '-c', {report!r}], cwd=Path.cwd(), "
        "env=dict(os.environ), log=Path(sys.argv[1]))[1])"
    )
    code, printed = Children().run(
        [sys.executable, "-c", parent, str(tmp_path / "inner")],
        cwd=Path(__file__).parents[2],
        env=dict(os.environ),
        log=tmp_path / "log",
    )
    assert code == 0, (tmp_path / "log").read_text()
    assert printed.split() == ["7", "7"]
