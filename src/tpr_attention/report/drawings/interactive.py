"""Curves as figures of plotly.js."""

import json
from collections.abc import Iterable, Sequence
from html import escape
from math import isfinite, log10
from textwrap import wrap
from typing import Any

import numpy as np
from plotly.graph_objects import Figure, Scatter  # type: ignore[import-untyped]
from plotly.subplots import make_subplots  # type: ignore[import-untyped]

from tpr_attention.report.drawings.curves import NOT_RUN, FigureCurves, Line, PanelCurves
from tpr_attention.report.style import MUTED

__all__ = ["plot"]

PANEL, ROW_GAP, TOP, TITLE, LEGEND, FOOT = 190, 34, 46, 20, 48, 96
"""Heights in pixels: the width is the reader's."""
COLUMN_WIDTH, MARGINS = 170, 104
"""Pixels that a column needs at least, and what surrounds the columns: a narrower window scrolls."""
GRID, LINE = "rgba(128,128,128,0.22)", "rgba(128,128,128,0.6)"
AXES = {"gridcolor": GRID, "linecolor": LINE, "showline": True, "zeroline": False}


def plot(curves: FigureCurves) -> dict[str, Any]:
    """The figure for plotly.js: `data` and `layout`."""
    rows, columns = len(curves.rows), len(curves.columns)
    height = rows * PANEL + (rows - 1) * ROW_GAP
    places = [curves.place(panel) for panel in curves.panels]
    titles = {panel.column: "<br>".join(map(_escaped, curves.column_title(panel))) for panel in curves.panels}
    figure = make_subplots(
        rows,
        columns,
        shared_xaxes="all",
        shared_yaxes=True,
        horizontal_spacing=0.022 if columns > 1 else None,
        vertical_spacing=ROW_GAP / height if rows > 1 else None,
        column_titles=[titles[column] for column in curves.columns],
        specs=[[{} if (row, column) in places else None for column in range(columns)] for row in range(rows)],
    )
    figure.update_annotations(font_size=13)
    figure.update_xaxes(showgrid=False, **AXES)
    figure.update_yaxes(nticks=6, exponentformat="power", **AXES)
    for panel, (row, column) in zip(curves.panels, places, strict=True):
        _add_panel(figure, panel, curves, {"row": row + 1, "col": column + 1})
        if row == rows - 1:
            figure.update_xaxes(title={"text": _escaped(panel.axis), "standoff": 6}, row=row + 1, col=column + 1)
        if column == 0:
            figure.update_yaxes(title={"text": _row_title(panel), "standoff": 4}, row=row + 1, col=1)
    first_lines = {trace.legendgroup: trace for trace in reversed(figure.data) if trace.name}
    figure.for_each_trace(lambda trace: trace.update(showlegend=trace is first_lines.get(trace.legendgroup)))
    top = TOP + TITLE * max(len(curves.column_title(panel)) for panel in curves.panels)
    figure.update_layout(
        template=None,
        height=top + height + FOOT,
        margin={"l": 92, "r": 12, "t": top, "b": FOOT},
        font={"size": 12},
        hovermode="closest",
        legend={"orientation": "h", "x": 0, "y": -LEGEND / height, "yanchor": "top", "groupclick": "togglegroup"},
        legend_itemwidth=40,
        updatemenus=[_scale_buttons(figure, top - TOP + 4)] if all(one.scale == "log" for one in curves.panels) else [],
        meta={"min_width": COLUMN_WIDTH * columns + MARGINS},
    )
    found: dict[str, Any] = json.loads(figure.to_json())
    return found


