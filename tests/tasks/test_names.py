"""Names of tasks, splits and interactions can be listed and checked without torch, and all of them lead somewhere."""

import subprocess
import sys

import pytest

from tpr_attention.imports import load, parameters
from tpr_attention.tasks import TASKS, composition

LISTING = """
import sys
from tpr_attention.imports import parameters
from tpr_attention.tasks import TASKS
from tpr_attention.tasks.composition import ALL_INTERACTIONS, SPLITS
assert all(parameters(path).types for path in TASKS.values()) and SPLITS and ALL_INTERACTIONS
sys.exit(", ".join({"torch", "numpy", "polars"} & set(sys.modules)) or 0)
"""


def test_names_are_listed_without_torch():
    done = subprocess.run([sys.executable, "-c", LISTING], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("path", TASKS.values(), ids=TASKS)
def test_constructors_have_a_default_for_every_option(path):
    found = parameters(path)
    assert found.types.keys() == found.defaults.keys()
    assert callable(load(path))


@pytest.mark.parametrize("name", composition.__all__)
def test_exported_names_are_there(name):
    assert getattr(composition, name) is not None
    assert name in dir(composition)


def test_other_names_are_not():
    with pytest.raises(AttributeError, match=r"'tpr_attention.tasks.composition' has no attribute 'Compositon'"):
        composition.Compositon  # noqa: B018
