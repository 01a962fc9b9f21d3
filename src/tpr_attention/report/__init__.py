"""Renderers of reports: from stored curves to figures and tables, and from a document to HTML, Markdown and LaTeX.

Nothing here knows a study, and nothing needs torch. `write.write_report` writes a `document.Document`.
"""

__all__: list[str] = []
