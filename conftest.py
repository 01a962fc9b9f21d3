"""Every test runs with the shapes of all signatures checked, by the import hook of jaxtyping.

Only modules that have shapes are checked: elsewhere the types are those of mypy, and checks of every call would take
four fifths of the time of a report. Polars has one thread for each worker of pytest, as torch does.
"""

import os
from pathlib import Path

from jaxtyping import install_import_hook

os.environ.setdefault("POLARS_MAX_THREADS", "1")

SOURCE = Path(__file__).parent / "src"


def with_shapes() -> list[str]:
    """The modules that import jaxtyping."""
    found = (path for path in sorted(SOURCE.rglob("*.py")) if "jaxtyping" in path.read_text())
    return [".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__") for path in found]


install_import_hook(with_shapes(), "beartype.beartype")
