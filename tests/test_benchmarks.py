"""Benchmarks run; what they measure is not a test's business."""

import subprocess
import sys
from pathlib import Path

from tpr_attention.tasks.composition.pairs import CONDITIONS

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted(path.stem for path in ROOT.glob("benchmarks/*.py"))


def test_pairs_are_measured_for_every_condition(tmp_path):
    command = [sys.executable, "benchmarks/pairs.py", "--pairs", "500", "--out", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    report = (tmp_path / "pairs-threads1.md").read_text()
    for condition in CONDITIONS:
        assert f"\n| {condition} | " in report


def test_every_benchmark_can_be_imported():
    """A name that has moved is noticed without measuring anything."""
    code = f"import sys; sys.path.insert(0, 'benchmarks'); import {', '.join(SCRIPTS)}"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
