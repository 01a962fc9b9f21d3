"""Figures of the front pages are drawn from the real functions, tables and weights."""

from importlib.util import module_from_spec, spec_from_file_location

import matplotlib.image
import numpy as np
import pytest
import torch

from tests.docs.test_pages import ROOT

FIGURES = ROOT / "docs" / "figures"


def script(name):
    spec = spec_from_file_location(name, FIGURES / f"{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def assert_alike(one, other):
    """The same picture, but for how letters are drawn by another version of a library."""
    first, second = matplotlib.image.imread(one), matplotlib.image.imread(other)
    assert first.shape == second.shape
    assert np.abs(first - second).mean() < 0.01


def test_the_strip_tells_what_the_functions_compute():
    strip = script("attention_strip")
    told = strip.story()
    assert told.weights.tolist() == [0, 1, 0]
    assert torch.equal(told.found, told.objects[1])
    assert [strip.FILLERS[int(one.argmax())] for one in (told.extracted, told.mapped)] == ["triangle", "square"]
    assert torch.equal(told.bound[1], told.mapped)
    assert not told.bound[0].any()


def test_the_stored_strip_is_the_one_that_is_drawn(tmp_path):
    script("attention_strip").main(tmp_path / "strip.png")
    assert_alike(tmp_path / "strip.png", FIGURES / "attention-strip.png")
    assert (FIGURES / "attention-strip.png").stat().st_size < 500_000


@pytest.mark.parametrize("name", ["result-map.png", "result-sequences.png"])
def test_the_stored_results_are_those_of_the_pages(name, tmp_path):
    results = script("results")
    results.write(name, tmp_path)
    assert_alike(tmp_path / name, FIGURES / name)
