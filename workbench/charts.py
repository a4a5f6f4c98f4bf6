"""Plotly figures as JSON for static/js/charts.js, which draws them in the colours of the theme."""

import json
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from django.utils.translation import gettext as _

from evolution.loop.stopping import BASELINE
from evolution.queries.board import SeriesPoint
from evolution.states import StepState

# What a version came to be live by; the others were measured and given up, or wait for their decision.
ON_THE_PATH = {BASELINE, StepState.PROMOTED.value}
# Days that a timeline shows one by one, and up to which it shows weeks; beyond, months.
MOST_DAYS, MOST_WEEKS = 62, 62 * 7


def series_figure(points: Sequence[SeriesPoint], live: str) -> dict[str, Any]:
    """Accuracy and effectiveness in percent per version: a line through what was promoted, the others hollow."""
    # Heavy, so it is loaded with the first plot and not with the web process.
    import plotly.graph_objects as go  # noqa: PLC0415

    figure = go.Figure()
    for trace in _traces(points, live):
        figure.add_scatter(**trace)
    labels = [point.label for point in points]
    figure.update_layout(template="none", **_layout(labels, [p.label for p in points if p.commit == live]))
    return dict(json.loads(figure.to_json()))


def _traces(points: Sequence[SeriesPoint], live: str) -> list[dict[str, Any]]:
    kept = [point for point in points if point.decision in ON_THE_PATH]
    others = [point for point in points if point.decision not in ON_THE_PATH]
    measures = (
        ("accuracy", _("accuracy"), "--wb-accent", "circle", "solid"),
        ("effectiveness", _("effectiveness"), "--wb-good", "diamond", "dash"),
    )
    traces = []
    for metric, name, colour, symbol, dash in measures:
        line = {"mode": "lines+markers", "line": {"width": 2, "dash": dash}}
        traces.append(_trace(kept, metric, live) | line | {"name": name, "meta": {"colour": colour}})
        traces[-1]["marker"]["symbol"] = symbol
        if others:
            title = _("%(metric)s, not promoted") % {"metric": name}
            traces.append(_trace(others, metric, live) | {"name": title, "meta": {"colour": colour}})
            traces[-1] |= {"mode": "markers"}
            traces[-1]["marker"] |= {"symbol": f"{symbol}-open", "line": {"width": 2}}
    return traces


def _trace(points: Sequence[SeriesPoint], metric: str, live: str) -> dict[str, Any]:
    return {
        "x": [point.label for point in points],
        "y": [getattr(point, metric) for point in points],
        "marker": {"size": [13 if point.commit == live else 9 for point in points]},
        "customdata": [[point.commit[:8], point.decision_label] for point in points],
        "hovertemplate": "%{y:.2f} % · %{customdata[1]} · %{customdata[0]}",
    }


def _vertical(x: str) -> dict[str, Any]:
    """A dotted line over the whole height."""
    line = {"width": 1, "dash": "dot", "color": "#888"}
    return {"type": "line", "xref": "x", "yref": "paper", "x0": x, "x1": x, "y0": 0, "y1": 1, "line": line}


def _note(x: str, text: str) -> dict[str, Any]:
    """What stands over such a line."""
    where = {"x": x, "y": 1.02, "xref": "x", "yref": "paper", "yanchor": "bottom"}
    return {**where, "text": text, "showarrow": False}


def _layout(labels: list[str], live: list[str]) -> dict[str, Any]:
    return {
        "margin": {"l": 44, "r": 16, "t": 28, "b": 40},
        "legend": {"orientation": "h", "y": -0.16, "x": 0},
        "xaxis": {"type": "category", "categoryorder": "array", "categoryarray": labels, "fixedrange": True},
        "yaxis": {"ticksuffix": " %", "fixedrange": True},
        "hovermode": "x unified",
        "shapes": [_vertical(label) for label in live[-1:]],
        "annotations": [_note(label, _("live")) for label in live[-1:]],
    }


def timeline_figure(
    days: Mapping[date, tuple[int, int]], releases: Sequence[tuple[date, str]]
) -> dict[str, Any]:
    """Failures by day, week or month, open ones and others, with the releases of that time as dotted lines.

    `days` has (open, others) of each day with failures; at least one day.
    """
    first, last = min(days), max(days)
    counts: dict[date, list[int]] = {}
    for day in (first + timedelta(days=n) for n in range((last - first).days + 1)):
        total = counts.setdefault(_bucket(day, (last - first).days), [0, 0])
        for place, count in enumerate(days.get(day, (0, 0))):
            total[place] += count
    series = ((_("open"), "--wb-warn", 0), (_("resolved or ignored"), "--wb-muted", 1))
    data = [
        {
            "type": "bar",
            "name": name,
            "x": [day.isoformat() for day in counts],
            "y": [total[place] for total in counts.values()],
            "meta": {"colour": colour},
        }
        for name, colour, place in series
    ]
    seen = [(day, tag) for day, tag in releases if first <= day <= last]
    return {"data": data, "layout": _timeline_layout(seen)}


def _bucket(day: date, span: int) -> date:
    """The first day of what a bar stands for."""
    if span < MOST_DAYS:
        return day
    return day - timedelta(days=day.weekday()) if span < MOST_WEEKS else day.replace(day=1)


def _timeline_layout(releases: Sequence[tuple[date, str]]) -> dict[str, Any]:
    return {
        "barmode": "stack",
        "bargap": 0.15,
        "margin": {"l": 36, "r": 12, "t": 22, "b": 34},
        "legend": {"orientation": "h", "y": -0.2, "x": 0},
        "xaxis": {"type": "date", "fixedrange": True},
        "yaxis": {"fixedrange": True, "rangemode": "tozero", "tickformat": ",d"},
        "hovermode": "x unified",
        "shapes": [_vertical(day.isoformat()) for day, _tag in releases],
        "annotations": [_note(day.isoformat(), tag) for day, tag in releases[-8:]],
    }
