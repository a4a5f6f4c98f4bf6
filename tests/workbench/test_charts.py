from datetime import date, timedelta

import pytest

from workbench.charts import timeline_figure
from workbench.sparkline import render_sparkline

FIRST = date(2026, 3, 2)


@pytest.mark.parametrize(("days", "bars"), [(0, 1), (61, 62), (100, 15), (500, 17)])
def test_a_timeline_shows_days_weeks_or_months_and_loses_nothing(days: int, bars: int) -> None:
    figure = timeline_figure(
        {FIRST: (2, 1), FIRST + timedelta(days=days): (3, 0)} if days else {FIRST: (2, 1)}, []
    )

    opened, others = (trace["y"] for trace in figure["data"])
    assert (len(opened), sum(opened), sum(others)) == (bars, 5 if days else 2, 1)


def test_a_timeline_marks_the_releases_of_its_time() -> None:
    releases = [(FIRST - timedelta(days=1), "release/1"), (FIRST, "release/2")]

    figure = timeline_figure({FIRST: (1, 0)}, releases)

    assert [note["text"] for note in figure["layout"]["annotations"]] == ["release/2"]


def test_a_sparkline_is_as_high_as_its_highest_count_and_hides_no_single_one() -> None:
    svg = render_sparkline([0, 1, 1000], "few <then> many")

    # 24 is the whole height; 1 of 1000 would be invisible at scale
    assert 'd="M5 24v-2h4v2zM10 24v-24h4v24z"' in svg
    assert "few &lt;then&gt; many" in svg
