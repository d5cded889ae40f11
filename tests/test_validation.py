import ast
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quantail import validation
from quantail.errors import QuantailError
from quantail.validation import number, one_of, probability, string, whole_number


def refusal(check, *arguments, **options):
    with pytest.raises(QuantailError) as caught:
        check(*arguments, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    "value", [200_000, 2e5, "200000", "200_000", "2e5", "200000.0", np.int32(200_000), np.float32(2e5)]
)
def test_a_whole_number_may_be_given_in_every_usual_form(value):
    found = whole_number("steps", value, 1)
    assert found == 200_000
    assert type(found) is int


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_every_whole_number_of_64_bits_survives_as_text(value):
    assert whole_number("seed", str(value)) == value == whole_number("seed", f"{value:_}")


@pytest.mark.parametrize(
    "value",
    [
        *("x", "", "1.5", "inf", "nan", "0x10", "1__0", "1" * 5_000),
        *(1.5, float("nan"), float("inf"), 1 + 0j, 10**30, -(10**30), 1e30),
        *(True, np.True_, None, [3], np.array([3])),
    ],
)
def test_anything_else_is_not_a_whole_number(value):
    assert refusal(whole_number, "steps", value).startswith("steps takes a whole number")


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        ({"least": 1}, "n takes a whole number of at least 1, not 'x'."),
        ({"most": 5}, "n takes a whole number of at most 5, not 'x'."),
        ({"least": 1, "most": 65_535}, "n takes a whole number from 1 to 65535, not 'x'."),
        ({}, "n takes a whole number, not 'x'."),
    ],
)
def test_the_sentence_says_what_a_whole_number_may_be(limits, says):
    assert refusal(whole_number, "n", "x", **limits) == says


def test_a_range_includes_its_ends():
    assert [whole_number("n", value, 1, 3) for value in (1, 3)] == [1, 3]
    assert [number("x", value, 0.5, 1) for value in (0.5, 1)] == [0.5, 1.0]
    for check in (whole_number, number):
        assert refusal(check, "n", 0, 1, 3).endswith("from 1 to 3, not 0.")
        assert refusal(check, "n", 4, 1, 3).endswith("from 1 to 3, not 4.")


def test_a_whole_number_that_does_not_fit_64_bits_is_refused_with_the_bound():
    assert whole_number("seed", 2**63 - 1, 0) == 2**63 - 1
    assert "from 0 to 9223372036854775807" in refusal(whole_number, "seed", 2**63, 0)


@pytest.mark.parametrize("value", [0.25, "0.25", "2.5e-1", np.float32(0.25), Fraction(1, 4)])
def test_a_number_may_be_given_in_every_usual_form(value):
    found = number("epsilon", value)
    assert found == 0.25
    assert type(found) is float


@pytest.mark.parametrize("value", ["x", "", "inf", float("inf"), "nan", None, True, np.True_, [1.0]])
def test_anything_else_is_not_a_number(value):
    assert refusal(number, "epsilon", value).startswith("epsilon takes a number, not ")


def test_a_bound_that_is_not_part_of_the_range_is_named_so():
    assert number("level", 1e-9, 0, 1, above=0) == 1e-9
    assert number("level", 1, above=0, most=1) == 1.0
    says = "level takes a number above 0 and at most 1, not 0."
    assert refusal(number, "level", 0, above=0, most=1) == says
    assert refusal(number, "x", 0, above=0) == "x takes a number above 0, not 0."


def test_a_probability_is_a_number_from_0_to_1():
    assert probability("epsilon", "1") == 1.0
    assert refusal(probability, "epsilon", "1.1") == "epsilon takes a number from 0 to 1, not '1.1'."


def test_a_name_from_a_list_is_returned_or_refused_with_the_most_similar_one():
    engines = {"local": 1, "ray": 2}
    assert one_of("engine", "ray", engines) == "ray"
    assert refusal(one_of, "engine", "rey", engines) == (
        "engine takes local or ray, not 'rey'. Did you mean 'ray'?"
    )
    assert refusal(one_of, "engine", None, ["local"]) == "engine takes local, not None."
    assert refusal(one_of, "study", "zzz", ["risk", "samples"], "a .toml file") == (
        "study takes risk, samples or a .toml file, not 'zzz'."
    )
    assert refusal(one_of, "speed", [], (1, 2, 4)) == "speed takes 1, 2 or 4, not []."


def test_a_string_is_a_string():
    assert string("name", "") == ""
    assert refusal(string, "name", 3) == "name takes a string, not 3."


def test_validation_needs_nothing_of_quantail_but_its_errors():
    tree = ast.parse(Path(validation.__file__).read_text(encoding="utf-8"))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {one for one in modules if one.startswith("quantail")} == {"quantail.errors"}
