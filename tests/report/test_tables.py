"""Cells of tables, and tables and documents as Markdown, LaTeX and CSV."""

from dataclasses import replace

import numpy as np
import pytest

from tests.report import made_up
from tpr_attention.report.document import Document, Section, Text
from tpr_attention.report.drawings import Curves, HeadMaps
from tpr_attention.report.inspection import Inspection
from tpr_attention.report.latex import latex_table
from tpr_attention.report.markdown import markdown
from tpr_attention.report.statistics import Interval
from tpr_attention.report.style import number
from tpr_attention.report.tables import Badge, Column, Table, csv_text, formatted, sort_value

LOSSES = Table(
    "losses",
    "Losses at the end. Of one seed.",
    [Column("model"), Column("loss", "number")],
    [["ours", 3.21e-6], ["a|b `c|d`", None]],
    "open",
)


def test_a_document_as_markdown(run):
    folded = Table("all cells", "Everything.", [Column("a", "count")], [[1]], "file")
    plan = replace(made_up.plan(), caption="Made [up].")
    blocks = [Text("Run `make *it*`."), replace(LOSSES, shown="folded"), folded, Curves(plan, run(plan))]
    assert (
        markdown(Document("A report", [Section("Results", blocks)], opening=[Text("First."), LOSSES]))
        == r"""# A report

First.

Losses at the end. Of one seed.

| model | loss |
| --- | ---: |
| ours | 3.2e-06 |
| a\|b `c\|d` | - |

## Results

Run `make *it*`.

<details>
<summary>Losses at the end (2 rows)</summary>

Losses at the end. Of one seed.

| model | loss |
| --- | ---: |
| ours | 3.2e-06 |
| a\|b `c\|d` | - |

</details>

Table all cells: tables/all%20cells.csv

![Made \[up\].](figures/made-up.png)

Made \[up\].
"""
    )


def test_every_drawing_is_a_picture_in_markdown():
    text = markdown(Document("", [Section("", [HeadMaps("two heads", Inspection("", ()), "a [b]")])]))
    assert r"![a \[b\]](figures/two%20heads.png)" in text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("a & b", "a &amp; b"),
        ("one_word and _this_", r"one_word and \_this\_"),
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
def test_texts_in_markdown(text, written):
    assert markdown(Document("t", [Section("s", [Text(text)])])) == f"# t\n\n## s\n\n{written}\n"


def test_a_latex_table():
    assert (
        latex_table(LOSSES)
        == r"""\begin{tabular}{lr}
\toprule
model & loss \\
\midrule
ours & $3.2\cdot10^{-6}$ \\
a|b \texttt{c|d} & - \\
\bottomrule
\end{tabular}"""
    )


@pytest.mark.parametrize(
    ("value", "kind", "written"),
    [
        ("a_b & 5 %", "text", r"a\_b \& 5 \%"),
        ("{x} $y$ #1", "text", r"\{x\} \$y\$ \#1"),
        ("\\~^", "text", r"\textbackslash{}\textasciitilde{}\textasciicircum{}"),
        ("two\nlines", "text", "two lines"),
        ("9f3e-04b", "text", "9f3e-04b"),
        ("1e-05", "text", "1e-05"),
        ("`my_code`", "text", r"\texttt{my\_code}"),
        ("\N{PARTY POPPER}", "text", "\N{PARTY POPPER}"),
        ("a ± b", "text", r"a $\pm$ b"),
        (1e5, "number", r"$1.0\cdot10^{5}$"),
        (-2e-10, "number", r"$-2.0\cdot10^{-10}$"),
        (float("inf"), "number", "inf"),
        (Interval(1.5, 2e-6, 2.0), "interval", r"1.5 [$2.0\cdot10^{-6}$ to 2.0]"),
        (np.array([2e-6, np.inf]), "mean", r"$2.0\cdot10^{-6}$ (1 diverged)"),
        (Badge("holds_", "good"), "badge", r"holds\_"),
        (0.25, "share", r"25.0 \%"),
    ],
)
def test_latex_cells(value, kind, written):
    assert rf"{written} \\" in latex_table(Table("", "", [Column("c", kind)], [[value]])).splitlines()


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
        (1066.4, "1,066"),
        (24997.0, "24,997"),
        (123456.0, "1.2e+05"),
        (float("inf"), "inf"),
    ],
)
def test_numbers(value, written):
    assert number(value) == formatted(value, "number") == written


@pytest.mark.parametrize(
    ("value", "kind", "written"),
    [
        ("text", "text", "text"),
        (0.001, "exact", "0.001"),
        (0.3, "exact", "0.3"),
        (1234567, "count", "1,234,567"),
        (1.0, "share", "100 %"),
        (0.9999, "share", "99.9 %"),
        (float("nan"), "share", "-"),
        (float("inf"), "share", "-"),
        (np.array([1.0, 3.0]), "mean", "2.0"),
        (np.array([1.0, np.inf, 3.0]), "mean", "2.0 (1 diverged)"),
        (np.array([np.inf]), "mean", "inf (1 diverged)"),
        (Interval(2.0, 1.5, 2.5), "interval", "2.0 [1.5 to 2.5]"),
        (Interval(2.0, None, None), "interval", "2.0"),
        (True, "yes_no", "yes"),
        (False, "yes_no", "no"),
        (Badge("holds", "good"), "badge", "holds"),
        (Badge("holds", "good", "3 of 3"), "badge", "holds (3 of 3)"),
    ],
)
def test_cells(value, kind, written):
    assert formatted(value, kind) == written
    assert formatted(None, kind) == "-"


def test_csv_has_the_values_themselves():
    columns = [Column("name"), Column("loss", "mean"), Column("ratio", "interval"), Column("sure", "yes_no")]
    rows = [["a, b", np.array([1 / 3, np.inf]), Interval(2.0, None, None), True], [None] * 4]
    assert csv_text(Table("", "", [*columns, Column("v", "badge")], [[*row, None] for row in rows])) == (
        f'name,loss,loss diverged,ratio,ratio low,ratio high,sure,v\n"a, b",{1 / 3},1,2.0,,,yes,\n,,,,,,,\n'
    )


def test_a_row_of_another_length_is_an_error():
    with pytest.raises(ValueError, match="table losses: expected 2 cells in a row, got 1"):
        replace(LOSSES, rows=[["alone"]])


def test_shares_are_numbers_for_all_but_readers():
    table = Table("", "", [Column("right", "share")], [[0.125], [None]])
    assert table.texts() == [["12.5 %"], ["-"]]
    assert table.columns[0].is_numeric
    assert csv_text(table).split() == ["right", "0.125", '""']
    assert (sort_value(0.125, "share"), sort_value(None, "share")) == (0.125, None)
