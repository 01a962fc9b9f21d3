"""Links from docstrings to the page of equations.

A docstring names the sections of the paper that it implements: "(sec. 3.2.1, App. B.1)". Each name becomes a link to
that section of `docs/equations.md`. Objects that the page names also get a link to their equation.
"""

import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "equations.md"
EQUATION = re.compile(r"\s{2,}\(((?:sec\.|App\.|Algorithm|inverts).*)\)$")
SEVERAL = re.compile(r"= .*, {4}\S")
# After a year, a section is one of another paper.
SECTIONS = re.compile(r"(?<!\d{4}, )\b(sec\.|App\.|Algorithm) ([A-F\d][.\d]*(?:(?:, | and )[A-F](?:\.\d)*\b)*)(?<!\.)")
HEADING = re.compile(r"((?:^\([\w-]+\)=\n)+)#+ (.*)\n((?:(?!^\(|^#).*\n)*)", re.MULTILINE)


def label_of(section: str) -> str:
    """The label of a section on the page of equations.

    >>> label_of("sec. 3.2.1"), label_of("App. B.1"), label_of("Algorithm 1")
    ('paper-3-2-1', 'paper-b-1', 'paper-algorithm-1')
    """
    return "paper-" + re.sub(r"[. ]+", "-", section.removeprefix("sec. ").removeprefix("App. ")).lower()


def with_links(text: str) -> str:
    """A text in which the names of sections are links.

    >>> with_links("a conjunction (App. C)")
    'a conjunction (:ref:`App. C <paper-c>`)'
    >>> with_links("sec. 3.2, App. B, C")
    ':ref:`sec. 3.2 <paper-3-2>`, :ref:`App. B <paper-b>`, :ref:`C <paper-c>`'
    """

    def links(found: re.Match[str]) -> str:
        kind, sections = found[1], found[2]
        first, *others = re.split(r"(, | and )", sections)
        parts = [f":ref:`{kind} {first} <{label_of(f'{kind} {first}')}>`"]
        for joint, section in zip(others[::2], others[1::2], strict=True):
            parts += [joint, f":ref:`{section} <{label_of(f'{kind} {section}')}>`"]
        return "".join(parts)

    return SECTIONS.sub(links, text)


def equations_by_name(page: str) -> dict[str, tuple[str, str]]:
    """For each object that the page of equations names: the label and the title of its first equation.

    >>> page = "(eq-bind)=\\n### Binding\\n\\nIn code: {py:obj}`functional.bind`.\\n"
    >>> equations_by_name(page)
    {'functional.bind': ('eq-bind', 'Binding')}
    """
    found: dict[str, tuple[str, str]] = {}
    for labels, title, text in HEADING.findall(page):
        equation = re.findall(r"\((eq-[\w-]+)\)=", labels)
        for name in re.findall(r"\{py:obj\}`([\w.]+)`", text):
            if equation:
                found.setdefault(name, (equation[0], title))
    return found


def linked(name: str, docstring: str, equations: dict[str, tuple[str, str]]) -> str:
    """A docstring with equations as blocks of their own, and links to the paper.

    Equations are known by the section at the right margin, or by a wide space between two of them.
    """
    paragraphs = docstring.split("\n\n")
    shown = False
    for i, paragraph in enumerate(paragraphs):
        margin = EQUATION.search(paragraph)
        if margin or SEVERAL.search(paragraph):
            block = ".. code-block:: text\n\n" + re.sub("(?m)^", "    ", EQUATION.sub("", paragraph))
            note = with_links(margin[1]) if margin else ""
            if ":ref:" in note and name in equations:
                label, title = equations[name]
                note += f"; equation: :ref:`{title} <{label}>`"
                shown = True
            note = f"Paper: {note}" if ":ref:" in note else note[:1].upper() + note[1:]
            paragraphs[i] = f"{block}\n\n{note}." if note else block
        elif not re.match(r"\s*(>>>|\.\. )", paragraph):
            paragraphs[i] = with_links(paragraph)
    if name in equations and not shown:
        label, title = equations[name]
        paragraphs.append(f"Equation: :ref:`{title} <{label}>`.\n")
    return "\n\n".join(paragraphs)


def process_docstring(app, what, name, obj, options, lines) -> None:
    """Called by autodoc for every docstring, before fields such as Args are read."""
    lines[:] = linked(name, "\n".join(lines), equations_by_name(PAGE.read_text())).split("\n")


def setup(app):
    app.connect("autodoc-process-docstring", process_docstring)
    return {"parallel_read_safe": True}
