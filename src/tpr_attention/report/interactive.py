"""Studies as figures to look into: plain dictionaries that plotly.js draws."""

from collections.abc import Iterable
from html import escape
from math import isfinite, log10

import numpy as np

from tpr_attention.experiments.layout import Panel, Study
from tpr_attention.report import lines as content
from tpr_attention.report.results import Results
from tpr_attention.report.style import MUTED, Style

__all__ = ["plot"]

Json = dict[str, object]

PANEL, ROW_GAP, TOP, TITLE, LEGEND, FOOT = 190, 34, 46, 20, 48, 96
"""Heights in pixels: the width is the reader's."""
COLUMN_GAP = 0.022
"""Of the width of the whole."""
GRID = "rgba(128,128,128,0.22)"


def plot(study: Study, results: Results) -> Json:
    """The figure of a study for plotly.js: `data` and `layout`."""
    rows, looks = content.rows(study), content.looks(study)
    data: list[Json] = []
    limits = {row: content.limits([panel for panel in study.panels if panel.row == row], results) for row in rows}
    for place, panel in enumerate(study.panels, 1):
        data += [
            {**trace, "xaxis": _axis("x", place), "yaxis": _axis("y", place)}
            for trace in _traces(panel, results, looks)
        ]
    _name_once(data)
    axes = {key: axis for place in range(1, len(study.panels) + 1) for key, axis in _axes(study, place, limits).items()}
    height = len(rows) * PANEL + (len(rows) - 1) * ROW_GAP
    titles = TITLE * (1 if content.one_band(study) else 2)
    top = TOP + titles
    layout: Json = {
        **axes,
        "height": top + height + FOOT,
        "margin": {"l": 92, "r": 12, "t": top, "b": FOOT},
        "font": {"size": 12},
        "hovermode": "closest",
        "annotations": list(_annotations(study, results)),
        "legend": {
            "orientation": "h",
            "x": 0,
            "y": -LEGEND / height,
            "yanchor": "top",
            "groupclick": "togglegroup",
            "itemwidth": 40,
        },
        "updatemenus": [_scale_buttons(study, limits, titles + 4)],
    }
    return {"data": data, "layout": layout}


def _traces(panel: Panel, results: Results, looks: dict[str, Style]) -> list[Json]:
    """Bands below, then lines, then floors."""
    found = content.lines(panel, results)
    bands = [_band(line, line.edges, looks[line.label]) for line in found if line.edges]
    steps = list(content.ends(panel))
    floors = content.floors(panel, results)
    return [
        *bands,
        *(_mean(line, looks[line.label], panel) for line in found),
        *(_floor(label, height, steps, looks[label]) for label, height in floors.items()),
    ]


def _band(line: content.Line, edges: tuple[np.ndarray, np.ndarray], look: Style) -> Json:
    """A closed outline: along the upper edge and back along the lower one."""
    back, there = (_brief(edge.clip(min=content.UNDER)) for edge in edges)
    steps = _brief(line.steps)
    return {
        "type": "scatter",
        "x": steps + steps[::-1],
        "y": there + back[::-1],
        "mode": "lines",
        "line": {"width": 0},
        "fill": "toself",
        "fillcolor": _faint(look.colour),
        "hoverinfo": "skip",
        "legendgroup": line.label,
        "showlegend": False,
    }


def _mean(line: content.Line, look: Style, panel: Panel) -> Json:
    where = f"{escape(panel.axis, quote=False)}: %{{x}}" if panel.sizes else "step %{x:,d}"
    said = f"<b>%{{fullData.name}}</b><br>{where}<br>mean %{{customdata[0]:.4g}}"
    exact = [_brief(line.mean)]
    if line.edges:
        exact.append(_brief(line.edges[1] - line.mean))
        said += f" ± %{{customdata[1]:.3g}}<br>({panel.band.times} {panel.band.kind}, {line.seeds} seeds)"
    else:
        said += "<br>one seed"
    return {
        **_stroke(line.label, look),
        "x": _brief(line.steps),
        "y": _brief(line.mean.clip(min=content.UNDER)),
        "customdata": list(map(list, zip(*exact, strict=True))),
        "mode": "lines" if len(line.steps) > 1 else "markers",
        "hovertemplate": said + "<extra></extra>",
    }


def _floor(label: str, height: float, steps: list[float], look: Style) -> Json:
    return {
        **_stroke(label, look),
        "x": steps,
        "y": _brief([max(height, content.UNDER)] * len(steps)),
        "customdata": [[mean] for mean in _brief([height] * len(steps))],
        "mode": "lines",
        "hovertemplate": "<b>%{fullData.name}</b><br>mean %{customdata[0]:.4g}<extra></extra>",
    }


def _stroke(label: str, look: Style) -> Json:
    dash = ",".join(f"{length * look.width:g}px" for length in look.dashes) or "solid"
    return {
        "type": "scatter",
        "name": escape(look.words, quote=False),
        "legendgroup": label,
        "line": {"color": look.colour, "width": look.width, "dash": dash},
    }


def _name_once(data: list[Json]) -> None:
    """A group is in the legend with its first line only."""
    named: set[object] = set()
    for trace in data:
        if "name" in trace:
            trace["showlegend"] = trace["legendgroup"] not in named
            named.add(trace["legendgroup"])


