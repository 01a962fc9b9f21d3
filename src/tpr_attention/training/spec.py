"""A run is a value: all that decides a training, and nothing else."""

import functools
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from tpr_attention.imports import file_hash, is_path, nearest, source_hash
from tpr_attention.models import MODELS
from tpr_attention.tasks import TASKS
from tpr_attention.training.options import option_types, options_of
from tpr_attention.training.values import SpecError, convert

__all__ = [
    "ROUNDING",
    "Component",
    "RunSpec",
    "SpecError",
    "Training",
    "component_names",
    "full_key",
    "known_keys",
]

ROUNDING = 1e-10
"""Losses below this are rounding: they count as this where a logarithm is taken, and no axis goes lower."""

Count = Annotated[int, Meta(ge=1)]


class Component(Struct, frozen=True, forbid_unknown_fields=True):
    """A task or a model: a name of its table or an import path, and the options of its constructor."""

    name: str
    options: dict[str, Any] = {}


class Training(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a model is trained.

    Args:
        train_examples: How many examples are drawn for training, once; batches go through them in turn.
        test_examples: How many are drawn for each test.
        learning_rate: At the start; `schedule` says how it changes.
        device: Where tensors are; no part of what the run is.
    """

    steps: Count = 10_000
    batch_size: Count = 100
    train_examples: Count = 50_000
    test_examples: Count = 1_000
    learning_rate: Annotated[float, Meta(gt=0)] = 0.01
    schedule: Literal["cosine", "constant", "late-decay"] = "cosine"
    optimiser: Literal["adam", "sgd"] = "adam"
    device: str = "cpu"


class RunSpec(Struct, frozen=True, dict=True, forbid_unknown_fields=True):
    """One training: a task, a model, how it is trained, and the seed of all that is random.

    `RunSpec.of` makes one from keys and checks them; the constructor takes what is given.

    Args:
        sources: The hashes of a user's files that the run is made from: the modules of import paths, and data files.

    >>> spec = RunSpec.of({"model": "tpr", "num_heads": 8, "noise": 0.1, "seed": 3})
    >>> spec.model.options
    {'learn_ids': True, 'num_heads': 8, 'start_at_copy': True}
    >>> RunSpec.from_json(spec.to_json()) == spec
    True
    """

    task: Component
    model: Component
    training: Training = Training()
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 0
    sources: dict[str, str] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RunSpec) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def to_json(self) -> str:
        """Every field in one line, always written the same way; without the device, and without sources if none."""
        values = msgspec.to_builtins(self)
        del values["training"]["device"]
        if not self.sources:
            del values["sources"]
        return json.dumps(values, sort_keys=True, allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> "RunSpec":
        """Read what `to_json` wrote. Nothing is imported, and options are taken as they are."""
        try:
            return msgspec.json.decode(text, type=cls)
        except (msgspec.DecodeError, RecursionError) as error:
            raise SpecError(f"spec: {error}") from error

    @classmethod
    def of(cls, values: Mapping[str, object]) -> "RunSpec":
        """Make a spec from keys such as `training.steps` and `task.split`; a prefix may be left out if that is clear.

        Options are checked against the constructors' signatures, and those that are left out have their defaults.
        """
        task, model = component_names(values)
        given = _by_section(values, task, model)
        made = _component("task", task, given["task"]), _component("model", model, given["model"])
        training = convert("training.", given["training"], Training)
        return cls(*made, training, _seed(values.get("seed", 0)), _sources(made))

    def changed(self, changes: Mapping[str, object]) -> "RunSpec":
        """The same with other values for some keys; see `of`. Another task or model has its own options.

        >>> RunSpec.of({}).changed({"seed": 2, "steps": 10}).training.steps
        10
        """
        task, model = component_names({"task": self.task.name, "model": self.model.name, **changes})
        given = _by_section(changes, task, model)
        made = (
            _component("task", task, given["task"], self.task),
            _component("model", model, given["model"], self.model),
        )
        training = self.training
        if given["training"]:
            training = convert("training.", {**msgspec.to_builtins(training), **given["training"]}, Training)
        seed = _seed(changes["seed"]) if "seed" in changes else self.seed
        return RunSpec(*made, training, seed, _sources(made, self.sources))

    def with_seed(self, seed: int) -> "RunSpec":
        """The same with another seed."""
        return msgspec.structs.replace(self, seed=seed)

    def with_device(self, device: str) -> "RunSpec":
        """The same on another device."""
        return msgspec.structs.replace(self, training=msgspec.structs.replace(self.training, device=device))

    def without_sources(self) -> "RunSpec":
        """The same whatever the user's files contain."""
        return msgspec.structs.replace(self, sources={})

    def keys(self) -> dict[str, Any]:
        """All keys with their full names, as `of` takes them."""
        training = msgspec.to_builtins(self.training)
        return {
            "task": self.task.name,
            **{f"task.{name}": value for name, value in self.task.options.items()},
            "model": self.model.name,
            **{f"model.{name}": value for name, value in self.model.options.items()},
            **{f"training.{name}": value for name, value in training.items()},
            "seed": self.seed,
        }

    @functools.cached_property
    def digest(self) -> str:
        """The run's name: twelve hexadecimal digits of the SHA-256 of its JSON."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:12]


class _Seed(Struct, frozen=True):
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)]


def component_names(values: Mapping[str, object]) -> tuple[str, str]:
    """The names of the task and of the model; the first of their tables if not given."""
    names = values.get("task", next(iter(TASKS))), values.get("model", next(iter(MODELS)))
    for section, name in zip(("task", "model"), names, strict=True):
        if not isinstance(name, str):
            raise SpecError(f"{section}: expected a name or a path, got {name!r}")
    return str(names[0]), str(names[1])


def _component(section: str, name: str, given: Mapping[str, object], old: Component | None = None) -> Component:
    """A component with the options given; others are those of an old one of the same name, or the defaults."""
    if old is None or old.name != name:
        return Component(name, options_of(section, name, given))
    return Component(name, options_of(section, name, {**old.options, **given})) if given else old


def _seed(value: object) -> int:
    return int(convert("", {"seed": value}, _Seed).seed)


def _sources(components: Iterable[Component], known: Mapping[str, str] | None = None) -> dict[str, str]:
    """The hashes of the files that components name, sorted; those that are known are not read again."""
    known, found = known or {}, dict[str, str | None]()
    for component in components:
        for key, text in (("", component.name), *_texts("", component.options)):
            if is_path(text):
                found[text] = known.get(text) or source_hash(text)
            elif key == "path" or key.endswith("_path"):
                found[text] = known.get(text) or file_hash(text)
    return {name: found_hash for name, found_hash in sorted(found.items()) if found_hash is not None}


def _texts(key: str, value: object) -> Iterator[tuple[str, str]]:
    """All texts inside a value, each with the last key above it."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, Mapping):
        for name, entry in value.items():
            yield from _texts(name, entry)
    elif isinstance(value, list):
        for entry in value:
            yield from _texts(key, entry)


def _by_section(values: Mapping[str, object], task: str, model: str) -> dict[str, dict[str, object]]:
    """The options of the task and of the model, and the keys of training."""
    given: dict[str, dict[str, object]] = {"task": {}, "model": {}, "training": {}}
    for key, value in values.items():
        if key not in ("task", "model", "seed"):
            section, _, name = full_key(key, task, model).partition(".")
            given[section][name] = value
    return given


def full_key(key: str, task: str, model: str) -> str:
    """The full name of a key; an error tells full names if it is unknown or could be several.

    >>> full_key("steps", "composition", "tpr"), full_key("task.split", "composition", "tpr")
    ('training.steps', 'task.split')
    """
    head, _, rest = key.partition(".")
    if head in ("task", "model") and rest:
        return key
    known = known_keys(task, model)
    if key in known:
        return key
    if head == "training":
        raise SpecError(f"{key}: no such key{nearest(key, known)}")
    found = [one for one in known if one.partition(".")[2] == head]
    if len(found) > 1:
        raise SpecError(f"{key}: could be {' or '.join(found)}; write its full name")
    if not found:
        names = {one.rpartition(".")[2]: one for one in (*known, "task", "model", "seed")}
        near = get_close_matches(head, names, n=1)
        hint = f"; did you mean {names[near[0]]!r}?" if near else ""
        raise SpecError(f"{key}: no such key for task {task!r} and model {model!r}{hint}")
    if rest and found[0].startswith("training."):
        raise SpecError(f"{key}: no such key; did you mean {found[0]!r}?")
    return found[0] + key[len(head) :]


@functools.cache
def known_keys(task: str, model: str) -> tuple[str, ...]:
    """The full names of all keys of a spec with this task and model."""
    own = [
        f"{section}.{key}" for section, name in (("task", task), ("model", model)) for key in _options(section, name)
    ]
    return (*(f"training.{name}" for name in Training.__struct_fields__), *own)


def _options(section: str, name: str) -> list[str]:
    types, defaults, _ = option_types(section, name)
    return [key for key in types if key in defaults or is_path(name)]
