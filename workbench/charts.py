"""Plotly figures as JSON for static/js/charts.js, which draws them in the colours of the theme."""

import json
from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext as _

from evolution.queries.board import SeriesPoint


def series_figure(points: Sequence[SeriesPoint], selected: str) -> dict[str, Any]:
    """Accuracy and effectiveness in percent per version, the selected version marked."""
    # Heavy, so it is loaded with the first plot and not with the web process.
    import plotly.graph_objects as go  # noqa: PLC0415

    labels = [point.label for point in points]
    measures = (
        (_("accuracy"), [point.accuracy for point in points], "--wb-accent", "circle", "solid"),
        (_("effectiveness"), [point.effectiveness for point in points], "--wb-good", "diamond", "dash"),
    )
    figure = go.Figure()
    for name, values, colour, symbol, dash in measures:
        figure.add_scatter(
            x=labels,
            y=values,
            name=name,
            mode="lines+markers",
            line={"width": 2, "dash": dash},
            marker={"size": [13 if point.commit == selected else 8 for point in points], "symbol": symbol},
            customdata=[[point.commit[:8], point.decision] for point in points],
            hovertemplate="%{x} · %{customdata[0]}<br>%{y:.2f} · %{customdata[1]}<extra>" + name + "</extra>",
            meta={"colour": colour},
        )
    figure.update_layout(
        template="none", **_layout(labels, [p.label for p in points if p.commit == selected])
    )
    return dict(json.loads(figure.to_json()))


def _layout(labels: list[str], selected: list[str]) -> dict[str, Any]:
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
        for label in selected[-1:]
    ]
    notes = [
        {
            "x": label,
            "y": 1.02,
            "xref": "x",
            "yref": "paper",
            "yanchor": "bottom",
            "text": _("selected"),
            "showarrow": False,
        }
        for label in selected[-1:]
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
