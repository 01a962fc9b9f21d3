"""Where a result comes from: installed versions, machine and commit."""

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

__all__ = ["provenance"]

PACKAGES = ("tpr-attention", "torch", "numpy", "polars", "safetensors")


@cache
def provenance() -> dict[str, object]:
    """Versions, commit and machine; "unknown" where something cannot be found."""
    return {
        "commit": _git("rev-parse", "HEAD") or "unknown",
        "changed_since_commit": _git("status", "--porcelain", "--untracked-files=no") not in ("", None),
        "python": platform.python_version(),
        **{f"version_{name}": _version(name) for name in PACKAGES},
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count() or "unknown",
    }


def _git(*arguments: str) -> str | None:
    """The output of git for the working tree of this file, if it is in one."""
    here = Path(__file__).resolve()
    if "site-packages" in here.parts:
        return None
    command = ["git", *arguments]
    try:
        done = subprocess.run(command, cwd=here.parent, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown")
