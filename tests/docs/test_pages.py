"""Everything written is executed: every code cell of the documentation and every command."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import tpr_attention
from tpr_attention.arguments import COMMANDS, command_parser
from tpr_attention.commands.keys import parse_line
from tpr_attention.tasks import TASKS
from tpr_attention.training.sweep import sweep

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for path in ROOT.glob("docs/*.md") if "{code-cell}" in path.read_text())


def run(code, folder):
    """As users run it: an interpreter of its own, without the import hook of the tests."""
    script = folder / "page.py"
    script.write_text(code)
    return subprocess.run(
        [sys.executable, "-W", "error", script],
        cwd=ROOT / "docs",
        env=os.environ | {"MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_the_code_of_the_documentation_runs(page, tmp_path):
    cells = re.findall(r"```\{code-cell\}[^\n]*\n(.*?)```", page.read_text(), re.DOTALL)
    not_python = r"\A---\n.*?\n---\n|^(?::[\w-]+:|%)[^\n]*\n"  # options of the cell, and settings of the notebook
    code = [re.sub(not_python, "", cell, flags=re.MULTILINE | re.DOTALL) for cell in cells]
    assert code
    result = run("\n".join(code), tmp_path)
    assert result.returncode == 0, result.stderr


def test_decisions_are_numbered():
    """Each has a number of its own, in its name and in its title."""
    records = sorted(ROOT.glob("docs/decisions/0*.md"))
    assert [path.name[:4] for path in records] == [f"{number:04}" for number in range(1, len(records) + 1)]
    for path in records:
        assert path.read_text().startswith(f"# {path.name[:4]} ")


def test_the_commands_of_the_documents_exist():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for name in ("README.md", "CONTRIBUTING.md"):
        named = set(re.findall(r"(?:^|`)make ([a-z-]+)", (ROOT / name).read_text(), re.MULTILINE))
        assert named
        assert named <= targets


def lines_of_commands():
    """Every line of the documents that calls the command, without its comment and the file that it is written to."""
    for page in (ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))):
        text = re.sub(r"\\\n +", "", page.read_text()).replace("${SLURM_ARRAY_TASK_ID}", "1")
        for line in re.findall(r"^(?:srun |\.venv/bin/)?tpr-attention (.*)$", text, re.MULTILINE):
            yield page.name, re.sub(r" > [\w.]+", "", line)


def test_the_lines_of_the_documents_can_be_typed():
    """Commands and options exist, and so do keys but for those of what a reader brings."""
    seen = set()
    for page, line in lines_of_commands():
        words = shlex.split(line, comments=True)
        parsed = command_parser().parse_args(words)
        seen.add(parsed.subcommand)
        changes = parsed[parsed.subcommand].get("changes", [])
        if not any(":" in change for change in changes):
            assert sweep({}, parse_line(changes)), (page, line)
    assert seen == set(COMMANDS)


def test_the_names_of_the_package_are_in_the_reference():
    reference = (ROOT / "docs" / "api.md").read_text()
    chapter = reference.split("\n## tpr_attention\n")[1].split("\n## ")[0]
    listed = [name for line in chapter.splitlines() if line.startswith("- ") for name in re.findall(r"`(\w+)`", line)]
    assert sorted(listed) == sorted(tpr_attention.__all__)
    described = set(re.findall(r"^\.\. auto(?:function|class):: (?:[\w.]+\.)?(\w+)(?:\(\))?$", reference, re.MULTILINE))
    assert set(listed) - {"__version__"} <= described


def test_the_tasks_of_the_reference_are_all():
    entry = (ROOT / "docs" / "api.md").read_text().split(".. py:data:: TASKS")[1].split(".. ")[0]
    assert set(re.findall(r"`([\w-]+)`", entry)) == set(TASKS)


def letters_of(*packages):
    """The letters of the axes in the signatures of packages; axes with longer names say what they are."""
    sources = [path.read_text() for part in packages for path in ROOT.glob(f"src/tpr_attention/{part}/**/*.py")]
    shapes = [
        shape for text in sources for shape in re.findall(r'\b(?:Float|U?Int|Bool)\d*\[[\w.]+, "([^"]*)"\]', text)
    ]
    axes = {axis.lstrip("*").split("_")[0] for shape in shapes for axis in shape.split()}
    assert axes
    return {axis for axis in axes if re.fullmatch("[a-z]", axis)}


def test_the_letters_of_the_notation_are_those_of_the_signatures():
    chapter = (ROOT / "docs" / "notation.md").read_text().split("## Axes")[1].split("\n## ")[0]
    listed = set(re.findall(r"^\| `(\w)` \|", chapter, re.MULTILINE))
    assert letters_of("functional", "nn") == listed
    others = re.findall(r"^\| `(\w+)` \| (`.*?`) \| .* \|$", chapter, re.MULTILINE)
    for package in ("tasks", "models", "training", "report"):
        own = {letter for name, letters in others if name == package for letter in re.findall(r"`(\w)`", letters)}
        used = letters_of(package)
        assert own
        assert own <= used <= own | listed, package
