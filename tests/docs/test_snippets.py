"""The snippets of a page are run as the conventions say, and one that fails is named with its error."""

import pytest

from tests.helpers.snippets import Block, blocks_of, cut_code, cut_command, cut_file, run_page

PAGE = """# A page

```python title="own/numbers.py"
five = 5
```

```console
$ quantail presets small > mine.toml
runs are not compared
$ test -s mine.toml
$ quantail worlds   # a comment
```

1. In a list:

    ```python
    from own.numbers import five
    print(five)
    ```

```python
assert five == 5
import pathlib; assert pathlib.Path("mine.toml").exists()
```

```sh
make train
quantail train CartPole-v1 --steps 20_000 --seed 3
```

```text
$ quantail nothing
```
"""


def test_a_page_runs_in_its_order_and_in_one_folder(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE, encoding="utf-8")
    run_page(page, tmp_path)


@pytest.mark.parametrize(
    ("block", "says"),
    [
        ("```python\nx = 1\n1 / 0\n```", ("line 3", "x = 1\n    1 / 0", "line 4", "ZeroDivisionError")),
        ("```console\n$ quantail eval nowhere\n```", ("line 3", "$ quantail eval nowhere", "status 2")),
        ("```console\n$ cat nowhere\n```", ("line 3", "status 1", "No such file")),
        ("```console\n$ cat nowhere | sort\n```", ("line 3", "status 1", "No such file")),
        ("```console\n$ cat nowhere; true\n```", ("line 3", "status 1", "No such file")),
        ("```sh\nmake x\nquantail train --lr 1\n```", ("line 4", "unknown argument '--lr'")),
        ("```python\nimport sys\nprint('why')\nsys.exit(3)\n```", ("SystemExit: 3", "why")),
        ("```python\nimport os\nos._exit(3)\n```", ("the process ended",)),
    ],
)
def test_a_snippet_that_fails_is_named_with_its_page_line_and_error(tmp_path, block, says):
    page = tmp_path / "page.md"
    page.write_text(f"# A page\n{block}\n", encoding="utf-8")
    with pytest.raises(pytest.fail.Exception) as failed:
        run_page(page, tmp_path)
    message = str(failed.value)
    assert message.startswith("page.md, line 3") or says[0].startswith("line 4"), message
    for part in says:
        assert part in message


def test_a_block_that_is_not_closed_is_an_error(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A page\n```python\nx = 1\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="line 2 is not closed"):
        blocks_of(page)


@pytest.mark.parametrize("fence", ["~~~", "> ```"])
def test_a_block_that_would_not_be_run_is_an_error(fence, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"# A page\n{fence}python\n1 / 0\n{fence}\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="line 2 begins a block that the tests do not see"):
        blocks_of(page)


def test_training_is_cut_to_a_few_hundred_steps_and_more_steps_stay_more():
    command = "quantail train CartPole-v1 --steps 20000 --risk-anneal-steps 50000 --episodes=100"
    assert cut_command(command) == (
        "quantail train CartPole-v1 --steps 336 --risk-anneal-steps 50000 --episodes 3"
    )
    assert cut_command("quantail train X --out y") == "quantail train --steps 300 X --out y"
    assert cut_command("quantail resume y --steps 40_000") == "quantail resume y --steps 342"
    assert cut_command("quantail train X --help-all") == "quantail train X --help-all"
    assert cut_code("train(x, steps=20_000, risk_anneal_steps=9_000)") == (
        "train(x, steps=336, risk_anneal_steps=9_000)"
    )
    assert cut_code("evaluate(agent, episodes=2)") == "evaluate(agent, episodes=2)"
    assert cut_file("steps = 20000\nseeds = 2").splitlines()[1:] == [
        "learning_starts = 100",
        "seeds = 2",
    ]


def test_a_command_may_go_on_in_the_next_line():
    block = Block("console", "", "$ quantail eval \\\n>   run\nhello\n$ ls", 10)
    assert block.commands == [(10, "quantail eval run"), (13, "ls")]
