"""A JavaScript engine with the page's modules, and a real browser that opens the page."""

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
from py_mini_racer import MiniRacer

from tpr_attention.explorer.page import joined, write_page

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
BRIDGE = """
const __in = (value) => {
  if (Array.isArray(value)) return value.map(__in);
  if (value === null || typeof value !== "object") return value;
  if ("__tensor" in value) return tensor(value.__tensor, Float64Array.from(value.data));
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, __in(one)]));
};
const __out = (value) => {
  if (Array.isArray(value)) return value.map(__out);
  if (ArrayBuffer.isView(value)) return Array.from(value);
  if (value === null || typeof value !== "object") return value;
  if (value.shape && ArrayBuffer.isView(value.data)) return { __tensor: value.shape, data: Array.from(value.data) };
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, __out(one)]));
};
"""


class Engine:
    """The modules in V8, without a page: `run("match(m, r, f)", m=..., r=..., f=...)`; arrays are tensors there."""

    def __init__(self, script):
        self._context = MiniRacer()
        self._context.eval(script + BRIDGE)

    def run(self, expression, **values):
        """The value of an expression of JavaScript, in which the given values have their names."""
        names = ", ".join(values)
        given = json.dumps([_to_js(value) for value in values.values()])
        found = self._context.eval(f"JSON.stringify(__out((({names}) => {expression})(...__in({given}))))")
        return None if found is None else _to_python(json.loads(found))


def engine_of(script):
    """An engine that is made in a thread of its own.

    Here the loop of a browser may be running, which V8 would take and which ends with the browser.
    """
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(Engine, script).result()


def _to_js(value):
    if hasattr(value, "detach"):
        value = value.detach().numpy()
    if isinstance(value, np.ndarray):
        return {"__tensor": list(value.shape), "data": value.astype(np.float64).ravel().tolist()}
    if isinstance(value, dict):
        return {name: _to_js(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_to_js(one) for one in value]
    return value


def _to_python(value):
    if isinstance(value, dict):
        if "__tensor" in value:
            return np.array(value["data"]).reshape(value["__tensor"])
        return {name: _to_python(one) for name, one in value.items()}
    return [_to_python(one) for one in value] if isinstance(value, list) else value


@pytest.fixture(scope="session")
def engine():
    """All modules of the page in V8."""
    return engine_of(joined())


def chromium():
    """The path of a Chromium: that of the variable CHROMIUM, or an installed one; None if there is none."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM)), None)


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium."""
    path = chromium()
    if path is None:
        pytest.skip("no Chromium is installed (or named by the variable CHROMIUM): the page is not tried in a browser")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, headless=True, args=FLAGS)
        yield found
        found.close()


def settled(page):
    """Wait until a page has drawn what was last changed."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))")


class Seen(list):
    """What went wrong in a page: logged errors and warnings, exceptions, requests to elsewhere."""


@pytest.fixture
def open_page(browser, tmp_path):
    """Open an explorer file: `with open_page(trained=(), fragment="#room?key=value", width=400) as page`.

    At the end the page must have logged no error and asked for nothing from the network.
    """

    @contextmanager
    def opened(trained=(), fragment="", width=1280, height=900, scheme="light", html=None, **options):
        path = tmp_path / "explore.html"
        path.write_text(write_page(trained) if html is None else html, encoding="utf-8")
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, accept_downloads=True, **options
        )
        page = context.new_page()
        page.set_default_timeout(10_000)
        seen = Seen()
        page.on("console", lambda said: seen.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: seen.append(str(error)))
        page.on(
            "request",
            lambda asked: seen.append(asked.url) if not asked.url.startswith(("file:", "data:", "blob:")) else 0,
        )
        page.goto(path.as_uri() + fragment)
        page.wait_for_selector("html[data-ready]", state="attached")
        try:
            yield page
            page.wait_for_timeout(50)
            assert seen == []
        finally:
            context.close()

    return opened
