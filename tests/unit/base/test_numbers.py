from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ojs_engine.base.numbers import decimal_number, whole_number
from support.tables import each


@given(st.integers(0, 10**12))
def test_digits_are_read(number: int) -> None:
    assert whole_number(str(number), 13) == number
    assert decimal_number(str(number)) == number


@given(st.text(max_size=6))
def test_nothing_but_digits_is_a_whole_number(text: str) -> None:
    assert (whole_number(text, 6) is None) == (text.strip("0123456789") != "" or not text)


@each("text", ["٣", "1_0", " 3", "3\n", "+3", "0x1", "", "1" * 10, "²"])
def test_what_python_reads_besides_is_no_whole_number(text: str) -> None:
    assert whole_number(text, 9) is None


@pytest.mark.parametrize(("text", "number"), [("0.5", 0.5), ("-1.", -1.0), ("1e3", 1_000.0), ("30", 30.0)])
def test_decimals_are_read(text: str, number: float) -> None:
    assert decimal_number(text) == number


@each("text", ["٣", "1_0.5", " 3", "nan", "inf", "infinity", ".", "1e1000", "1" * 400, ""])
def test_what_python_reads_besides_is_no_decimal(text: str) -> None:
    assert decimal_number(text) is None
