"""Tables for papers."""

import re
from collections.abc import Iterable

from tpr_attention.report.document import Table
from tpr_attention.report.style import numeric_columns

__all__ = ["latex_table"]

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{character: rf"\{character}" for character in "{}$&#_%"},
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "\u00d7": r"$\times$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
}
_SCIENTIFIC = re.compile(r"(?<![\w.])([-+]?\d(?:\.\d+)?)e([-+]\d+)(?![\w.])")
_CODE = re.compile(r"`([^`]+)`")


def latex_table(table: Table) -> str:
    r"""A `tabular` in the style of the package booktabs.

    >>> print(latex_table(Table("losses", "", ["model", "loss"], [["my_model", "3.2e-06"]])))
    \begin{tabular}{lr}
    \toprule
    model & loss \\
    \midrule
    my\_model & $3.2\cdot10^{-6}$ \\
    \bottomrule
    \end{tabular}
    """
    alignment = "".join("r" if right else "l" for right in numeric_columns(table))
    return "\n".join(
        [
            rf"\begin{{tabular}}{{{alignment}}}",
            r"\toprule",
            _row(table.columns),
            r"\midrule",
            *map(_row, table.rows),
            r"\bottomrule",
            r"\end{tabular}",
        ]
    )


def _row(cells: Iterable[str]) -> str:
    return rf"{' & '.join(map(_cell, cells))} \\"


def _cell(text: str) -> str:
    escaped = "".join(_SPECIAL.get(character, character) for character in " ".join(text.split()))
    code = _CODE.sub(r"\\texttt{\1}", escaped)
    return _SCIENTIFIC.sub(lambda found: rf"${found[1]}\cdot10^{{{int(found[2])}}}$", code)
