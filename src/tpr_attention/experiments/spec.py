"""A run is a value: all that decides a training, and nothing else."""

import hashlib
import json
import types
import typing
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from difflib import get_close_matches
from functools import cache, cached_property
from math import isfinite

__all__ = ["RunSpec", "SpecError", "check_option"]

Option = bool | int | float | str | None

LEAST = {"steps": 1, "batch": 1, "train_pairs": 1, "eval_pairs": 1, "factors": 2, "filler_dim": 2, "noise": 0}
MOST_NOISE = 1e6
WORLD = 5, 3  # factors and fillers, as the paper's
ADDED = ("factors", "filler_dim", "noise")  # after the first runs were stored

WORDS = {bool: "true or false", int: "a whole number", float: "a finite number", str: "a text"}


class SpecError(ValueError):
    """A spec that cannot be run; the message begins with the key."""


@dataclass(frozen=True)
class RunSpec:
    """One training: a task, a model, and how it is trained.

    Names of models, splits and interactions are checked when the run is prepared; here only what can be known without
    them.

    >>> spec = RunSpec(model="tpr", options={"num_heads": 8}, seed=3)
    >>> RunSpec.from_json(spec.to_json()) == spec
    True
    >>> spec.digest
    '361f7ac225e3'
    """

    # the model
    model: str = "tpr"
    options: Mapping[str, Option] = field(default_factory=dict)
    start_at_copy: bool = True
    # the task
    split: str = "square_red"
    interaction: str | None = None
    mixing: str = "normal"
    position_range: tuple[float, float] = (-1.0, 1.0)
    scale_angles: tuple[float, ...] | None = None
    azimuth: float = 0.7853981633974483
    interaction_action: bool = False
    target_of_tests: bool | None = None
    require_change: bool = False
    balance_actions: bool = True
    # the training
    seed: int = 0
    steps: int = 10_000
    batch: int = 100
    train_pairs: int = 50_000
    eval_pairs: int = 1_000
    learning_rate: float = 0.01
    loss_roles: str = "all"
    # another world than the paper's: random fillers
    factors: int | None = None
    filler_dim: int | None = None
    noise: float = 0.0

    def __post_init__(self) -> None:
        hints = _hints()
        for key in fields(self):
            object.__setattr__(self, key.name, _converted(key.name, getattr(self, key.name), hints[key.name]))
        for name, least in LEAST.items():
            if getattr(self, name) is not None and getattr(self, name) < least:
                raise SpecError(f"{name}: expected at least {least}, got {getattr(self, name)}")
        if self.noise > MOST_NOISE:
            raise SpecError(f"noise: expected at most {MOST_NOISE:g}, got {self.noise}")
        if not 0 <= self.seed < 2**63:
            raise SpecError(f"seed: expected a whole number from 0 to 2**63 - 1, got {self.seed}")
        if not self.learning_rate > 0:
            raise SpecError(f"learning_rate: expected a number above 0, got {self.learning_rate}")
        if self.loss_roles not in ("all", "factors"):
            raise SpecError(f"loss_roles: expected 'all' or 'factors', got {self.loss_roles!r}")
        if self.train_pairs < self.batch:
            raise SpecError(f"train_pairs: expected at least a batch of {self.batch}, got {self.train_pairs}")

    def __hash__(self) -> int:
        return hash(self.digest)

    def to_json(self) -> str:
        """Every field, in one line, always written the same way.

        Fields that earlier versions did not have are left out where they have their defaults, so that runs keep their
        names.
        """
        values = asdict(self) | {"options": dict(self.options)}
        new = [key.name for key in fields(self) if key.name in ADDED and values[key.name] == key.default]
        return json.dumps({key: values[key] for key in values if key not in new}, sort_keys=True, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "RunSpec":
        """The spec that `to_json` wrote."""
        found = json.loads(text)
        if not isinstance(found, dict):
            raise SpecError(f"spec: expected an object with keys, got {type(found).__name__}")
        return cls.of(found)

    @classmethod
    def of(cls, values: Mapping[str, object]) -> "RunSpec":
        """A spec from keys and values; keys that are left out have their defaults."""
        known = [key.name for key in fields(cls)]
        for key in values:
            if key not in known:
                near = get_close_matches(key, known, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise SpecError(f"{key}: no such key{hint}")
        hints = _hints()
        converted: dict[str, typing.Any] = {key: _converted(key, value, hints[key]) for key, value in values.items()}
        return cls(**converted)

    @property
    def world(self) -> tuple[int, int] | None:
        """The numbers of factors and of a filler's numbers in a world of random factors; None in the paper's.

        >>> RunSpec(factors=7).world
        (7, 3)
        """
        usual = self.factors is None and self.filler_dim is None
        return None if usual else (self.factors or WORLD[0], self.filler_dim or WORLD[1])

    @property
    def place(self) -> str:
        """The split, or the world of random factors, and the noise, in words.

        >>> RunSpec(split="scale_pos").place, RunSpec(factors=7, noise=0.1).place
        ('scale_pos', '7 factors of 3 numbers, noise 0.1')
        """
        words = self.split if self.world is None else "{} factors of {} numbers".format(*self.world)
        return f"{words}, noise {self.noise:g}" if self.noise else words

    @cached_property
    def digest(self) -> str:
        """The run's name: twelve hexadecimal digits of the SHA-256 of its JSON."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:12]


@cache
def _hints() -> dict[str, typing.Any]:
    return typing.get_type_hints(RunSpec)


def _converted(key: str, value: object, hint: object) -> object:
    """The value as this type, or an error that names the key."""
    if _is_union(hint):
        some = [kind for kind in typing.get_args(hint) if kind is not type(None)]
        if value is None and len(some) < len(typing.get_args(hint)):
            return None
        if len(some) == 1:
            return _converted(key, value, some[0])
        for kind in some:
            with suppress(SpecError):
                return _converted(key, value, kind)
        raise SpecError(f"{key}: expected {' or '.join(WORDS.get(kind, str(kind)) for kind in some)}, got {value!r}")
    if typing.get_origin(hint) is tuple:
        kinds = typing.get_args(hint)
        if not isinstance(value, list | tuple) or (Ellipsis not in kinds and len(value) != len(kinds)):
            many = "numbers" if Ellipsis in kinds else f"{len(kinds)} numbers"
            raise SpecError(f"{key}: expected a list of {many}, got {value!r}")
        return tuple(_converted(f"{key}[{k}]", entry, kinds[0]) for k, entry in enumerate(value))
    if typing.get_origin(hint) is Mapping:
        if not isinstance(value, Mapping):
            raise SpecError(f"{key}: expected keys and values, got {value!r}")
        return {str(name): _option(f"{key}.{name}", value[name]) for name in sorted(value, key=str)}
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
        return float(value)
    if hint is not float and type(value) is hint:
        return value
    raise SpecError(f"{key}: expected {WORDS.get(hint, str(hint))}, got {value!r}")  # type: ignore[call-overload]


def _is_union(hint: object) -> bool:
    return isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union


def check_option(name: str, value: Option, hint: object) -> None:
    """Refuse a model's option of the wrong type, where the type is one that an option can have.

    >>> check_option("num_heads", 2.5, int)
    Traceback (most recent call last):
    ...
    tpr_attention.experiments.spec.SpecError: options.num_heads: expected a whole number, got 2.5
    """
    kinds = typing.get_args(hint) if _is_union(hint) else (hint,)
    if all(kind in (*WORDS, type(None)) for kind in kinds):
        _converted(f"options.{name}", value, hint)


def _option(key: str, value: object) -> Option:
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise SpecError(f"{key}: expected a whole number of at most 64 bits, got {value}")
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and isfinite(value)):
        return value
    raise SpecError(f"{key}: expected a finite number, a text, true, false or null, got {value!r}")
