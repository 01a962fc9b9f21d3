"""`tpr-attention show`: one stored run."""

from collections.abc import Sequence

import polars as pl
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tpr_attention.commands.figures import FigureFile
from tpr_attention.console import DIVERGED, diverged_words, table
from tpr_attention.report.inspection import Layer, transfers
from tpr_attention.report.style import number
from tpr_attention.runner.store import Store
from tpr_attention.studies.paper.heads import heads_of
from tpr_attention.training.options import default_options
from tpr_attention.training.spec import SpecError, Training

__all__ = ["command"]


def command(digest: str, store: str, console: Console, figure: str | None = None) -> int:
    """Show a run's spec, its metrics at the end, where it comes from, and what its heads do."""
    file = None if figure is None else FigureFile(figure)
    runs = Store(store)
    digest = runs.find(digest)
    divergence = runs.divergence(digest)
    _print_run(runs, digest, divergence, console)
    code = 0 if divergence is None else DIVERGED
    inspection = heads_of(runs, digest)
    if inspection is None:
        said = f"model {runs.spec(digest).model.name!r} has no heads to show"
        if figure is not None:
            raise SpecError(f"figure: {said}")
        console.print(said, markup=False, highlight=False)
        return code
    for layer in inspection.layers:
        _print_layer(layer, console)
    if file is None:
        console.print("Each head as a picture: --figure heads.png", highlight=False)
    else:
        from tpr_attention.report.drawings import heat_maps

        file.write(lambda: heat_maps.draw(inspection))
        console.print(f"Each head as a picture: {figure}", markup=False, highlight=False, soft_wrap=True)
    return code


def _print_run(runs: Store, digest: str, divergence: tuple[int, str] | None, console: Console) -> None:
    spec, names, curve = runs.check(digest), runs.names(digest), runs.curve(digest)
    usual = {
        f"{section}.{key}": value
        for section, name in (("task", spec.task.name), ("model", spec.model.name))
        for key, value in default_options(section, name).items()
    }
    usual |= {f"training.{key}": getattr(Training(), key) for key in Training.__struct_fields__}
    values = spec.keys()
    del values["training.device"]  # no part of the run
    rows = [
        [key, str(value), str(usual[key]) if key in usual and usual[key] != value else ""]
        for key, value in values.items()
    ]
    rows += [[f"source of {name}", found, ""] for name, found in spec.sources.items()]
    table(f"run {digest}", ["key", "value", "default, if another"], rows, console)
    if divergence is None:
        _print_metrics(curve, names["metrics"], console)
    else:
        console.print(
            f"{diverged_words(divergence)}: it has no final values", style="red", highlight=False, markup=False
        )
    origin = [[key, str(value)] for key, value in runs.provenance(digest).items()]
    table("provenance", ["what", "which"], origin, console)


def _print_metrics(curve: pl.DataFrame, metrics: Sequence[str], console: Console) -> None:
    """The metrics of the last step, of all examples and of groups."""
    last = curve.filter(pl.col("step") == pl.col("step").max())
    found: dict[tuple[str, str | None], dict[str, float]] = {}
    for condition, metric, group, value in last.select("condition", "metric", "group", "value").iter_rows():
        found.setdefault((condition, group), {})[metric] = value
    rows = [
        [condition, group or "all", *(number(of_metrics.get(metric)) for metric in metrics)]
        for (condition, group), of_metrics in found.items()
    ]
    table("metrics at the end", ["condition", "examples", *metrics], rows, console)


def _print_layer(layer: Layer, console: Console) -> None:
    """What all heads of a layer do together, the strongest for each action; in the colours of the picture."""
    if layer.combined is None:
        how = "bring what they read to unit length" if layer.normalised else "multiply what they read"
        said = f"{layer.name}: {len(layer.heads)} heads that {how}; only a picture shows them"
        console.print(said, markup=False, highlight=False)
        return
    shown = Table(title=escape(f"{layer.name}: what all heads do together"), title_justify="left", title_style="bold")
    for column in ("action", "from", "role", "to role"):
        shown.add_column(column)
    shown.add_column("copied", justify="right")
    shown.add_column("mixed", justify="right")
    for action in layer.names.actions:
        found, left_out = transfers(layer, action)
        for place, one in enumerate(found):
            copied = f"[{'red' if one.copied > 0 else 'blue'}]{one.copied:+.2f}[/]"
            names = (action if place == 0 else "", one.obj, one.role, one.new_role)
            shown.add_row(*map(escape, names), copied, f"{one.mixed:.2f}")
        if left_out or not found:
            shown.add_row("" if found else escape(action), f"and {left_out} weaker" if found else "nothing")
        shown.add_section()
    shown.caption = "copied: -1 erases, +1 writes; mixed: how large the rest of the map of fillers is"
    shown.caption_justify = "left"
    console.print(shown)
