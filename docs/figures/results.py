"""Draw the three results of the README from what is stored in this documentation.

`python docs/figures/results.py` writes `result-map.png`, `result-sequences.png` and `result-pixels.png` beside this
file. The first two read the tables of `docs/map.md` and `docs/recall.md`; the third asks the trained model of
`docs/models`.
"""

import re
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from matplotlib.patches import Patch, Rectangle
from safetensors import safe_open

from tpr_attention import RunSpec, build, named_generator
from tpr_attention.training.prepare import make_task

DOCS = Path(__file__).parents[1]
TPR, RESNET, INK, FAINT = "#e07b82", "#7fa3e0", "#1f2933", "#66727f"
STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#9aa5b1",
    "axes.titlesize": 11,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def table_after(page: str, words: str) -> list[list[str]]:
    """Cells of the first table after some words of a page, with its header as the first row."""
    rows = re.search(r"^\|.*?(?=\n\n|\Z)", page.split(words, 1)[1], re.MULTILINE | re.DOTALL)[0].splitlines()
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in (rows[0], *rows[2:])]


def draw_map() -> plt.Figure:
    """Which of the paper's models has the lowest loss, for each interaction, test and number of training pairs."""
    header, *rows = table_after(
        (DOCS / "map.md").read_text(),
        "The same as a table: who is lowest, and by what factor: the paper's three models.",
    )
    sizes = [name.split()[0] for name in header[3:]]
    titles = {
        "none": "independent factors",
        "scale_pos": "numerical interaction",
        "shape_col": "categorical interaction",
    }
    figure, axes = plt.subplots(1, 3, figsize=(10.4, 3.1), layout="constrained", sharey=True)
    for ax, (interaction, title) in zip(axes, titles.items(), strict=True):
        cells = [row for row in rows if row[0] == interaction]
        for y, row in enumerate(cells):
            for x, cell in enumerate(row[3:]):
                colour = TPR if cell.startswith("tpr") else RESNET
                hatch = "////" if "not solvable" in cell else None
                alpha = 0.4 if "tie" in cell else 1.0
                style = {"facecolor": (*plt.matplotlib.colors.to_rgb(colour), alpha), "hatch": hatch}
                ax.add_patch(Rectangle((x, y), 1, 1, edgecolor="white", linewidth=1.2, **style))
        ax.set(xlim=(0, len(sizes)), ylim=(len(cells), 0), title=title)
        ax.set_xticks([x + 0.5 for x in range(len(sizes))], [size.replace(",000", "k") for size in sizes])
        ax.set_yticks([1.5, 4.5, 7.5], ["scale + place", "square + place", "square + red"])
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
    axes[0].set_ylabel("held out (three tests each)")
    axes[1].set_xlabel("training pairs")
    marks = [
        Patch(facecolor=TPR, label="TPR-Attention has the lowest loss"),
        Patch(facecolor=RESNET, label="ResNet has the lowest loss"),
        Patch(facecolor="#d9dde2", label="pale: a tie"),
        Patch(facecolor="#d9dde2", edgecolor="white", hatch="////", label="cannot be known"),
    ]
    figure.legend(handles=marks, loc="outside lower center", ncols=4, frameon=False, handlelength=1.4)
    return figure


LOOKS = {
    "TPR-Attention": {"color": "#c81e3a", "marker": "o", "linewidth": 2.6, "zorder": 3},
    "softmax attention": {"color": "#a86f00", "marker": "s", "linestyle": "--", "dashes": (5, 2)},
    "linear attention": {"color": "#2563c4", "marker": "^", "linestyle": "--", "dashes": (6, 2, 1, 2)},
    "delta rule": {"color": "#168a5b", "marker": "D", "linestyle": "--", "dashes": (2, 1.5)},
    "DPFP-3": {"color": "#3d3a8c", "marker": ">", "linestyle": "--", "dashes": (9, 2)},
}


