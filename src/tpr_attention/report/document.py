"""What a report consists of: sections of paragraphs, tables and drawings.

Texts are plain, but for `code` between backticks; each form of the report escapes what it must.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from tpr_attention.report.tables import Table

__all__ = ["Block", "Document", "Drawing", "Interactive", "Section", "Text", "alt_text", "in_order", "rich"]

MOST_LETTERS = 250
"""Of a text in the place of a picture."""

CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@runtime_checkable
class Drawing(Protocol):
    """A figure that draws itself, perhaps in another process: it can be pickled."""

    @property
    def name(self) -> str:
        """The stem of its files."""

    @property
    def caption(self) -> str:
        """What it shows."""

    @property
    def notes(self) -> str:
        """What a page says in small print below the caption; may be empty."""

    def draw(self) -> Any:
        """The figure as a picture: a `matplotlib.figure.Figure`."""


@runtime_checkable
class Interactive(Drawing, Protocol):
    """A drawing that a page shows as a figure of plotly.js."""

    def plot(self) -> Mapping[str, Any]:
        """`data` and `layout`, ready for JSON; `layout["meta"]["min_width"]` says how many pixels it needs."""


Block = Text | Table | Drawing


@dataclass(frozen=True)
class Section:
    """A titled part."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Document:
    """A whole report.

    Args:
        left_out: A sentence on each run that cannot be read.
        opening: What stands before the contents: the first screen.
    """

    title: str
    sections: Sequence[Section]
    left_out: Sequence[str] = ()
    opening: Sequence[Block] = ()

    @property
    def blocks(self) -> list[Block]:
        """All blocks, in order."""
        return [*self.opening, *(block for section in self.sections for block in section.blocks)]

    @property
    def tables(self) -> list[Table]:
        """All tables, in order."""
        return [block for block in self.blocks if isinstance(block, Table)]

    @property
    def drawings(self) -> list[Drawing]:
        """All drawings, in order."""
        return [block for block in self.blocks if isinstance(block, Drawing)]


def in_order(section: Section) -> Section:
    """A section as a reader wants it: a figure, what is said of it, the other figures, and tables last.

    >>> table = Table("t", "", [], [])
    >>> in_order(Section("", [table, Text("Words.")])).blocks == [Text("Words."), table]
    True
    """
    texts = [block for block in section.blocks if isinstance(block, Text)]
    tables = [block for block in section.blocks if isinstance(block, Table)]
    drawings = [block for block in section.blocks if isinstance(block, Drawing)]
    return Section(section.title, [*drawings[:1], *texts, *drawings[1:], *tables])


def alt_text(drawing: Drawing) -> str:
    """What stands in the place of a picture: as many sentences of its caption as are short, or its name."""
    said = " ".join(drawing.caption.replace("`", "").split())
    short = said if len(said) <= MOST_LETTERS else said[: MOST_LETTERS + 1].rpartition(". ")[0] or said.split(". ")[0]
    return (short if short.endswith((".", "!", "?")) or short == said else f"{short}.") or drawing.name


def rich(text: str, plain: Callable[[str], str], code: Callable[[str], str]) -> str:
    """A text on one line, its parts written by two functions; a backtick without a partner is like any character.

    >>> rich("run `make`", str.upper, "<{}>".format)
    'RUN <make>'
    """
    parts = CODE.split(" ".join(text.split()))
    return "".join((code if place % 2 else plain)(part) for place, part in enumerate(parts))
