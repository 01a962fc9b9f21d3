"""The benchmarks of training run; what they measure is not a test's business."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("name", "options", "rows"),
    [
        (
            "training",
            ["--together", "2", "--steps", "2", "--examples", "500", "--uncompiled"],
            ["tpr, 4 heads", "tpr, 8 heads", "classical, 4 heads", "classical, 8 heads", "resnet"],
        ),
        ("scaling", ["--worlds", "2"], ["number of factors | 5", "number of factors | 10"]),
    ],
)
def test_a_table_is_written(name, options, rows, tmp_path):
    command = [sys.executable, f"benchmarks/{name}.py", "--rounds", "1", "--out", str(tmp_path), *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    table = (tmp_path / f"{name}-threads1.md").read_text()
    assert [row for row in rows if f"\n| {row} | " in table] == rows
