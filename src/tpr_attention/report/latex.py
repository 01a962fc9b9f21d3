"""Tables for papers."""

from tpr_attention.report import style
from tpr_attention.report.document import rich
from tpr_attention.report.tables import Table

__all__ = ["latex_table"]

SPECIAL = str.maketrans(
    {
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
)


def latex_table(table: Table) -> str:
    r"""A `tabular` in the style of the package booktabs.

    >>> from tpr_attention.report.tables import Column
    >>> print(latex_table(Table("", "", [Column("model"), Column("loss", "number")], [["my_model", 3.2e-6]])))
    \begin{tabular}{lr}
    \toprule
    model & loss \\
    \midrule
    my\_model & $3.2\cdot10^{-6}$ \\
    \bottomrule
    \end{tabular}
    """
    rows = [[_text(column.title) for column in table.columns], *table.texts(text=_text, number=_number)]
    title, *body = (rf"{' & '.join(cells)} \\" for cells in rows)
    alignment = "".join("r" if column.is_numeric else "l" for column in table.columns)
    begin, end = rf"\begin{{tabular}}{{{alignment}}}", r"\end{tabular}"
    return "\n".join([begin, r"\toprule", title, r"\midrule", *body, r"\bottomrule", end])


def _text(text: str) -> str:
    return rich(text, lambda plain: plain.translate(SPECIAL), lambda code: rf"\texttt{{{code.translate(SPECIAL)}}}")


def _number(value: float | None) -> str:
    mantissa, is_scientific, exponent = style.number(value).partition("e")
    return rf"${mantissa}\cdot10^{{{int(exponent)}}}$" if is_scientific else mantissa
