"""Checkpoints of trainings: the state of a group of runs, and its points so far.

A checkpoint is one file, `<store>/.checkpoints/<first run>-<step>-<SHA-256>.safetensors`, named by its checksum. The
previous one is deleted afterwards.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import nan
from pathlib import Path
from typing import NamedTuple

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from tpr_attention.runner.files import LINK, write_fault, write_file
from tpr_attention.runner.store import Store, StoreError
from tpr_attention.training.points import Point

__all__ = ["Checkpoint", "CheckpointInterval", "Checkpoints"]

SCHEMA = 2
ADVICE = "delete it to train its runs from the start"


class CheckpointInterval(NamedTuple):
    """How often checkpoints are written: after so many seconds or steps, whichever comes first."""

    seconds: float = 30.0
    steps: int | None = None


class Checkpoint(NamedTuple):
    """A group of runs at a step, with all that is needed to resume it.

    Args:
        seconds: How long the group took so far.
        training_seconds: Processor time of its steps so far; NaN if it is not known.
    """

    runs: tuple[str, ...]
    step: int
    state: Mapping[str, Tensor]
    points: tuple[Point, ...]
    seconds: float = 0.0
    training_seconds: float = 0.0


class Checkpoints:
    """The checkpoints of a store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.folder = store.path / ".checkpoints"

    def write(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint and delete the previous one of the same group."""
        fields = {name: value for name, value in checkpoint._asdict().items() if name != "state"}
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in checkpoint.state.items()}
        data = save(tensors, {"checkpoint": json.dumps({"schema": SCHEMA, **fields})})
        path = self.folder / f"{checkpoint.runs[0]}-{checkpoint.step}-{hashlib.sha256(data).hexdigest()}.safetensors"
        try:
            self.folder.mkdir(exist_ok=True)
            write_file(path, data)
        except OSError as error:
            raise StoreError(f"{path}: cannot be written: {write_fault(error, len(data))}") from error
        self.delete(checkpoint.runs, but=path)

    def find(self, runs: Iterable[str]) -> Checkpoint | None:
        """Find the checkpoint of a group that consists of these runs, or of those that are not stored.

        Partial files of these runs are deleted. Those of other groups may be in use by their processes, and stay.
        """
        runs = frozenset(runs)
        for partial in self.folder.glob(".*"):
            if partial.name[1:].partition("-")[0] in runs:
                partial.unlink(missing_ok=True)
        missing = self._missing(runs)
        for first in runs & {path.name.partition("-")[0] for path in self._files()}:
            checkpoint = _read(max(self._files(first), key=_step))
            if self._missing(checkpoint.runs) == missing and runs.issuperset(checkpoint.runs):
                return checkpoint
        return None

    def delete(self, runs: Sequence[str], but: Path | None = None) -> None:
        """Delete all checkpoints of a group, but one if it is given."""
        for path in self._files(runs[0]):
            if path != but:
                path.unlink(missing_ok=True)

    def discard(self, runs: Iterable[str]) -> None:
        """Delete checkpoints that hold one of these runs."""
        runs = frozenset(runs)
        for path in self._files():
            with suppress(StoreError):
                if path.name.partition("-")[0] in runs or runs.intersection(_read(path).runs):
                    path.unlink(missing_ok=True)

    def delete_stored(self) -> None:
        """Delete checkpoints of groups that are stored, left by processes that were killed in between."""
        for path in self._files():
            with suppress(StoreError):
                if path.name.partition("-")[0] in self.store and not self._missing(_read(path).runs):
                    path.unlink(missing_ok=True)

    def faults(self) -> Iterator[tuple[Path, str]]:
        """Check all checkpoints. Yields those that were changed or cannot be read, with the fault."""
        for path in self._files():
            try:
                _read(path)
            except StoreError as error:
                yield path, str(error).removeprefix(f"{path}: ")

    def _files(self, first: str | None = None) -> list[Path]:
        return sorted(self.folder.glob("[!.]*.safetensors" if first is None else f"{first}-*.safetensors"))

    def _missing(self, runs: Iterable[str]) -> frozenset[str]:
        return frozenset(run for run in runs if run not in self.store)


def _step(path: Path) -> int:
    part = path.name.split("-")[1]
    return int(part) if part.isdigit() else -1


def _read(path: Path) -> Checkpoint:
    if path.is_symlink():
        raise StoreError(f"{path}: {LINK}; {ADVICE}")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error
    if hashlib.sha256(data).hexdigest() != path.stem.rpartition("-")[2]:
        raise StoreError(f"{path}: changed since it was written: its SHA-256 differs; {ADVICE}")
    try:
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        fields = json.loads(header["__metadata__"]["checkpoint"])
        if fields["schema"] != SCHEMA:
            raise ValueError(f"written with schema {fields['schema']!r}, this version reads {SCHEMA}")
        points = tuple(Point(*rest, tuple(values)) for *rest, values in fields["points"])  # type: ignore[call-arg]
        times = fields["seconds"], fields.get("training_seconds", nan)  # the second is younger than this schema
        return Checkpoint(tuple(fields["runs"]), fields["step"], load(data), points, *times)
    except (ValueError, KeyError, TypeError, RecursionError, SafetensorError) as error:
        raise StoreError(f"{path}: not a checkpoint that can be read: {error}; {ADVICE}") from error
