"""What a report consists of, before it is a page: sections of paragraphs, tables and figures.

Texts are plain, but for `code` between backticks; each form of the report escapes what it must.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tpr_attention.experiments.layout import Study
from tpr_attention.report.inside import Inside

__all__ = ["Block", "Document", "Figure", "Heads", "Section", "Table", "Text"]


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Table:
    """Rows of texts under named columns.

    Args:
        name: The stem of the file it is also written to.
        folded: Whether a page shows it only on demand.
    """

    name: str
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    folded: bool = False


@dataclass(frozen=True)
class Figure:
    """The curves of a study; its name is the stem of its files."""

    study: Study
    caption: str


@dataclass(frozen=True)
class Heads:
    """What the heads of a run do, as heat maps; the name is the stem of its files."""

    name: str
    inside: Inside
    caption: str


Block = Text | Table | Figure | Heads


@dataclass(frozen=True)
class Section:
    """A titled part."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Document:
    """A whole report."""

    title: str
    sections: Sequence[Section]
