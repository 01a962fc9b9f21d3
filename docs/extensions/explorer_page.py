"""Write the explorer's page, with the trained models of `docs/models`, beside the pages that are built."""

from pathlib import Path

from tpr_attention.explorer.page import write_page
from tpr_attention.explorer.trained import Trained, of_folder

MODELS = Path(__file__).parents[1] / "models"


def trained_models(folder: Path) -> list[Trained]:
    """The models of a folder and of the folders in it."""
    folders = [folder, *sorted(path for path in folder.iterdir() if path.is_dir())]
    return [trained for one in folders for trained in of_folder(one)]


def write_explorer(app, error) -> None:
    """Called by Sphinx when all pages are written."""
    if error is None and app.builder.name == "html":
        page = write_page(trained_models(MODELS))
        Path(app.outdir, "explore.html").write_text(page, encoding="utf-8")


def setup(app):
    app.connect("build-finished", write_explorer)
    return {"parallel_read_safe": True}
