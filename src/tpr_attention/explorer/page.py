"""The explorer's page: template, styles, modules and data as one HTML file that loads nothing from the network."""

import posixpath
import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from tpr_attention import __version__
from tpr_attention.explorer.packing import pack
from tpr_attention.explorer.rooms import composition, images, memory, sequences
from tpr_attention.explorer.trained import Trained

__all__ = ["ROOMS", "joined", "write_page"]

Data = Callable[[Sequence[Trained]], Mapping[str, Any] | None]

ROOMS: dict[str, Data] = {
    "memory": memory.data,
    "composition": composition.data,
    "images": images.data,
    "sequences": sequences.data,
}
"""What each room of the page shows, by the key that it has in main.js."""

IMPORT = re.compile(r"^import\b[^;]*?from\s+[\"'](\.\.?/[\w/]+\.js)[\"'];\n", re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?(?:const|let|function|class) (\w+))", re.MULTILINE)


def write_page(trained: Sequence[Trained] = ()) -> str:
    """The whole page, with the data of every room that has something to show."""
    shown = {key: found for key, data in ROOMS.items() if (found := data(trained)) is not None}
    script = f'(() => {{\n"use strict";\n{joined()}\nstart(ROOMS);\n}})();\n'.replace("</script", r"<\/script")
    # Only this script runs: a text that is taken for a script is refused, as its hash is not listed.
    policy = (
        f"default-src 'none'; script-src 'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'; "
        "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True)
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return environment.from_string(_resource("page.html")).render(
        policy=policy,
        version=__version__,
        css=Markup("\n".join([_resource("page.css"), *map(_styles, shown)])),
        script=Markup(script),
        rooms={key: pack(found) for key, found in shown.items()},
    )


def joined(entry: str = "main.js") -> str:
    """A module and all that it imports as one script, each module after those that it imports.

    A module becomes a function whose result has its exports, so that other names stay its own.
    """
    modules: dict[str, str] = {}
    exported: dict[str, str] = {}
    _collect(entry, modules, exported, ())
    return "\n".join(modules.values())


def _collect(name: str, modules: dict[str, str], exported: dict[str, str], above: tuple[str, ...]) -> None:
    if name in above:
        raise ValueError(f"{name}: imports itself by {' > '.join(above)}")
    if name in modules:
        return
    text = _resource(f"modules/{name}")
    for imported in IMPORT.findall(text):
        _collect(
            posixpath.normpath(posixpath.join(posixpath.dirname(name), imported)), modules, exported, (*above, name)
        )
    names = EXPORT.findall(text)
    for one in names:
        if exported.setdefault(one, name) != name:
            raise ValueError(f"{name}: exports {one}, as {exported[one]} does")
    body = EXPORT.sub("", IMPORT.sub("", text))
    left = re.search(r"^(import|export)\b.*", body, re.MULTILINE)
    if left:
        raise ValueError(f"{name}: cannot be joined: {left[0]}")
    listed = ", ".join(names)
    modules[name] = f"const {{ {listed} }} = (() => {{\n{body}\nreturn {{ {listed} }};\n}})();"


def _styles(key: str) -> str:
    """The styles of a room, which hold only where it is shown."""
    return f':root[data-room="{key}"] {{\n{_resource(f"styles/{key}.css")}}}\n'


def _resource(name: str) -> str:
    return files("tpr_attention.explorer").joinpath(name).read_text(encoding="utf-8")
