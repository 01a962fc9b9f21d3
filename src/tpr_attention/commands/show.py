"""`tpr-attention show`: one stored run."""

from dataclasses import fields
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tpr_attention.console import table
from tpr_attention.experiments.files import write_file
from tpr_attention.experiments.spec import RunSpec, SpecError
from tpr_attention.experiments.store import Store, StoreError
from tpr_attention.report.heads import heads_of
from tpr_attention.report.inside import Inside, Layer, transfers
from tpr_attention.report.style import number

__all__ = ["command"]


def command(digest: str, store: str, console: Console, figure: str | None = None) -> int:
    """Its spec, its losses at the end, where it comes from, and what its heads do."""
    form = _form(figure) if figure is not None else ""
    runs = Store(store)
    digest = runs.find(digest)
    _print_run(runs, digest, console)
    inside = heads_of(runs, digest)
    if inside is None:
        said = f"model {runs.spec(digest).model!r} has no heads to show"
        if figure is not None:
            raise SpecError(f"figure: {said}")
        console.print(said, markup=False, highlight=False)
        return 0
    for layer in inside.layers:
        _print_layer(layer, console)
    if figure is None:
        console.print("Each head as a picture: --figure heads.png", highlight=False)
    else:
        _draw(inside, Path(figure), form)
        console.print(f"Each head as a picture: {figure}", markup=False, highlight=False, soft_wrap=True)
    return 0


def _print_run(runs: Store, digest: str, console: Console) -> None:
    spec, curve, usual = runs.spec(digest), runs.curve(digest), RunSpec()
    keys = [key.name for key in fields(spec)]
    values = [
        [key, str(getattr(spec, key)), "" if getattr(spec, key) == getattr(usual, key) else str(getattr(usual, key))]
        for key in keys
    ]
    table(f"run {digest}", ["key", "value", "default, if another"], values, console)
    last = curve.filter(curve["step"] == curve["step"].max())
    roles = [name for name in curve.columns if name.startswith("role_")]
    losses = [
        [row["condition"], row["action"] or "all", number(row["loss"]), *(number(row[role]) for role in roles)]
        for row in last.iter_rows(named=True)
    ]
    names = [role.removeprefix("role_") for role in roles]
    table("losses at the end, of all roles and of each", ["condition", "action", "loss", *names], losses, console)
    table(
        "provenance", ["what", "which"], [[key, str(value)] for key, value in runs.provenance(digest).items()], console
    )


def _print_layer(layer: Layer, console: Console) -> None:
    """What all heads of a layer do together, the strongest for each action; in the colours of the picture."""
    if layer.together is None:
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
            names = (action if place == 0 else "", one.thing, one.role, one.new_role)
            shown.add_row(*map(escape, names), copied, f"{one.other:.2f}")
        if left_out or not found:
            shown.add_row("" if found else escape(action), f"and {left_out} weaker" if found else "nothing")
        shown.add_section()
    shown.caption = "copied: -1 erases, +1 writes; mixed: how large the rest of the map of fillers is"
    shown.caption_justify = "left"
    console.print(shown)


def _form(figure: str) -> str:
    from tpr_attention.report.pictures import FORMS  # only now: matplotlib takes a second

    form = Path(figure).suffix.lower().removeprefix(".")
    if form not in FORMS:
        raise SpecError(f"figure: expected a file that ends in .png, .svg or .pdf, got {figure!r}")
    return form


def _draw(inside: Inside, path: Path, form: str) -> None:
    from tpr_attention.report import heat_maps, pictures

    try:
        write_file(path, pictures.encoded(heat_maps.draw(inside), form))
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror}") from error
