"""Plotly figures as JSON for static/js/charts.js, which draws them in the colours of the theme."""

import json
from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext as _

from evolution.loop.stopping import BASELINE
from evolution.queries.board import SeriesPoint
from evolution.states import StepState

# What a version came to be live by; the others were measured and given up, or wait for their decision.
ON_THE_PATH = {BASELINE, StepState.PROMOTED.value}


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


def _layout(labels: list[str], live: list[str]) -> dict[str, Any]:
    marks = [
        {
            "type": "line",
            "xref": "x",
            "yref": "paper",
            "x0": label,
            "x1": label,
            "y0": 0,
            "y1": 1,
            "line": {"width": 1, "dash": "dot", "color": "#888"},
        }
        for label in live[-1:]
    ]
    notes = [
        {
            "x": label,
            "y": 1.02,
            "xref": "x",
            "yref": "paper",
            "yanchor": "bottom",
            "text": _("live"),
            "showarrow": False,
        }
        for label in live[-1:]
    ]
    return {
        "margin": {"l": 44, "r": 16, "t": 28, "b": 40},
        "legend": {"orientation": "h", "y": -0.16, "x": 0},
        "xaxis": {"type": "category", "categoryorder": "array", "categoryarray": labels, "fixedrange": True},
        "yaxis": {"ticksuffix": " %", "fixedrange": True},
        "hovermode": "x unified",
        "shapes": marks,
        "annotations": notes,
    }