def _axes(study: Study, place: int, limits: dict[str, tuple[float, float]]) -> dict[str, Json]:
    """Both axes of a panel. Steps are shared by all panels, losses by those of a row."""
    panel, rows, columns = study.panels[place - 1], content.rows(study), content.columns(study)
    row, column = rows.index(panel.row), columns.index(panel.column)
    first = next(number for number, other in enumerate(study.panels, 1) if other.row == panel.row)
    steps: Json = {
        "domain": _span(column, len(columns), COLUMN_GAP),
        "anchor": _axis("y", place),
        "showticklabels": row == len(rows) - 1,
        **_across(panel),
    }
    loss: Json = {
        "domain": _span(len(rows) - 1 - row, len(rows), ROW_GAP / (len(rows) * PANEL + (len(rows) - 1) * ROW_GAP)),
        "anchor": _axis("x", place),
        "type": "log",
        "range": [log10(limit) for limit in limits[panel.row]],
        "showticklabels": column == 0,
        "exponentformat": "power",
        "nticks": 6,
    }
    if place > 1:
        steps["matches"] = "x"
    if place != first:
        loss["matches"] = _axis("y", first)
    if row == len(rows) - 1:
        steps["title"] = {"text": escape(panel.axis, quote=False), "standoff": 6}
    if column == 0:
        parts = [f"<b>{escape(part, quote=False)}</b>" for part in content.row_title(panel)]
        between = "<br>" if len(parts) == 1 else ", "  # three lines would run into each other
        loss["title"] = {"text": f"{'<br>'.join(parts)}{between}loss", "standoff": 4}
    look = {"gridcolor": GRID, "linecolor": "rgba(128,128,128,0.6)", "showline": True, "zeroline": False}
    return {_key("x", place): {**steps, **look, "showgrid": False}, _key("y", place): {**loss, **look}}


def _across(panel: Panel) -> Json:
    """The scale of the horizontal axis: steps, or sizes on a logarithmic one."""
    ends = content.ends(panel)
    if not panel.sizes:
        return {"range": list(ends), "nticks": 4, "tickformat": "~s"}
    names = [f"{size:g}" for size in panel.sizes]
    return {"type": "log", "range": [log10(end) for end in ends], "tickvals": list(panel.sizes), "ticktext": names}


def _axis(letter: str, place: int) -> str:
    return letter if place == 1 else f"{letter}{place}"


def _key(letter: str, place: int) -> str:
    """An axis as a key of the layout; the first has no number, or no button finds it."""
    return f"{letter}axis{place if place > 1 else ''}"


def _span(index: int, count: int, gap: float) -> list[float]:
    """Where the panel with this index lies between 0 and 1."""
    size = (1 - gap * (count - 1)) / count
    start = index * (size + gap)
    return [round(start, 5), round(min(1.0, start + size), 5)]


def _annotations(study: Study, results: Results) -> Iterable[Json]:
    """Titles of columns, and what cannot be drawn."""
    columns = content.columns(study)
    for column, panel in {panel.column: panel for panel in study.panels}.items():
        middle = sum(_span(columns.index(column), len(columns), COLUMN_GAP)) / 2
        title = "<br>".join(escape(part, quote=False) for part in content.column_title(study, panel))
        yield _words(title, "paper", "paper", middle, 1.0, xanchor="center", yanchor="bottom", font={"size": 13})
    for place, panel in enumerate(study.panels, 1):
        x, y = f"{_axis('x', place)} domain", f"{_axis('y', place)} domain"
        if not content.lines(panel, results):
            yield _words(content.NOT_RUN, x, y, 0.5, 0.5, font={"color": MUTED})
        if mark := content.mark(panel, results):
            yield _words(
                mark, x, y, 1.0, 1.0, xanchor="right", yanchor="top", align="right", font={"size": 11, "color": MUTED}
            )


def _words(text: str, xref: str, yref: str, x: float, y: float, **more: object) -> Json:
    return {"text": text, "xref": xref, "yref": yref, "x": x, "y": y, "showarrow": False, **more}


def _scale_buttons(study: Study, limits: dict[str, tuple[float, float]], above: int) -> Json:
    """Two buttons: losses on a logarithmic or on a linear axis, in all panels."""
    rows = {_key("y", place): limits[panel.row] for place, panel in enumerate(study.panels, 1)}
    scales: dict[str, Json] = {"log": {}, "linear": {}}
    for axis, (low, high) in rows.items():
        scales["log"] |= {f"{axis}.type": "log", f"{axis}.range": [log10(low), log10(high)]}
        scales["linear"] |= {f"{axis}.type": "linear", f"{axis}.range": [0, high]}
    buttons = [{"label": name, "method": "relayout", "args": [changes]} for name, changes in scales.items()]
    return {
        "type": "buttons",
        "direction": "right",
        "buttons": buttons,
        "x": 0,
        "xanchor": "left",
        "y": 1,
        "yanchor": "bottom",
        "pad": {"b": above},
        "showactive": True,
    }


def _brief(values: Iterable[float]) -> list[float | None]:
    """Five significant digits; what is not finite has no place in JSON."""
    return [float(f"{value:.5g}") if isfinite(value) else None for value in values]


def _faint(colour: str) -> str:
    """The colour of a band, of `#rrggbb`."""
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.16)"
