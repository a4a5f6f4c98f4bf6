from typing import Any

import pytest

from harness_repo.format.cel import CelError, check_cel, evaluate_cel


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("a.map()", "map takes 2 arguments, and not 0"),
        ("a.all(x)", "all takes 2"),
        ("'x'.min(1)", "min takes 0"),
        ("[1].reduce(r, i, 0)", "reduce takes 4"),
        ("1 +", "not a CEL expression"),
        ("(" * 1500, "not a CEL expression|nested"),
        ("1 + " * 900 + "1 > 0", "nested too deeply"),
        ("x" * 4001, "longer than"),
    ],
)
def test_what_is_no_expression_says_why(source: str, said: str) -> None:
    with pytest.raises(CelError, match=said):
        check_cel(source)


@pytest.mark.parametrize(
    "source", ["'x'.min() > 1", "a.b.c > 1", "1 / 0 > 1", "1", "[1].all(1, true)", "size(1) > 2"]
)
def test_what_cannot_be_evaluated_says_why(source: str) -> None:
    with pytest.raises(CelError):
        evaluate_cel(source, {"a": {}})


@pytest.mark.parametrize(
    ("source", "holds"),
    [
        ("[1, 2].min() == 1", True),
        ("a.map(x, x * 2) == [2, 4]", True),
        ("a.reduce(sum, x, 0, sum + x) == 3", True),
        ("a.exists(x, a.all(y, x > y))", False),
    ],
)
def test_macros_with_all_their_arguments_hold(source: str, holds: Any) -> None:
    assert evaluate_cel(source, {"a": [1, 2]}) is holds


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("a.b == 1", "a list has no fields"),
        ("a > 1", "> cannot be used with a list and a whole number"),
        ("!a", "! cannot be used with a list"),
        ("a > 1 && 's' > 1", "what stands beside && fails on these values"),
        ("a[9] == 1", "a list has nothing at that place"),
        ("{'x': 1}.y == 1", "there is no 'y' in the object"),
        ("1 / 0 == 1", "a division by zero"),
        ("int('x') == 1", "a value is out of range, or cannot be converted"),
        ("a", "gives a list, and not true or false"),
        ("null", "gives null, and not true or false"),
        ("[1].all(1, true)", "all begins with the name of an item, such as x in all(x, x > 0)"),
    ],
)
def test_what_is_wrong_is_said_in_plain_words(source: str, said: str) -> None:
    with pytest.raises(CelError) as failure:
        evaluate_cel(source, {"a": [1, 2]})
    assert str(failure.value) == said
