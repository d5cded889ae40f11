"""The one reader of the tables of a run."""

import numpy as np
import pytest

from quantail.errors import QuantailError
from quantail.runs.tables import EVALUATIONS, METRICS, TABLES, TIMING, CsvTable, read_rows, read_table

ROW = dict.fromkeys(METRICS, 1) | {"steps": 20, "loss": 0.1, "value": float("nan")}


@pytest.fixture
def metrics(tmp_path):
    """A metrics.csv of two rows, with metrics of the user in the second."""
    table = CsvTable(tmp_path / "metrics.csv", METRICS)
    table.add(ROW)
    table.add(ROW | {"steps": 40, "loss": 1e-17, "length": 2.5, "risk": 0.5})
    return tmp_path / "metrics.csv"


def test_columns_are_read_by_name_with_the_values_that_were_written(metrics):
    table = read_table(metrics)
    assert list(table) == [*METRICS, "length", "risk"]
    assert table["steps"].dtype == np.int64
    assert table["steps"].tolist() == [20, 40]
    assert table["loss"].tolist() == [0.1, 1e-17]
    assert np.isnan(table["value"]).all()
    # Columns of other tables, but here metrics of the user.
    np.testing.assert_array_equal(table["length"], [np.nan, 2.5])
    np.testing.assert_array_equal(table["risk"], [np.nan, 0.5])


def test_texts_stay_texts(tmp_path):
    row = dict.fromkeys(EVALUATIONS, 2.5) | {"steps": 1, "frames": 4, "seed": 2**40, "episodes": 2}
    texts = {"policy": "agent", "protocol": 'own, "mine"', "risk": "1e3"}
    CsvTable(tmp_path / "evaluations.csv", EVALUATIONS).add(row | texts)
    table = read_table(tmp_path / "evaluations.csv")
    assert {name: table[name].item() for name in texts} == texts
    assert table["seed"].item() == 2**40


def test_the_order_of_the_columns_does_not_matter(tmp_path):
    path = tmp_path / "timing.csv"
    path.write_text(",".join(reversed(TIMING)) + "\n5,4,3.5,2,1\n")
    assert [read_table(path)[name].item() for name in TIMING] == [1, 2, 3.5, 4.0, 5.0]


def test_a_row_that_is_being_written_or_lacks_cells_is_left_out(metrics):
    whole = metrics.read_bytes()
    for partial in (b"60", whole.split(b"\n")[1], b"60,\n", b"\n", "60,1,1,η".encode()[:-1]):
        metrics.write_bytes(whole + partial)
        assert read_table(metrics)["steps"].tolist() == [20, 40]
        assert [row["steps"] for row in read_rows(metrics)] == ["20", "40"]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("content", [None, b"", b"steps,fra"], ids=["absent", "empty", "partial header"])
def test_a_table_without_rows_has_its_columns(name, content, tmp_path):
    path = tmp_path / f"{name}.csv"
    if content is not None:
        path.write_bytes(content)
    table = read_table(path)
    assert tuple(table) == TABLES[name]
    assert all(len(column) == 0 for column in table.values())
    assert table["steps"].dtype == np.int64


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda text: "mine", " or is not a table of a run: its first row is not steps,frames,"),
        (lambda text: text.replace("loss", "lost"), " or is not a table of a run: its first row is not"),
        (lambda text: text.replace("0.1", "x"), " in column loss: 'x' is not a number."),
        (lambda text: text.replace("40,", "4.5,"), " in column steps: '4.5' is not a number."),
        (lambda text: text.replace("40,", f"{2**70},"), " in column steps: "),
        (lambda text: text.replace("\n40,", "\n40,1,"), ": a row has more cells than the first row."),
    ],
)
def test_damage_is_reported_in_one_sentence_that_names_the_file(metrics, change, says):
    metrics.write_text(change(metrics.read_text()))
    with pytest.raises(QuantailError) as error:
        read_table(metrics)
    assert f"{metrics} is damaged{says}" in str(error.value)


def test_a_table_that_is_not_text_cannot_be_read(metrics):
    metrics.write_bytes(b"\xff\n")
    with pytest.raises(QuantailError, match=r"metrics\.csv cannot be read: it is not text in UTF-8\.$"):
        read_table(metrics)
