"""`tpr-attention compare`: what stored runs answer to the same examples, as a picture and in numbers."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import UInt8
from rich.console import Console

from tpr_attention.commands.figures import FigureFile
from tpr_attention.console import table
from tpr_attention.imports import is_path, nearest
from tpr_attention.report.style import number
from tpr_attention.runner.store import Store
from tpr_attention.training.spec import RunSpec, SpecError

__all__ = ["command"]

WRONG = (255, 0, 200)  # where an answer differs from the target


def command(
    digests: Sequence[str], store: str, test: str | None, count: int, console: Console, figure: str | None = None
) -> int:
    """Draw some examples of a test, and show what each run answers."""
    file = None if figure is None else FigureFile(figure)
    runs = Store(store)
    specs = [runs.check(runs.find(digest)) for digest in digests]
    _expect_one_task(specs)
    import torch  # only now: a wrong digest is told before torch is loaded

    from tpr_attention.generators import named_generator
    from tpr_attention.models.build import build
    from tpr_attention.tasks.task import Pictures
    from tpr_attention.training.prepare import make_task

    task = make_task(specs[0].task, specs[0].seed)
    test = task.conditions[-1] if test is None else test
    if test not in task.conditions:
        raise SpecError(f"test: expected one of {list(task.conditions)}, got {test!r}{nearest(test, task.conditions)}")
    if file is not None and not isinstance(task, Pictures):
        raise SpecError(f"figure: task {specs[0].task.name!r} has no pictures")
    batch = task.draw(test, count, named_generator(specs[0].seed, f"examples/{test}"), torch.float32)
    pictures = {} if not isinstance(task, Pictures) else {n: p.numpy() for n, p in task.pictures(batch).items()}
    target, rows = pictures.pop("target", None), []
    for spec, label in zip(specs, _labels(specs), strict=True):
        model = build(spec.model.name, task, spec.seed, **spec.model.options)
        model.load_state_dict({name: torch.from_numpy(array) for name, array in runs.weights(spec.digest).items()})
        with torch.no_grad():
            output = model.eval()(*batch.inputs)
            found = task.measure(output, batch)
        rows.append([label, *(number(float(values.mean())) for values in found.values())])
        if isinstance(task, Pictures) and target is not None:
            answer = task.pictures(batch._replace(target=output))["target"].numpy()
            pictures[label] = _marked(answer, target)
    table(f"{test}: means over {count} examples", ["run", *found], rows, console)
    if file is not None and target is not None:
        from tpr_attention.report.drawings.pictures import image_grid

        columns, names = {**pictures, "target": target}, task.group_names
        kinds = [", ".join(names[name][int(of[row])] for name, of in batch.groups.items()) for row in range(count)]
        rows_of = {
            f"{row + 1}: {kind}": {part: images[row : row + 1] for part, images in columns.items()}
            for row, kind in enumerate(kinds)
        }
        file.write(lambda: image_grid(rows_of))
        console.print(f"as a picture: {figure}", markup=False, highlight=False, soft_wrap=True)
    return 0


def _expect_one_task(specs: Sequence[RunSpec]) -> None:
    for spec in specs:
        if is_path(spec.task.name) or is_path(spec.model.name):
            raise SpecError(f"run {spec.digest}: expected a task and a model of this package; nothing else is imported")
        if spec.task != specs[0].task:
            raise SpecError(f"run {spec.digest}: expected the task of run {specs[0].digest}, got another")


def _labels(specs: Sequence[RunSpec]) -> list[str]:
    """What differs between runs; digests where that is not enough."""
    keys = [{"model": spec.model.name, **spec.model.options, "seed": spec.seed} for spec in specs]
    names = dict.fromkeys(name for one in keys for name in one)
    differing = [name for name in names if len({str(one.get(name)) for one in keys}) > 1]
    labels = ["\n".join(_told(name, one[name]) for name in differing if name in one) for one in keys]
    return [
        label if label and labels.count(label) == 1 else spec.digest for label, spec in zip(labels, specs, strict=True)
    ]


def _told(name: str, value: object) -> str:
    """An option in a word or two: a name by itself, a switch or a number by what it is of."""
    if isinstance(value, bool):
        return f"{'' if value else 'no '}{name}".replace("_", " ")
    return value if isinstance(value, str) else f"{name} {value}".replace("_", " ")


def _marked(answer: UInt8[np.ndarray, "n h w 3"], target: UInt8[np.ndarray, "n h w 3"]) -> UInt8[np.ndarray, "n h w 3"]:
    """The answer, with pixels marked that are wrong after rounding."""
    answer = np.where(answer > 127, 255, 0).astype(np.uint8)
    wrong = (answer != np.where(target > 127, 255, 0)).any(-1, keepdims=True)
    return np.where(wrong, np.array(WRONG, np.uint8), answer)
