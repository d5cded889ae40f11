"""Versions of files."""

from pathlib import Path

import pytest

import quantail
from quantail.errors import QuantailError
from quantail.files import check_schema


@pytest.mark.parametrize("schema", [0, -1, True, "2", "1", 1.0, None, [1], 1, 3])
def test_a_file_of_another_version_says_which_versions_are_read(schema):
    check_schema(Path("a.json"), {"schema": 2}, 2)
    maker = {"1": "an older", "3": "a newer"}.get(repr(schema), "another")
    with pytest.raises(QuantailError) as caught:
        check_schema(Path("a.json"), {"schema": schema}, 2)
    assert str(caught.value) == (
        f"a.json was made by {maker} Quantail (its schema is {schema!r}; this version reads 2): "
        "use the version that made it."
    )


def test_a_file_without_a_version_is_damaged():
    with pytest.raises(QuantailError, match=r"a\.json is damaged: it has no schema version"):
        check_schema(Path("a.json"), {}, 1)


@pytest.mark.parametrize("schema", ["0", "true", '"2"', "1.0"])
def test_a_configuration_of_another_version_is_refused(schema, tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(f"schema = {schema}\n")
    with pytest.raises(QuantailError, match="was made by another Quantail"):
        quantail.configure("CartPole-v1", preset=path)
