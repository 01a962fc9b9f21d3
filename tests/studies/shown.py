"""What must be true of every report: its first screen, and the form of its numbers."""

import re
from collections.abc import Iterable

from tests.studies.stored import opening
from tpr_attention.report.document import Document
from tpr_attention.report.tables import Table, unlinked

NUMBER = r"(?:inf|0|-?\d{1,3}(?:,\d{3})*(?:\.\d+)?|-?\d\.\de[+-]\d\d)"
DIVERGED = r"(?: \(\d+ diverged\))?"
FORMS = {
    "number": NUMBER,
    "share": r"100 %|\d{1,2}\.\d %",
    "exact": r"-?\d+(?:\.\d+)?(?:e[+-]\d\d)?",
    "count": r"\d{1,3}(?:,\d{3})*",
    "mean": NUMBER + DIVERGED,
    "mean_and_error": rf"{NUMBER}(?: ± {NUMBER})?{DIVERGED}",
    "interval": rf"{NUMBER}(?: \[{NUMBER} to {NUMBER}\])?",
    "yes_no": "yes|no",
}
"""Kind of column to the one form that its numbers have."""
ALIKE = {"mean": "number", "mean_and_error": "number", "interval": "number"}
"""Kinds whose numbers are written in the same way."""
NAMED_BY_NUMBER = ("which seeds",)
"""Columns of texts that may look like numbers: a list of one seed."""
SETTINGS = {
    "no interaction, everywhere": "without interaction",
    "main figure, no interaction": "without interaction",
    "numerical interaction, everywhere": "with the numerical interaction",
    "categorical interaction, everywhere": "with the categorical interaction",
    "main figure, interactions": "where factors interact",
}


def check_forms(tables: Iterable[Table]) -> None:
    """Numbers of one kind of column have one form, and columns of one title are of one kind, in all tables."""
    kinds: dict[str, str] = {}
    for table in tables:
        for place, column in enumerate(table.columns):
            cells = [text for row in table.texts() if (text := row[place]) != "-"]
            where = (table.name, column.title)
            if column.kind in FORMS:
                assert all(re.fullmatch(FORMS[column.kind], cell) for cell in cells), (where, cells)
            elif cells and column.title not in NAMED_BY_NUMBER:
                assert not all(re.fullmatch(NUMBER, cell) for cell in cells), (where, cells)
            kind = ALIKE.get(column.kind, column.kind)
            assert kinds.setdefault(column.title, kind) == kind, where


def check_opening(document: Document) -> None:
    """Sentences are few and short, and say what the map says; the map says what the tables behind it do."""
    said = opening(document)
    assert 1 <= len(said) <= 3
    for sentence in said:
        assert len(re.findall(r"\d[\d,.]*(?:e-?\d+)?", sentence)) <= 2, sentence
        assert sentence.endswith(".")
    verdicts = _verdicts(document)
    if not verdicts:
        return
    assert len(said) in (2, 3)
    _check_map(document, verdicts)
    _check_sentences(said, verdicts)


def _verdicts(document: Document) -> dict[tuple[str, str], str]:
    """Claim and condition to verdict, as the map has them."""
    maps = [table for table in document.opening if isinstance(table, Table) and table.name == "verdict-map"]
    return {
        (row[0], column.title): unlinked(cell).word
        for table in maps
        for row in table.rows
        for cell, column in table.cells(row)
        if column.kind == "badge" and cell is not None
    }


def _check_map(document: Document, verdicts: dict[tuple[str, str], str]) -> None:
    tables = {table.name: table for table in document.tables}
    figures = {claim: word for (claim, condition), word in verdicts.items() if condition == "the paper's figures"}
    if "claims" in tables:
        assert figures == {row[0]: row[1].word for row in tables["claims"].rows}
    else:
        assert figures == {}
    by_pairs = {key: word for key, word in verdicts.items() if key[1].endswith(" pairs")}
    names = {"none": "no interaction", "scale_pos": "numerical interaction", "shape_col": "categorical interaction"}
    found = {}
    for row in tables["data-claim"].rows if "data-claim" in tables else ():
        for cell, column in tables["data-claim"].cells(row):
            if column.title.endswith(" pairs") and cell is not None:
                found[f"{names[row[0]]}, everywhere", column.title] = cell.word
    assert found == {key: word for key, word in by_pairs.items() if word != "not run"}
    assert {condition for _, condition in by_pairs} >= {"100 pairs", "1,000 pairs", "10,000 pairs"}


def _check_sentences(said: list[str], verdicts: dict[tuple[str, str], str]) -> None:
    """A setting is said to hold only where a cell of the map holds, and to fail only where one does not."""
    words: dict[str, set[str]] = {}
    for (claim, _), word in verdicts.items():
        if claim in SETTINGS:
            words.setdefault(SETTINGS[claim], set()).add(word)
    run = set().union(*words.values()) - {"not run"}
    if not run:
        assert said[0].startswith("No claim of the paper can be judged yet")
        return
    holds, fails = said[0].partition(" holds")[2], said[1].partition("; it was not run")[0]
    for setting, found in words.items():
        assert setting not in holds or "holds" in found, (setting, said)
        assert setting not in fails or found & {"does not hold", "holds in part"}, (setting, said)
    if any(word == "not run" for (claim, _), word in verdicts.items() if claim in SETTINGS and "main" not in claim):
        assert "as far as it was run" in said[0]
    assert ("nowhere" in holds) == (not any(setting in holds for setting in words))
