import json
from typing import Any

import pytest

from workbench.json_tree import MOST_IN_PAGE, render_text, render_value, render_whole


@pytest.mark.parametrize(
    "value",
    [
        "x" * 10_000_000,
        ["x" * 1_000] * 10_000,
        {f"key {n}" * 50: {f"k{m}": [m] * 50 for m in range(50)} for n in range(200)},
        {"k" * 1_000_000: 1},
        [10**4000],
        None,
    ],
)
def test_any_value_is_of_a_bounded_size(value: Any) -> None:
    assert len(render_value(value, "/value/", "/x")) < 500_000


def test_a_bottomless_value_is_survived() -> None:
    value: Any = 1
    for _ in range(500):
        value = [value]

    assert "show all" in render_value(value, "/value/")


def test_nothing_in_a_value_becomes_markup() -> None:
    html = render_value({"<script>": "<img src=x>\u202egpj", "n": ["</ul>"]})

    assert "<script>" not in html
    assert "<img" not in html
    assert "U+202E" in html
    assert html.count("</ul>") == 2


def test_what_is_cut_is_offered_by_its_pointer() -> None:
    html = render_value({"a/b": ["y" * 5_000]}, "/value/", "/trajectory")

    assert 'hx-get="/value/?path=%2Ftrajectory%2Fa~1b%2F0"' in html


def test_too_long_for_a_page_is_a_page_of_its_own() -> None:
    html = render_text("y" * (MOST_IN_PAGE + 1), "/value/", "/reply")

    assert "hx-get" not in html
    assert 'target="_blank"' in html
    assert len(render_whole("y" * 10_000_000, "/value/", "/reply")) < 2 * MOST_IN_PAGE


def test_without_an_address_nothing_is_offered() -> None:
    assert "href" not in render_value(["y" * 5_000, list(range(1_000))])


def test_numbers_stay_what_they_are() -> None:
    value = json.loads("[12345678901234567890123, 0.1, true, null]")

    html = render_value(value)

    assert all(f">{text}<" in html for text in ("12345678901234567890123", "0.1", "true", "null"))
