"""The wheel as a user gets it: built, installed into a clean environment, and used there."""

import hashlib
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CORE = {"torch", "numpy", "einops", "jaxtyping", "safetensors"}
CHECK = """
import importlib, importlib.metadata, importlib.util, pkgutil
import tpr_attention
assert "site-packages" in tpr_attention.__file__, tpr_attention.__file__
stored = ("curves", "store", "checkpoints", "work", "local", "on_ray", "run", "estimate")
needs_more = ("cli", "commands", "console", "report", *(f"experiments.{name}" for name in stored))
for module in pkgutil.walk_packages(tpr_attention.__path__, "tpr_attention."):
    if not module.name.removeprefix("tpr_attention.").startswith(needs_more):
        importlib.import_module(module.name)
from tpr_attention.__main__ import main
assert main() == 2
assert importlib.resources.files("tpr_attention").joinpath("py.typed").is_file()
assert importlib.metadata.version("tpr-attention") == tpr_attention.__version__
extras = ["jsonargparse", "polars", "matplotlib", "plotly", "scipy", "rich", "ray", "pytest", "beartype", "sphinx"]
print([name for name in extras if importlib.util.find_spec(name)])
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


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    sources = {str(path.relative_to(ROOT / "src")) for path in ROOT.glob("src/tpr_attention/**/*.py")}
    data = {"tpr_attention/py.typed", "tpr_attention/report/page.css", "tpr_attention/report/page.js"}
    assert sources | data == {name for name in names if ".dist-info/" not in name}
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_wheel_works_in_a_clean_environment(wheel):
    """The environment is kept in build/ for the next run, as installing torch takes its time."""
    pins = (ROOT / "constraints.txt").read_text() + (ROOT / "pyproject.toml").read_text()
    home = ROOT / "build" / f"clean-environment-{hashlib.sha256(pins.encode()).hexdigest()[:12]}"
    python = home / "bin" / "python"
    if not (home / "ready").exists():
        venv.create(home, with_pip=True, clear=True)
        pip("install", "-c", "constraints.txt", wheel, python=python)
        (home / "ready").touch()
    pip("install", "--no-deps", "--force-reinstall", wheel, python=python)
    run = subprocess.run([python, "-I", "-c", CHECK], capture_output=True, text=True, cwd=home, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "[]"
