"""`tpr-attention compare`: what stored runs answer to the same examples, as a picture and in numbers."""

from collections.abc import Sequence

from rich.console import Console

from tpr_attention.commands.figures import FigureFile
from tpr_attention.console import table
from tpr_attention.imports import is_path, load
from tpr_attention.report.drawings.comparisons import ShownAnswers
from tpr_attention.report.style import number
from tpr_attention.runner.store import Store, StoreError
from tpr_attention.training.spec import RunSpec, SpecError

__all__ = ["command"]


def command(
    digests: Sequence[str], store: str, test: str | None, count: int, console: Console, figure: str | None = None
) -> int:
    """Draw some examples of a test, and show what each run answers."""
    file = None if figure is None else FigureFile(figure)
    runs = Store(store)
    specs = [runs.check(runs.find(digest)) for digest in digests]
    _expect_one_task(specs)
    from tpr_attention.runner.inference import answers_of  # only now: a wrong digest is told before torch is loaded

    found = answers_of(runs, dict(zip(_labels(specs), specs, strict=True)), test, count)
    if found.left_out:
        names = ", ".join(" ".join(label.split("\n")) for label in found.left_out)
        raise StoreError(f"{store}: the weights of {names} are not those of the model: of another version")
    if file is not None and found.target is None:
        raise SpecError(f"figure: task {specs[0].task.name!r} has no pictures")
    rows = [[label, *map(number, metrics.values())] for label, metrics in found.metrics.items()]
    metrics = next(iter(found.metrics.values()))
    table(f"{found.test}: means over {count} examples", ["run", *metrics], rows, console)
    if file is not None and found.target is not None:
        shown = ShownAnswers(found.examples, found.given, found.answers, found.target)

        draw = load("tpr_attention.report.drawings.pictures:image_grid")
        file.write(lambda: draw(shown.by_example()))
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
