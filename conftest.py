"""Every test runs with the shapes of all signatures checked, by the import hook of jaxtyping.

Only modules that have shapes are checked: elsewhere the types are those of mypy, and checks of every call would take
four fifths of the time of a report. Polars has one thread for each worker of pytest, as torch does.
"""

import os
import re
from pathlib import Path

from jaxtyping import install_import_hook

os.environ.setdefault("POLARS_MAX_THREADS", "1")

SOURCE = Path(__file__).parent / "src"


def with_shapes() -> list[str]:
    """The modules that import jaxtyping, or a name that another gives to a shape."""
    texts = {path: path.read_text() for path in sorted(SOURCE.rglob("*.py"))}
    own = [text for text in texts.values() if "jaxtyping" in text]
    named = {name for text in own for name in re.findall(r'^(\w+) = .*\[(?:Tensor|np\.ndarray), "', text, re.M)}
    imported = re.compile(rf"^(?:from .* import .*\b|    )(?:{'|'.join(sorted(named))})(?:,.*)?$", re.M)
    found = (path for path, text in texts.items() if "jaxtyping" in text or imported.search(text))
    return [".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in found]


install_import_hook(with_shapes(), "beartype.beartype")
