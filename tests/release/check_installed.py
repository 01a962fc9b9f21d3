"""Install distributions as a user does, and use them: `python tests/release/check_installed.py FILE ...`.

Each file gets an environment of its own, made from nothing and deleted afterwards, in a folder outside the repository:
no file of the repository and no package of its environments is seen. Versions are those of `constraints.txt`. Torch is
installed each time, from the cache of pip where it has one. `make release-check` calls this.
"""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
IMPORTS = """
import pathlib, sys, tpr_attention
assert pathlib.Path(tpr_attention.__file__).is_relative_to(sys.prefix), tpr_attention.__file__
import torch
layer = tpr_attention.TPRAttention(num_roles=6, filler_dim=3, num_heads=4)
assert layer(torch.randn(2, 10, 6, 3)).shape == (2, 10, 6, 3)
print(tpr_attention.__version__)
"""


def call(*command: str | Path, folder: Path) -> str:
    """Run a command where nothing of the repository is in reach. Returns what it wrote."""
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(command, cwd=folder, env=surroundings, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def check(distribution: Path) -> None:
    """Install a wheel or an sdist, first without extras, then with the command line."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder / "environment", with_pip=True)
        programs = folder / "environment" / "bin"
        install = (programs / "python", "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt")
        call(*install, distribution, folder=folder)
        version = call(programs / "python", "-W", "error", "-c", IMPORTS, folder=folder).strip()
        if not distribution.name.startswith(f"tpr_attention-{version}"):
            sys.exit(f"{distribution.name}: has version {version}")
        story = call(programs / "python", "-W", "error", "-m", "tpr_attention.demo", folder=folder)
        call(*install, f"{distribution}[bench]", folder=folder)
        usage = call(programs / "tpr-attention", "--help", folder=folder)
        call(programs / "tpr-attention", "explore", folder=folder)  # needs files that are not Python
        if not story.strip() or "reproduce" not in usage:
            sys.exit(f"{distribution.name}: the demo or the command says nothing")
        call(programs / "python", "-m", "pip", "check", folder=folder)
    sys.stdout.write(f"{distribution.name}: installs, imports, tells the demo, and has its command\n")
    sys.stdout.flush()


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        check(Path(argument).resolve())
