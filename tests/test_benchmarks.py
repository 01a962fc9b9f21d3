"""Benchmarks run; what they measure is not a test's business."""

import subprocess
import sys
from pathlib import Path

from tpr_attention.data import CONDITIONS

ROOT = Path(__file__).parents[1]


def test_pairs_are_measured_for_every_condition(tmp_path):
    command = [sys.executable, "benchmarks/pairs.py", "--pairs", "500", "--out", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    report = (tmp_path / "pairs-threads1.md").read_text()
    for condition in CONDITIONS:
        assert f"\n| {condition} | " in report
