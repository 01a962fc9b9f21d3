"""Figure 1 in the terminal, with torch alone."""

import subprocess
import sys

from tpr_attention import demo

LEAN = """
import importlib.abc, sys

EXTRAS = {"rich", "polars", "jsonargparse", "jinja2", "matplotlib", "plotly", "yaml", "filelock"}

class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in EXTRAS:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Blocked())
import runpy
runpy.run_module("tpr_attention.demo", run_name="__main__")
"""


def test_the_story_needs_no_extras():
    done = subprocess.run([sys.executable, "-c", LEAN], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == "\n".join(demo.story()).splitlines()


def test_the_story_has_every_stage_in_order():
    told = "\n".join(demo.story())
    parts = ["Objects", "M = sum_s", "Question", "1. Match", "2. Extract", "3. Map", "4. Bind", "Answer", "Try next"]
    places = [told.index(part) for part in parts]
    assert places == sorted(places)
    assert "weights: O_1 0, O_2 1, O_3 0" in told
    assert "the yellow object is a triangle." in told
    assert max(map(len, told.splitlines())) <= 120


def test_the_answer_is_computed(monkeypatch):
    """With other objects the answer is another."""
    monkeypatch.setattr(
        demo, "OBJECTS", (("disc", "yellow", "large"), ("triangle", "red", "small"), ("square", "green", "large"))
    )
    told = "\n".join(demo.story())
    assert "weights: O_1 1, O_2 0, O_3 0" in told
    assert "the yellow object is a disc." in told
