"""The report as GitHub-flavoured Markdown."""

import re
from collections.abc import Iterable
from urllib.parse import quote

from tpr_attention.report.document import Block, Document, Figure, Heads, Table, Text
from tpr_attention.report.style import numeric_columns

__all__ = ["markdown"]

_CODE = re.compile(r"(`[^`]+`)")
_SPECIAL = re.compile(r"[\\*\[\]$~`]|(?<!\w)_|_(?!\w)|^[#+-](?=\s)|(?<=^\d)[.)](?=\s)")


def markdown(document: Document) -> str:
    """The document; of folded tables only where they are."""
    parts = [f"# {_plain(document.title)}"]
    for section in document.sections:
        parts += [f"## {_plain(section.title)}", *map(_block, section.blocks)]
    return "\n\n".join(parts) + "\n"


def _block(block: Block) -> str:
    match block:
        case Text():
            return _plain(block.text)
        case Table():
            return _folded(block) if block.folded else _table(block)
        case Figure():
            return _picture(block.study.name, block.caption)
        case Heads():
            return _picture(block.name, block.caption)


def _picture(name: str, caption: str) -> str:
    return f"![{_plain(caption)}](figures/{quote(name)}.png)"


def _folded(table: Table) -> str:
    return f"Table {_plain(table.name)}: tables/{quote(table.name)}.csv"


def _table(table: Table) -> str:
    rule = ["---:" if right else "---" for right in numeric_columns(table)]
    rows = [map(_cell, table.columns), rule, *(map(_cell, row) for row in table.rows)]
    return f"{_plain(table.caption)}\n\n" + "\n".join(map(_row, rows))


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    """Within a table a bar is escaped even in code."""
    return _plain(text).replace("|", r"\|")


def _plain(text: str) -> str:
    """A text on one line, of which Markdown reads only `code`."""
    parts = _CODE.split(" ".join(text.split()))
    return "".join(part if _CODE.fullmatch(part) else _escape(part) for part in parts)


def _escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\g<0>", text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))
