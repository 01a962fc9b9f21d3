"""Trainings that were left: the state of a group, the points so far, and who belongs to it.

A checkpoint is one file, `<store>/.checkpoints/<first run>-<step>-<SHA-256>.safetensors`, and appears together with its
checksum. The one before is deleted after.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from tpr_attention.experiments.files import write_file
from tpr_attention.experiments.points import Point
from tpr_attention.experiments.store import Store, StoreError

__all__ = ["Checkpoint", "Checkpoints", "Every"]

SCHEMA = 1


class Every(NamedTuple):
    """How often a checkpoint is written: whichever comes first."""

    seconds: float = 30.0
    steps: int | None = None


class Checkpoint(NamedTuple):
    """A group of runs at a step: all that is needed to go on."""

    runs: tuple[str, ...]
    step: int
    state: Mapping[str, Tensor]
    points: tuple[Point, ...]
    seconds: float = 0.0


class Checkpoints:
    """The checkpoints of a store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.folder = store.path / ".checkpoints"

    def write(self, checkpoint: Checkpoint) -> None:
        """Keep a checkpoint instead of the one before."""
        about = {
            "schema": SCHEMA,
            "runs": checkpoint.runs,
            "step": checkpoint.step,
            "points": checkpoint.points,
            "seconds": checkpoint.seconds,
        }
        tensors = {name: tensor.contiguous() for name, tensor in checkpoint.state.items()}
        data = save(tensors, {"about": json.dumps(about)})
        name = f"{checkpoint.runs[0]}-{checkpoint.step}-{hashlib.sha256(data).hexdigest()}.safetensors"
        try:
            self.folder.mkdir(exist_ok=True)
            write_file(self.folder / name, data)
        except OSError as error:
            needed = f"{len(data) / 1e6:.1f} MB are needed"
            raise StoreError(f"{self.folder / name}: cannot be written: {error.strerror}; {needed}") from error
        for path in self._of(checkpoint.runs[0]):
            if path.name != name:
                path.unlink(missing_ok=True)

    def find(self, runs: Iterable[str]) -> Checkpoint | None:
        """The checkpoint of a group whose runs are these, or those of them that are not stored.

        What a killed process had not finished of them is deleted. Files of other groups are not touched: their
        processes may be writing them.
        """
        runs = frozenset(runs)
        for partial in self.folder.glob(".*"):
            if partial.name[1:].partition("-")[0] in runs:
                partial.unlink(missing_ok=True)
        wanted = frozenset(run for run in runs if run not in self.store)
        for first in runs & {path.name.partition("-")[0] for path in self._files()}:
            checkpoint = _read(max(self._of(first), key=_step))
            left = frozenset(run for run in checkpoint.runs if run not in self.store)
            if left == wanted and runs.issuperset(checkpoint.runs):
                return checkpoint
        return None

    def drop(self, runs: Sequence[str]) -> None:
        """Forget the checkpoint of a group that is stored."""
        for path in self._of(runs[0]):
            path.unlink(missing_ok=True)

    def faults(self) -> Iterator[tuple[Path, str]]:
        """Which checkpoints are not what was written, and what was left of others."""
        for path in self._files():
            try:
                _read(path)
            except StoreError as error:
                yield path, str(error).removeprefix(f"{path}: ")

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("[!.]*.safetensors"))

    def _of(self, first: str) -> list[Path]:
        return [path for path in self._files() if path.name.startswith(f"{first}-")]


def _step(path: Path) -> int:
    part = path.name.split("-")[1]
    return int(part) if part.isdigit() else -1


def _read(path: Path) -> Checkpoint:
    advice = "delete it to train its runs from the start"
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error
    if hashlib.sha256(data).hexdigest() != path.stem.rpartition("-")[2]:
        raise StoreError(f"{path}: changed since it was written: its SHA-256 is another; {advice}")
    try:
        length = int.from_bytes(data[:8], "little")
        about = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["about"])
        if about["schema"] != SCHEMA:
            raise StoreError(f"{path}: written with schema {about['schema']!r}, this version reads {SCHEMA}; {advice}")
        points = tuple(Point(run, step, name, tuple(losses), of) for run, step, name, losses, of in about["points"])
        return Checkpoint(tuple(about["runs"]), about["step"], load(data), points, about["seconds"])
    except (ValueError, KeyError, TypeError, SafetensorError) as error:
        raise StoreError(f"{path}: not a checkpoint: {error}; {advice}") from error
