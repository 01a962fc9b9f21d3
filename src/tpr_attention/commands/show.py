"""`tpr-attention show`: one stored run."""

from dataclasses import fields

from rich.console import Console

from tpr_attention.console import table
from tpr_attention.experiments.spec import RunSpec
from tpr_attention.experiments.store import Store
from tpr_attention.report.style import number

__all__ = ["command"]


def command(digest: str, store: str, console: Console) -> int:
    """Its spec, its losses at the end, and where it comes from."""
    runs = Store(store)
    digest = runs.find(digest)
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
    return 0
