"""The public surface and the habits of the code."""

import importlib
import io
import pkgutil
import re
import subprocess
import sys
import tokenize
from pathlib import Path

import numpy as np
import pytest
from jaxtyping import TypeCheckError

import tpr_attention
from tpr_attention.report.statistics import mean

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "tpr_attention"
MODULES = sorted(module.name for module in pkgutil.walk_packages(tpr_attention.__path__, "tpr_attention."))
PACKAGES = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
SOURCES = sorted(PACKAGE.rglob("*.py"))
FILES = [*SOURCES, *sorted(ROOT.glob("tests/**/*.py")), *sorted(ROOT.glob("benchmarks/**/*.py"))]
STORE = ROOT / "tests" / "golden" / "store"
RUN = next(path.name for path in sorted(STORE.iterdir()) if path.is_dir() and not path.name.startswith("."))


def loaded(code, *arguments):
    """The modules that are loaded after some code has run in a process of its own."""
    code = f"import sys\n{code}\nsys.stdout = sys.__stdout__\nprint('\\n', *sys.modules)"
    run = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=True)
    return set(run.stdout.splitlines()[-1].split())


def test_importing_the_package_imports_nothing_heavy():
    assert loaded("import tpr_attention").isdisjoint({"torch", "numpy", "einops", "polars", "msgspec"})


@pytest.mark.parametrize(
    "arguments",
    [
        ["list", "--store", STORE],
        ["show", RUN, "--store", STORE],
        ["report", "--help"],
        ["run", "modle=tpr"],
        ["run", "model=tpr", "num_haeds=4"],
        ["floors", "spilt=square_red"],
        ["examples", "task=nothing"],
    ],
    ids=lambda arguments: " ".join(map(str, arguments[:2])).replace(str(ROOT), ""),
)
def test_what_trains_nothing_does_not_load_torch(arguments):
    """Nor matplotlib, which takes as long."""
    code = "from tpr_attention.cli import main\ntry:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass"
    assert loaded(code, *arguments).isdisjoint({"torch", "matplotlib"})


def test_a_report_without_answers_does_not_load_torch(tmp_path):
    code = "from tpr_attention.cli import main\nmain(sys.argv[1:])"
    found = loaded(code, "report", "--store", STORE, "--report", tmp_path / "report")
    assert "torch" not in found
    assert (tmp_path / "report" / "index.html").exists()


@pytest.mark.parametrize("name", MODULES)
def test_exports_are_importable_and_documented(name):
    module = importlib.import_module(name)
    assert module.__doc__
    assert len(set(module.__all__)) == len(module.__all__)
    for export in module.__all__:
        member = getattr(module, export)
        ours = getattr(member, "__module__", "").startswith("tpr_attention")
        assert not ours or member.__doc__, f"{name}.{export} has no docstring"


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_exports_only_what_is_below_it(package):
    """What a package defines itself is a table of names, which needs no module."""
    module = importlib.import_module(f"tpr_attention.{package}")
    prefix = f"tpr_attention.{package}."
    exported = [set(importlib.import_module(name).__all__) for name in MODULES if name.startswith(prefix)]
    tables = {name for name in module.__all__ if isinstance(getattr(module, name), dict)}
    assert set(module.__all__) <= tables.union(*exported)


@pytest.mark.parametrize("stub", sorted(PACKAGE.rglob("*.pyi")), ids=lambda path: path.parent.name)
def test_a_stub_has_the_names_that_its_package_imports_lazily(stub):
    package = ".".join(stub.parent.relative_to(PACKAGE.parent).parts)
    lines = [line for line in stub.read_text().splitlines() if line.startswith("from ")]
    named = [re.fullmatch(r"from ([\w.]+) import (\w+) as (\w+)", line).groups() for line in lines]
    exports = set(importlib.import_module(package).__all__) - {"__version__"}
    assert {name for _, _, name in named} == exports
    for module, name, other in named:
        assert name == other
        assert getattr(importlib.import_module(package), name) is getattr(importlib.import_module(module), name)


def test_files_are_short_and_their_names_say_what_is_in_them():
    hiding = {"utils", "common", "base", "helpers", "misc", "types", "own", "growth", "answers", "inside"}
    assert [path for path in FILES if path.stem in hiding] == []
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in FILES}
    assert {path: length for path, length in lengths.items() if length > 300} == {}


def test_folders_are_small():
    for folder in {path.parent for path in SOURCES}:
        assert len(list(folder.glob("*.py"))) <= 18, folder


def words_of(path):
    """The names, strings and docstrings of a file, without comments."""
    found = tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
    return " ".join(token.string for token in found if token.type in (tokenize.NAME, tokenize.STRING))


SUBJECT = re.compile(r"\b(references?|transforms?|interactions?|square_red|square_pos|ood_\w+|scale_pos|shape_col)\b")
MACHINE = [path for path in SOURCES if path.relative_to(PACKAGE).parts[0] in ("training", "runner", "report")]


def test_the_machine_knows_no_subject():
    """Training, runner and report know tasks, models and metrics by contract."""
    found = {str(path.relative_to(PACKAGE)): SUBJECT.findall(words_of(path)) for path in MACHINE}
    assert {path: words for path, words in found.items() if words} == {}


@pytest.mark.parametrize("door", ["unittest.mock", "ray._private", "torch._inductor", "torch._dynamo"])
def test_no_private_doors_of_other_libraries(door):
    assert [path for path in SOURCES if door in path.read_text()] == []


def test_the_version_is_the_one_of_the_citation():
    assert f"\nversion: {tpr_attention.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_shapes_are_checked_while_tests_run():
    """By the import hook, in modules that have shapes but not the decorator of the layers."""
    assert mean(np.ones(2)) == 1
    with pytest.raises(TypeCheckError):
        mean(np.ones((2, 2)))
