"""`tpr-attention explore`: the explorer's page, with what is stored."""

import webbrowser
from pathlib import Path

from rich.console import Console

from tpr_attention.console import counted, tell
from tpr_attention.runner.store import Store, StoreError

__all__ = ["command"]

NAME = "explore.html"


def command(store: str | None, out: str, open_page: bool, console: Console) -> int:
    """Write the page, with the trained models of a store if there is one, and say where it is."""
    runs = None if store is None and not Path("runs").exists() else Store(store or "runs")
    from tpr_attention.explorer.page import write_page  # only now: a wrong store is told before torch is loaded
    from tpr_attention.explorer.trained import of_store

    trained, left_out = ([], []) if runs is None else of_store(runs)
    for said in left_out:
        tell(f"left out: {said}")
    path = Path(out) / NAME
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(write_page(trained), encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror}") from error
    models = "without trained models" if not trained else f"with {counted(len(trained), 'trained model')}"
    console.print(f"explorer: {path} ({models})", highlight=False, markup=False, soft_wrap=True)
    if open_page:
        webbrowser.open(path.resolve().as_uri())
    return 0
