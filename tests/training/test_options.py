"""Options are checked against the constructors of tasks and models."""

import functools
import inspect
import operator
import subprocess
import sys
import typing
from collections.abc import Callable

import msgspec
import pytest

from tpr_attention.imports import load, parameters
from tpr_attention.models import MODELS
from tpr_attention.tasks import TASKS
from tpr_attention.training.options import default_options, option_types
from tpr_attention.training.spec import RunSpec

from .components import MODEL, TASK

OWN = {"task": TASK, "model": MODEL}


def test_entries_of_an_option_may_be_keys_of_their_own():
    law, factors = "tpr_attention.tasks.composition.laws:direction_of_sum", ["shape", "colour"]
    whole = RunSpec.of({"interaction": {"law": law, "factors": factors}})
    assert RunSpec.of({"interaction.law": law, "task.interaction.factors": factors}) == whole
    assert RunSpec.of({}).changed({"interaction.law": law, "interaction.factors": factors}) == whole
    assert RunSpec.of({"split.shape": "heart", "split.scale": 0.5}).task.options["split"] == {
        "scale": 0.5,
        "shape": "heart",
    }


def test_an_entry_overrules_only_itself_and_leaves_what_was_given():
    given = {"law": "a:b", "factors": ["shape", "colour"]}
    spec = RunSpec.of({"interaction": given}).changed({"interaction.law": "c:d"})
    assert spec.task.options["interaction"] == {"law": "c:d", "factors": ["shape", "colour"]}
    assert given == {"law": "a:b", "factors": ["shape", "colour"]}
    assert spec.changed({"interaction": None}).task.options["interaction"] is None


def test_options_of_a_class_by_path_are_those_of_its_constructor():
    spec = RunSpec.of({**OWN, "slope": 2, "kinds": ["x"], "law.of": [1, 2], "bias": False})
    assert spec.task.options == {
        "even": False,
        "kinds": ["x"],
        "law": {"of": [1, 2]},
        "mode": "plain",
        "size": 2,
        "slope": 2.0,
    }
    assert spec.model.options == {"bias": False, "size": 1}  # a dtype cannot be written


def test_a_class_that_takes_everything_takes_every_option():
    path = "tests.models.contestants:Plain"
    assert RunSpec.of({"model": path, "model.depth": 3}).model.options == {"depth": 3}


ROWS = [("task", name) for name in TASKS] + [("model", name) for name in MODELS]


@pytest.mark.parametrize(("section", "name"), ROWS)
def test_signatures_read_from_the_source_are_those_of_the_constructors(section, name):
    path = {"task": TASKS, "model": MODELS}[section][name]
    made, found = load(path), parameters(path)
    signature = inspect.signature(made)
    assert list(found.types) == list(signature.parameters)
    assert found.open == any(one.kind is one.VAR_KEYWORD for one in signature.parameters.values())
    stated = {key: one.default for key, one in signature.parameters.items() if one.default is not one.empty}
    assert found.defaults == stated
    assert [type(value) for value in found.defaults.values()] == [type(value) for value in stated.values()]
    hints = typing.get_type_hints(made.__init__ if inspect.isclass(made) else made)
    for key, kind in found.types.items():
        assert kind == _as_options(hints[key]), key


def _as_options(hint):
    """A type without the parts of a union that no option can have, such as functions."""
    parts = [part for part in (typing.get_args(hint) if _is_union(hint) else (hint,)) if _is_option(part)]
    return functools.reduce(operator.or_, parts) if parts else typing.Any


def _is_union(hint):
    return isinstance(hint, type(int | str)) or typing.get_origin(hint) is typing.Union


def _is_option(part):
    if typing.get_origin(part) is Callable:
        return False
    try:
        msgspec.json.Decoder(part)
    except (TypeError, NotImplementedError):
        return False
    return True


@pytest.mark.parametrize(("section", "name"), ROWS)
def test_every_option_has_a_default_that_is_checked_as_it_is_written(section, name):
    types, defaults, _ = option_types(section, name)
    assert set(default_options(section, name)) == set(defaults)
    for key in defaults:
        assert types[key] is not typing.Any, key


NO_TORCH = """
import sys
from tpr_attention.models import MODELS
from tpr_attention.tasks import TASKS
from tpr_attention.training.spec import RunSpec, SpecError
from tpr_attention.training.sweep import sweep
for task in TASKS:
    for model in MODELS:
        spec = RunSpec.of({"task": task, "model": model, "steps": 3})
        assert RunSpec.from_json(spec.to_json()).digest == spec.digest
assert len(sweep({"num_heads": [2, 4], "split": ["square_red", "scale_pos"], "seed": [0, 1]})) == 8
try:
    RunSpec.of({"num_head": 3})
except SpecError:
    pass
RunSpec.from_json('{"task": {"name": "torch.nn:Linear"}, "model": {"name": "torch.nn:Linear"}}')
sys.exit(", ".join({"torch", "numpy", "polars"} & set(sys.modules)) or 0)
"""


def test_specs_of_built_in_names_need_no_torch():
    done = subprocess.run([sys.executable, "-c", NO_TORCH], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
