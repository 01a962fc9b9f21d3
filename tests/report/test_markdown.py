"""The report as Markdown, and its tables as LaTeX."""

import pytest

from tests.report import made_up
from tpr_attention.report.document import Document, Figure, Heads, Section, Table, Text
from tpr_attention.report.inside import Inside
from tpr_attention.report.latex import latex_table
from tpr_attention.report.markdown import markdown
from tpr_attention.report.style import is_number, number, numeric_columns

LOSSES = Table("losses", "Losses at the end.", ["model", "loss"], [["tpr", "3.2e-06"], ["a|b `c|d`", "-"]])


def test_a_document():
    folded = Table("all cells", "Everything.", ["a"], [["1"]], folded=True)
    blocks = [Text("Run `make *it*`."), LOSSES, folded, Figure(made_up.study(), "Made [up].")]
    assert (
        markdown(Document("A report", [Section("Results", blocks)]))
        == r"""# A report

## Results

Run `make *it*`.

Losses at the end.

| model | loss |
| --- | ---: |
| tpr | 3.2e-06 |
| a\|b `c\|d` | - |

Table all cells: tables/all%20cells.csv

![Made \[up\].](figures/made-up.png)
"""
    )


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("a & b", "a &amp; b"),
        ("square_red and _this_", r"square_red and \_this\_"),
        ("2 * 3 * 4", r"2 \* 3 \* 4"),
        ("# no title", r"\# no title"),
        ("- no list", r"\- no list"),
        ("1. no list", r"1\. no list"),
        ("two\nlines", "two lines"),
        ("`one` and ` alone", r"`one` and \` alone"),
        ("a\\b", r"a\\b"),
        ('"quote" \N{PARTY POPPER}', '"quote" \N{PARTY POPPER}'),
    ],
)
def test_texts_are_texts(text, written):
    assert markdown(Document("t", [Section("s", [Text(text)])])) == f"# t\n\n## s\n\n{written}\n"


def test_a_latex_table():
    assert (
        latex_table(LOSSES)
        == r"""\begin{tabular}{lr}
\toprule
model & loss \\
\midrule
tpr & $3.2\cdot10^{-6}$ \\
a|b \texttt{c|d} & - \\
\bottomrule
\end{tabular}"""
    )


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("a_b & 5 %", r"a\_b \& 5 \%"),
        ("{x} $y$ #1", r"\{x\} \$y\$ \#1"),
        ("\\~^", r"\textbackslash{}\textasciitilde{}\textasciicircum{}"),
        ("1.0e+05", r"$1.0\cdot10^{5}$"),
        ("-2e-10", r"$-2\cdot10^{-10}$"),
        ("1.5 ± 2.0e-03", r"1.5 $\pm$ $2.0\cdot10^{-3}$"),
        ("9f3e-04b", "9f3e-04b"),
        ("`my_code`", r"\texttt{my\_code}"),
        ("\N{PARTY POPPER}", "\N{PARTY POPPER}"),
    ],
)
def test_latex_cells(cell, written):
    assert rf"{written} \\" in latex_table(Table("", "", ["c"], [[cell]])).splitlines()


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, "-"),
        (float("nan"), "-"),
        (0.0, "0"),
        (1.0, "1.0"),
        (0.01412, "0.014"),
        (0.00099, "9.9e-04"),
        (3.21e-6, "3.2e-06"),
        (-12.3, "-12"),
        (99.7, "100"),
        (123456.0, "1.2e+05"),
        (float("inf"), "inf"),
    ],
)
def test_numbers(value, written):
    assert number(value) == written
    assert is_number(written) == (written != "-")


def test_heads_are_a_picture():
    text = markdown(Document("", [Section("", [Heads("two heads", Inside("", ()), "a [b]")])]))
    assert r"![a \[b\]](figures/two%20heads.png)" in text


def test_columns_of_numbers():
    rows = [["1", "a", "", "1"], ["-", "2", "-", "2e-03"]]
    assert numeric_columns(Table("", "", list("abcd"), rows)) == [True, False, False, True]
    assert numeric_columns(Table("", "", ["a"], [])) == [False]
