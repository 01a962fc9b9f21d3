"""Trained models that the explorer shows, from a store or from files of weights."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open

from tpr_attention.imports import is_path
from tpr_attention.runner.store import Store, StoreError
from tpr_attention.training.options import default_options
from tpr_attention.training.spec import RunSpec, SpecError

__all__ = ["Trained", "of_folder", "of_store"]


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model: its spec, its weights by name, and a label for people."""

    spec: RunSpec
    weights: Mapping[str, np.ndarray]
    label: str


def of_store(store: Store) -> tuple[list[Trained], list[str]]:
    """The runs of a store that can be shown, one seed of each kind, the lowest; and a sentence on each of the others.

    Left out are runs that diverged or cannot be read, and those whose task or model is a user's own: nothing of these
    is imported.
    """
    specs, left_out = store.readable()
    first: dict[str, RunSpec] = {}
    for digest, spec in specs.items():
        if is_path(spec.task.name) or is_path(spec.model.name):
            left_out.append(f"{digest}: the page does not know a task or model of your own")
        elif store.divergence(digest) is not None:
            left_out.append(f"{digest}: it diverged")
        else:
            kind = spec.with_seed(0).to_json()
            first[kind] = min(first.get(kind, spec), spec, key=lambda one: one.seed)
    return [Trained(spec, store.weights(spec.digest), label_of(spec)) for spec in first.values()], left_out


def of_folder(folder: Path) -> list[Trained]:
    """The models of all `*.safetensors` in a folder whose metadata have a spec, sorted by file name."""
    return [found for path in sorted(folder.glob("*.safetensors")) if (found := of_file(path)) is not None]


def of_file(path: Path) -> Trained | None:
    """The model of one file; None if its metadata have no spec."""
    try:
        with safe_open(path, framework="numpy") as file:
            written = (file.metadata() or {}).get("spec")
            if written is None:
                return None
            spec = RunSpec.from_json(written)
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, SpecError) as error:
        raise StoreError(f"{path}: cannot be read: {error}") from error
    return Trained(spec, weights, label_of(spec))


def label_of(spec: RunSpec) -> str:
    """The name of a model, and its options that are not the defaults.

    >>> label_of(RunSpec.of({"model": "tpr", "num_heads": 8}))
    'tpr, num heads 8'
    """
    usual = default_options("model", spec.model.name)
    options = {name: value for name, value in spec.model.options.items() if usual.get(name) != value}
    return ", ".join([spec.model.name, *(_told(name, value) for name, value in options.items())])


def _told(name: str, value: object) -> str:
    said = value if isinstance(value, str) else json.dumps(value)
    return f"{name} {said}".replace("_", " ")