def value(cell: str) -> float:
    return float(cell.split()[0])


def draw_sequences() -> plt.Figure:
    """Recall of new pairings in longer sequences, and loss by number of pairs, over memories."""
    page = (DOCS / "recall.md").read_text()
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.4, 3.0), layout="constrained")
    _, *rows = table_after(page, "Compound keys: accuracy at the end of training.")
    found = {row[0].replace(", two matches, sum", ""): [100 * value(cell) for cell in row[4:7]] for row in rows}
    for name in ("softmax attention", "TPR-Attention", "linear attention", "delta rule"):
        left.plot(range(3), found[name], label=name, **LOOKS[name])
    left.set(title="new pairings of keys, 16 pairs in training", ylabel="right values (%)", xlabel="pairs in the test")
    left.set_xticks(range(3), ["16", "64", "256"])
    left.set_ylim(0, 106)

    _, *rows = table_after(page, "Associative retrieval, every key once: final loss by number of pairs.")
    for name in ("softmax attention", "TPR-Attention", "linear attention", "DPFP-3"):
        stored = name.replace("TPR-Attention", "TPR-Attention, 2 x 32")
        points = [(int(row[0]), value(row[2])) for row in rows if row[1] == stored]
        right.plot(*zip(*points, strict=True), label=name, **LOOKS[name])
    right.set(title="every key once", ylabel="loss", xlabel="pairs in a sequence")
    lines = dict(zip(*reversed(left.get_legend_handles_labels()), strict=True))
    lines |= dict(zip(*reversed(right.get_legend_handles_labels()), strict=True))
    figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=5, frameon=False)
    return figure


def trained_model() -> tuple[object, torch.nn.Module]:
    """The task and the model of `docs/models/pixels.safetensors`, by the spec that is stored with the weights."""
    with safe_open(DOCS / "models" / "pixels.safetensors", "pt") as file:
        spec = RunSpec.from_json(file.metadata()["spec"])
        weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    task = make_task(spec.task, spec.seed)
    model = build(spec.model.name, task, **dict(spec.model.options)).eval()
    model.load_state_dict(weights)
    return task, model


def draw_pixels(count: int = 8) -> plt.Figure:
    """Answers to held-out combinations as images: each column is a reference, a transform and the model's answer."""
    task, model = trained_model()
    batch = task.draw("square_pos.ood_composition", count, named_generator(0, "readme"), torch.float32)
    with torch.no_grad():
        answers = model(*batch.inputs).clamp(0, 1)
    wrong = ((answers - batch.target).abs() > 0.5).any(1, keepdim=True)
    marked = torch.where(wrong, torch.tensor([1.0, 0.0, 0.8])[:, None, None], answers)
    names = task.group_names["action"]
    actions = [names[one] for one in batch.groups["action"].tolist()]
    figure, axes = plt.subplots(3, count, figsize=(10.4, 4.0), layout="constrained")
    rows = {"reference": batch.inputs[0], "transform": batch.inputs[1], "answer": marked}
    for line, (title, images) in zip(axes, rows.items(), strict=True):
        for column, (ax, image) in enumerate(zip(line, images, strict=True)):
            ax.imshow(image.permute(1, 2, 0).numpy())
            ax.set_xticks([])
            ax.set_yticks([])
            ax.spines[:].set_visible(False)
            if title == "reference":
                ax.set_title(f"take {actions[column]}", fontsize=9.5)
        line[0].set_ylabel(title, fontsize=11)
    return figure


FIGURES = {"result-map.png": draw_map, "result-sequences.png": draw_sequences, "result-pixels.png": draw_pixels}


def write(name: str, folder: Path) -> None:
    with plt.rc_context(STYLE):
        FIGURES[name]().savefig(folder / name, dpi=130, facecolor="white", metadata={"Software": None})


if __name__ == "__main__":
    for name in FIGURES:
        write(name, Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