def _add_panel(figure: Figure, panel: PanelCurves, curves: FigureCurves, place: dict[str, int]) -> None:
    """Bands below, then lines, then floors; the axes; and what is written into the panel."""
    for line in panel.lines:
        if line.edges:
            figure.add_trace(_band(panel, line, curves.looks[line.name].colour), **place)
    mean, where = "mean %{customdata[0]:.4g}", "step %{x:,d}" if panel.has_steps else f"{_escaped(panel.axis)}: %{{x}}"
    for line in panel.lines:
        said, exact = f"{where}<br>{mean}<br>one seed", [line.mean]
        if line.edges:
            width, exact = f"{panel.band.times} {panel.band.kind}", [line.mean, line.edges[1] - line.mean]
            said = f"{where}<br>{mean} ± %{{customdata[1]:.3g}}<br>({width}, {line.seeds} seeds)"
        figure.add_trace(_line(panel, curves, line.name, said, line.places, exact), **place)
    for name, height in panel.floors.items():
        figure.add_trace(_line(panel, curves, name, mean, panel.span, [np.full(2, height)]), **place)
    for name, values in panel.known.items():
        exact = [np.array([*values.values()])]
        trace = _line(panel, curves, name, f"{where}<br>%{{customdata[0]:.4g}}", map(float, values), exact)
        figure.add_trace(trace.update(mode="markers", marker={"symbol": "circle-open", "size": 7}), **place)
    ends = [log10(end) for end in panel.span] if panel.axis_scale == "log" else list(panel.span)
    figure.update_xaxes(type=panel.axis_scale, range=ends, **place)
    if panel.sizes:
        names = [f"{size:g}" for size in panel.sizes]
        figure.update_xaxes(tickvals=list(panel.sizes), ticktext=names, **place)
    else:
        figure.update_xaxes(nticks=4, tickformat="~s" if panel.has_steps else ",~g", **place)
    limits = curves.limits[panel.row]
    reach = [log10(limit) for limit in limits] if panel.scale == "log" else list(limits)
    figure.update_yaxes(type=panel.scale, range=reach, **place)
    inside = {"xref": "x domain", "yref": "y domain", "showarrow": False, **place}
    if not panel.lines:
        figure.add_annotation(text=NOT_RUN, x=0.5, y=0.5, font={"color": MUTED}, **inside)
    if panel.mark:
        corner = {"x": 1.0, "y": 1.0, "xanchor": "right", "yanchor": "top", "align": "right"}
        figure.add_annotation(text=_escaped(panel.mark), font={"size": 11, "color": MUTED}, **corner, **inside)


def _band(panel: PanelCurves, line: Line, colour: str) -> Scatter:
    """A closed outline: along the upper edge and back along the lower one."""
    low, high = (_brief(panel.drawable(edge)) for edge in line.edges or ())
    places = _brief(line.places)
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return Scatter(
        x=places + places[::-1],
        y=high + low[::-1],
        mode="lines",
        line={"width": 0},
        fill="toself",
        fillcolor=f"rgba({red},{green},{blue},0.16)",
        hoverinfo="skip",
        legendgroup=line.name,
    )


def _line(
    panel: PanelCurves, curves: FigureCurves, name: str, said: str, steps: Iterable[float], exact: Sequence[np.ndarray]
) -> Scatter:
    """A line, and what is said where the pointer is; the first of the exact values is drawn."""
    look = curves.looks[name]
    dash = ",".join(f"{length * look.width:g}px" for length in look.dashes) or "solid"
    return Scatter(
        x=_brief(steps),
        y=_brief(panel.drawable(exact[0])),
        customdata=[list(values) for values in zip(*map(_brief, exact), strict=True)],
        mode="lines" if len(exact[0]) > 1 else "markers",
        hovertemplate=f"<b>%{{fullData.name}}</b><br>{said}<extra></extra>",
        name=_escaped(curves.labels[name]),
        legendgroup=name,
        line={"color": look.colour, "width": look.width, "dash": dash},
    )


def _row_title(panel: PanelCurves) -> str:
    """The title of a row and its metric; together at most two lines, as three would run into each other."""
    parts = [f"<b>{_escaped(part)}</b>" for part in wrap(panel.row, 24)]
    return "<br>".join(parts) + ("<br>" if len(parts) == 1 else ", ") + _escaped(panel.metric)


def _scale_buttons(figure: Figure, above: int) -> dict[str, Any]:
    """Two buttons: a logarithmic or a linear vertical axis, in all panels."""
    scales: dict[str, dict[str, Any]] = {"log": {}, "linear": {}}
    for axis in figure.select_yaxes():
        name, (low, high) = axis.plotly_name, axis.range
        scales["log"] |= {f"{name}.type": "log", f"{name}.range": [low, high]}
        scales["linear"] |= {f"{name}.type": "linear", f"{name}.range": [0, 10**high]}
    buttons = [{"label": name, "method": "relayout", "args": [changes]} for name, changes in scales.items()]
    place = {"x": 0, "xanchor": "left", "y": 1, "yanchor": "bottom", "pad": {"b": above}}
    return {"type": "buttons", "direction": "right", "buttons": buttons, **place}


def _brief(values: Iterable[float]) -> list[float | None]:
    """Five significant digits; what is not finite has no place in JSON."""
    return [float(f"{value:.5g}") if isfinite(value) else None for value in values]


def _escaped(text: str) -> str:
    return escape(text, quote=False)
