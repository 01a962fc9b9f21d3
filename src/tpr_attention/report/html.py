"""The report as one HTML page that loads nothing from the network."""

from base64 import b64encode
from collections.abc import Mapping
from functools import partial
from hashlib import sha256
from importlib.resources import files
from urllib.parse import quote

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape
from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]

from tpr_attention.report.document import Document, Interactive, Text, alt_text, rich
from tpr_attention.report.drawings.pictures import FORMATS
from tpr_attention.report.tables import Linked, Table, formatted, sort_value, unlinked

__all__ = ["page"]


def page(document: Document, pictures: Mapping[str, bytes]) -> str:
    """The whole page, with scripts, styles and data inside; plotly.js only if a figure needs it.

    Args:
        pictures: The PNG of each drawing by name; those that are not interactive are shown as pictures in the page.
    """
    plots = {one.name: one.plot() for one in document.drawings if isinstance(one, Interactive)}
    scripts = [_resource("tables.js")] if document.tables else []
    scripts += [get_plotlyjs().replace("</script", r"<\/script"), _resource("plots.js")] if plots else []
    # Only these scripts run: a text that is taken for a script is refused, as its hash is not listed.
    hashes = [f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts] or ["'none'"]
    policy = (
        f"default-src 'none'; script-src {' '.join(hashes)}; style-src 'unsafe-inline'; "
        "img-src 'self' file: data: blob:; base-uri 'none'; form-action 'none'"
    )
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True)
    environment.filters |= {"rich": _rich, "quoted": quote, "formatted": partial(formatted, text=_rich)}
    environment.filters |= {"alt": alt_text, "sort_value": sort_value, "unlinked": unlinked}
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    environment.globals |= {"isinstance": isinstance, "Text": Text, "Table": Table, "Linked": Linked}
    return environment.from_string(_resource("page.html")).render(
        document=document,
        policy=policy,
        css=Markup(_resource("page.css")),
        scripts=map(Markup, scripts),
        plots=plots,
        anchors=_anchors(document),
        has_rows=any(table.row_names for table in document.tables),
        pictures={name: f"data:image/png;base64,{b64encode(png).decode()}" for name, png in pictures.items()},
        formats=FORMATS,
    )


def _anchors(document: Document) -> dict[str, str]:
    """Where links lead to: names of rows, and titles of sections."""
    sections = {section.title: f"section-{place}" for place, section in enumerate(document.sections, 1)}
    return sections | {name: name for table in document.tables for name in table.row_names}


def _resource(name: str) -> str:
    return files("tpr_attention.report").joinpath(name).read_text(encoding="utf-8")


def _rich(text: str) -> Markup:
    """A text as HTML, with `code` between backticks."""
    return Markup(rich(text, escape, Markup("<code>{}</code>").format))
