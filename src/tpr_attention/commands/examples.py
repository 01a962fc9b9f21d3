"""`tpr-attention examples`: what a task asks, in words and as a picture."""

import sys
from collections.abc import Sequence

from rich.console import Console

from tpr_attention.commands.figures import FigureFile
from tpr_attention.commands.keys import parse_line
from tpr_attention.console import table
from tpr_attention.training.spec import SpecError
from tpr_attention.training.sweep import sweep

__all__ = ["command"]


def command(changes: Sequence[str], count: int, console: Console, figure: str | None = None) -> int:
    """Show some examples of training and of each test."""
    file = None if figure is None else FigureFile(figure)
    sys.path.insert(0, "")  # what the user brings may lie in the folder the command is called from
    (spec, *others) = sweep({}, parse_line(changes))
    if others:
        raise SpecError("examples: expected one task, got several")
    import torch  # only now: a wrong key is told before torch is loaded

    from tpr_attention.generators import named_generator
    from tpr_attention.tasks.task import Pictures, Words
    from tpr_attention.training.prepare import make_task

    task = make_task(spec.task, spec.seed)
    batches = {
        condition: task.draw(condition, count, named_generator(spec.seed, f"examples/{condition}"), torch.float32)
        for condition in ("train", *task.conditions)
    }
    if file is not None and not isinstance(task, Pictures):
        raise SpecError(f"figure: task {spec.task.name!r} has no pictures")
    for condition, batch in batches.items():
        rows = (
            task.words(batch)
            if isinstance(task, Words)
            else [{"target": str(target)} for target in batch.target.tolist()]
        )
        numbered = [[str(place), *row.values()] for place, row in enumerate(rows, start=1)]
        table(condition, ["", *rows[0]], numbered, console)
    if file is not None and isinstance(task, Pictures):
        from tpr_attention.report.drawings.pictures import image_grid

        pictures = {condition: task.pictures(batch) for condition, batch in batches.items()}
        arrays = {
            condition: {part: images.numpy() for part, images in parts.items()} for condition, parts in pictures.items()
        }
        file.write(lambda: image_grid(arrays))
        console.print(f"as a picture: {figure}", markup=False, highlight=False, soft_wrap=True)
    return 0
