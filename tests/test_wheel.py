"""The wheel as a user gets it: built, and used with nothing but the packages that it asks for."""

import importlib.metadata
import json
import re
import subprocess
import sys
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CORE = {"torch", "numpy", "einops", "jaxtyping", "safetensors", "msgspec"}
BENCH = {"jsonargparse", "polars", "matplotlib", "plotly", "rich", "pyyaml", "jinja2", "filelock"}
CHECK = """
import importlib, importlib.abc, json, pkgutil, sys
folder, blocked = json.loads(sys.argv[1])

class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.path[:] = [folder, *(path for path in sys.path if not path.endswith("/src"))]
sys.meta_path[:] = [Blocked(), *(one for one in sys.meta_path if "editable" not in repr(one).lower())]
import tpr_attention
assert tpr_attention.__file__.startswith(folder), tpr_attention.__file__
needs_more = ("arguments", "cli", "commands", "console", "explorer", "report", "runner", "studies")
needs_more += ("tasks.composition.tables", "training.curves")
for module in pkgutil.walk_packages(tpr_attention.__path__, "tpr_attention."):
    if not module.name.removeprefix("tpr_attention.").startswith(needs_more):
        importlib.import_module(module.name)
from tpr_attention.__main__ import main
assert main() == 2  # says what to install
from tpr_attention import RunSpec, train
spec = RunSpec.of({"model": "tpr", "num_heads": 2, "steps": 3, "train_examples": 100, "test_examples": 20})
print(len(list(train([spec]))))
"""


def pip(*arguments, python=sys.executable):
    command = [python, "-m", "pip", "--disable-pip-version-check", *map(str, arguments)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-deps", "--wheel-dir", folder, ".")
    (path,) = folder.glob("tpr_attention-*.whl")
    return path


def requirements(wheel):
    """The names of what a wheel needs, by extra; the empty one is always needed."""
    with zipfile.ZipFile(wheel) as file:
        (name,) = (name for name in file.namelist() if name.endswith(".dist-info/METADATA"))
        lines = message_from_bytes(file.read(name)).get_all("Requires-Dist")
    found = {}
    for line in lines:
        needed, _, marker = line.partition(";")
        extra = re.search(r"extra == '(\w+)'", marker.replace('"', "'"))
        found.setdefault(extra[1] if extra else "", set()).add(re.match(r"[\w-]+", needed)[0].lower())
    return found


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    package = ROOT / "src" / "tpr_attention"
    sources = {str(path.relative_to(ROOT / "src")) for form in ("py", "pyi") for path in package.rglob(f"*.{form}")}
    data = {"py.typed", "report/page.html", "report/page.css", "report/plots.js", "report/tables.js"}
    explorer = (path for form in ("html", "css", "js") for path in (package / "explorer").rglob(f"*.{form}"))
    data |= {str(path.relative_to(package)) for path in explorer}
    assert sources | {f"tpr_attention/{name}" for name in data} == {name for name in names if ".dist-info/" not in name}
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_wheel_asks_for_what_it_needs(wheel):
    found = requirements(wheel)
    assert (found[""], found["bench"], found["ray"]) == (CORE, BENCH, {"ray"})


def with_what_they_need(names):
    """Packages, and all that these ask for without an extra."""
    found, left = set(), [*names]
    while left:
        name = left.pop().lower().replace("_", "-")
        if name not in found:
            found.add(name)
            try:
                needed = importlib.metadata.requires(name) or ()
            except importlib.metadata.PackageNotFoundError:
                continue  # not needed on this system
            left += [re.match(r"[\w.-]+", line)[0] for line in needed if "extra ==" not in line]
    return found


def test_the_wheel_trains_with_what_it_asks_for(wheel, tmp_path):
    """All installed packages are hidden but those that the wheel asks for; commands say that they need more."""
    pip("install", "--no-deps", "--target", tmp_path, wheel)
    core = with_what_they_need(CORE)
    homes = importlib.metadata.packages_distributions()
    hidden = [name for name, of in homes.items() if not {one.lower().replace("_", "-") for one in of} & core]
    assert {"polars", "rich", "pytest", "matplotlib"} <= set(hidden)
    blocked = [name for name in hidden if name not in ("tpr_attention", "_distutils_hack", "setuptools", "pip")]
    arguments = [sys.executable, "-c", CHECK, json.dumps([str(tmp_path), blocked])]
    run = subprocess.run(arguments, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) > 10
