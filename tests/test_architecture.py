"""The public surface and the habits of the code."""

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import tpr_attention

ROOT = Path(__file__).parents[1]
MODULES = sorted(module.name for module in pkgutil.walk_packages(tpr_attention.__path__, "tpr_attention."))


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys, tpr_attention; print(sorted({'torch', 'numpy', 'einops'} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize("name", MODULES)
def test_exports_are_importable_and_documented(name):
    module = importlib.import_module(name)
    assert module.__doc__
    assert len(set(module.__all__)) == len(module.__all__)
    for export in module.__all__:
        member = getattr(module, export)
        ours = getattr(member, "__module__", "").startswith("tpr_attention")
        assert not ours or member.__doc__, f"{name}.{export} has no docstring"


@pytest.mark.parametrize("package", ["data", "functional", "models", "nn"])
def test_a_package_exports_only_what_its_modules_export(package):
    names = set(importlib.import_module(f"tpr_attention.{package}").__all__)
    prefix = f"tpr_attention.{package}."
    exported = [set(importlib.import_module(name).__all__) for name in MODULES if name.startswith(prefix)]
    assert names <= set().union(*exported)


def test_files_are_short_and_their_names_say_what_is_in_them():
    hiding = {"utils", "common", "base", "helpers", "misc", "types"}
    for path in [*ROOT.glob("src/**/*.py"), *ROOT.glob("tests/**/*.py"), *ROOT.glob("benchmarks/*.py")]:
        assert path.stem not in hiding, path
        assert len(path.read_text().splitlines()) <= 300, f"{path} is too long"


def test_the_version_is_the_one_of_the_citation():
    assert f"\nversion: {tpr_attention.__version__}\n" in (ROOT / "CITATION.cff").read_text()
