"""Sprites are those of dSprites, bit for bit, and nothing in a file that claims to be dSprites is taken on trust."""

import csv
import hashlib
import zipfile
from dataclasses import dataclass, replace
from itertools import pairwise
from math import pi
from pathlib import Path

import numpy as np
import pytest
import torch

from tpr_attention.tasks.composition import sprites
from tpr_attention.tasks.composition.factors import dsprites
from tpr_attention.tasks.composition.sprites import colour, contact_sheet, read_official, render

ONES = torch.ones(2, 64, 64, dtype=torch.uint8)


def with_column(grid, which, **changes):
    columns = [replace(column, **changes) if column.name == which else column for column in grid.columns]
    return replace(grid, columns=tuple(columns))


def without_colour(grid):
    actions = {action: names for action, names in grid.actions.items() if action != "colour"}
    return replace(grid, columns=grid.columns[:-1], actions=actions)


@pytest.fixture(scope="module")
def frames():
    """Frames of the official data: their classes, their number of lit pixels and their hash."""
    with (Path(__file__).parent / "official_frames.csv").open() as file:
        rows = list(csv.DictReader(file))
    names = ("shape", "scale", "orientation", "pos_x", "pos_y")
    classes = torch.tensor([[int(row[name]) for name in names] for row in rows])
    return classes, [int(row["pixels_on"]) for row in rows], [row["sha256_of_packbits"] for row in rows]


def digests(images):
    return [hashlib.sha256(np.packbits(image).tobytes()).hexdigest() for image in images.numpy()]


def test_every_official_frame_is_drawn_bit_for_bit(frames):
    classes, pixels, hashes = frames
    images = render(without_colour(dsprites()).table(classes))
    assert len(images) == 206
    assert images.count_nonzero(dim=(1, 2)).tolist() == pixels
    assert digests(images) == hashes


def drawn_plainly(factors):
    """Every pixel of the canvas by the rules; in the heart are the points whose ray crosses its outline an odd time."""
    centre = torch.arange(64, dtype=torch.float64) + 0.5
    x, y = (factors.column(name).double()[:, None, None] for name in ("position_x", "position_y"))
    dx = centre - (16 + 32 * x / (factors.grid.sizes[3] - 1))
    dy = centre[:, None] - (16 + 32 * y / (factors.grid.sizes[4] - 1))
    t, s = factors.value("orientation")[:, None, None], factors.value("scale")[:, None, None]
    u, v = (t.cos() * dx - t.sin() * dy) / s, (t.sin() * dx + t.cos() * dy) / s
    square = (u.abs() < 9.598) & (v.abs() < 9.598)
    ellipse = (u / 12.766) ** 2 + (v / 7.214) ** 2 < 1
    t = 2 * pi * torch.arange(151, dtype=torch.float64) / 150
    across = 9.6 * t.sin() ** 3
    down = -0.6623 * (13 * t.cos() - 5 * (2 * t).cos() - 2 * (3 * t).cos() - (4 * t).cos()) - 1.44
    outline = torch.stack([across, down], -1).tolist()
    is_heart = factors.has("shape", "heart")
    u, v, heart = u[is_heart], v[is_heart], torch.zeros_like(square[is_heart])
    for (u_0, v_0), (u_1, v_1) in pairwise(outline):
        heart ^= ((v_0 <= v) != (v_1 <= v)) & (u < u_0 + (u_1 - u_0) * (v - v_0) / (v_1 - v_0))
    images = torch.where(factors.has("shape", "square")[:, None, None], square, ellipse)
    images[is_heart] = heart
    return images.byte()


def test_windows_and_the_two_lines_of_the_heart_give_what_the_rules_say(generator):
    factors = dsprites().sample(200, generator)
    factors.columns["scale"][:100] = 5  # the largest, which a window could cut off
    assert torch.equal(render(factors), drawn_plainly(factors))


def test_a_pixel_straight_below_the_point_of_the_heart_is_dark():
    grid = with_column(dsprites(), "position_x", values=tuple(map(float, range(65))))  # class 33 is in mid-pixel
    factors = grid.table(torch.tensor([[2, scale, 0, 33, 16, 0] for scale in range(6)]))
    assert torch.equal(render(factors), drawn_plainly(factors))


@pytest.mark.parametrize("position_range", [(0.0, 1.0), (-3.0, 40.0), (1e9, 1e9 + 1)])
def test_the_values_of_positions_do_not_matter(position_range, generator):
    factors = dsprites().sample(50, generator)
    assert torch.equal(render(dsprites(position_range).table(factors.classes)), render(factors))


def test_blocks_bound_the_work_and_change_nothing(monkeypatch, generator):
    factors = dsprites().sample(100, generator)
    images = render(factors)
    window, seen = sprites._window, []
    monkeypatch.setattr(sprites, "_window", lambda block, reach: seen.append(len(block)) or window(block, reach))
    monkeypatch.setattr(sprites, "BLOCK", 7)
    assert torch.equal(render(factors), images)
    assert (max(seen), sum(seen)) == (7, 100)
    for row in range(5):
        assert torch.equal(render(factors[row : row + 1]), images[row : row + 1])


def test_no_objects_give_no_images():
    factors = dsprites().rows(torch.arange(0))
    assert render(factors).shape == (0, 64, 64)
    assert colour(render(factors), factors).shape == (0, 64, 64, 3)


@pytest.mark.parametrize(
    ("column", "changes", "message"),
    [
        ("shape", {"labels": ("square", "ellipse", "star")}, r"shape: expected classes named \['square', .* 'star'\]"),
        ("shape", {"labels": ()}, r"shape: expected classes named .* got \[\]"),
        ("scale", {"values": (0.5, 1.1)}, r"scale: expected values above 0 and up to 1, got \[0.5, 1.1\]"),
        ("scale", {"values": (0.0, 1.0)}, "scale: expected values above 0"),
        ("position_y", {"name": "depth"}, "column: expected one of .* got 'position_y'"),
    ],
)
def test_factors_that_cannot_be_drawn_are_refused(column, changes, message):
    grid = with_column(replace(dsprites(), actions={"shape": ("shape",)}), column, **changes)
    with pytest.raises(ValueError, match=message):
        render(grid.rows(torch.arange(3)))


def test_shapes_are_found_by_name(generator):
    factors = dsprites().sample(30, generator)
    classes = factors.classes
    classes[:, 0] = (classes[:, 0] + 1) % 3
    turned = with_column(dsprites(), "shape", labels=("heart", "square", "ellipse"))
    assert torch.equal(render(turned.table(classes)), render(factors))


def test_colours_paint_the_sprite_and_leave_the_ground_black(generator):
    factors = dsprites().sample(30, generator)
    images = render(factors)
    paint = 255 * torch.eye(3, dtype=torch.uint8)[factors.column("colour")]
    assert torch.equal(colour(images, factors), images[..., None] * paint[:, None, None])


@pytest.mark.parametrize(
    ("images", "grid", "message"),
    [
        (ONES, without_colour(dsprites()), "column: expected one of .* got 'colour'"),
        (ONES, with_column(dsprites(), "colour", labels=()), r"colour: expected classes named \['red', .* got \[\]"),
        (ONES, with_column(dsprites(), "colour", labels=("red", "green", "pink")), "colour: expected .* got .*'pink'"),
        (ONES[:1], dsprites(), "images: expected one for each of 2 objects, got 1"),
        (ONES * 255, dsprites(), "images: expected numbers up to 1, got 255"),
    ],
)
def test_what_cannot_be_coloured_is_refused(images, grid, message):
    with pytest.raises(ValueError, match=message):
        colour(images, grid.rows(torch.arange(2)))


@pytest.mark.parametrize(("count", "lines", "gap"), [(7, 3, 0), (7, 3, 2), (6, 2, 5)])
@pytest.mark.parametrize("coloured", [False, True])
def test_a_contact_sheet_has_every_frame_in_its_place(coloured, count, lines, gap, generator):
    factors = dsprites().sample(count, generator)
    images = render(factors)
    frames = colour(images, factors) if coloured else (images * 255)[..., None].expand(-1, -1, -1, 3)
    sheet = contact_sheet(colour(images, factors) if coloured else images, columns=3, gap=gap)
    assert sheet.dtype == torch.uint8
    assert sheet.shape == (lines * 64 + (lines - 1) * gap, 3 * 64 + 2 * gap, 3)
    free = torch.ones(sheet.shape[:2], dtype=torch.bool)
    for k, frame in enumerate(frames):
        line, column = divmod(k, 3)
        place = (slice(line * (64 + gap), line * (64 + gap) + 64), slice(column * (64 + gap), column * (64 + gap) + 64))
        assert torch.equal(sheet[place], frame)
        free[place] = False
    assert free.any()
    assert (sheet[free] > 200).all()


@pytest.mark.parametrize(
    ("images", "columns", "gap", "error", "message"),
    [
        (ONES, 0, 2, ValueError, "columns: expected at least 1, got 0"),
        (ONES, 1, -1, ValueError, "gap: expected at least 0, got -1"),
        (ONES[:0], 1, 2, ValueError, r"images: expected one or more, .* got \[0, 64, 64\]"),
        (ONES[0], 1, 2, ValueError, r"images: expected one or more, .* got \[64, 64\]"),
        (ONES[..., None], 1, 2, ValueError, r"images: expected one or more, .* got \[2, 64, 64, 1\]"),
        (ONES * 255, 1, 2, ValueError, "images: expected numbers up to 1, got 255"),
        (torch.ones(2, 64, 64, 3), 1, 2, TypeError, "images: expected torch.uint8, got torch.float32"),
    ],
)
def test_a_contact_sheet_that_cannot_be_is_refused(images, columns, gap, error, message, as_users_run_it):
    with pytest.raises(error, match=message):
        contact_sheet(images, columns, gap)


@dataclass
class Payload:
    """Whoever unpickles this writes a file."""

    path: Path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.fixture(scope="module")
def latents():
    """The official table, from its description: white only, and the last column changes fastest."""
    classes = np.ascontiguousarray(np.indices((1, 3, 6, 40, 32, 32)).reshape(6, -1).T)
    position = np.linspace(0, 1, 32)
    tables = [np.ones(1), np.array([1, 2, 3]), np.linspace(0.5, 1, 6), np.linspace(0, 2 * pi, 40), position, position]
    values = np.stack([table[column] for table, column in zip(tables, classes.T, strict=True)], -1)
    return {"latents_classes": classes, "latents_values": values}


@pytest.fixture(scope="module")
def official(latents, tmp_path_factory):
    """A file as the official one. Its metadata is a pickle; so are its images, since they are not to be read either."""
    path = tmp_path_factory.mktemp("official") / "dsprites.npz"
    payload = np.array([Payload(path.with_name("written"))])
    np.savez_compressed(path, metadata=payload, imgs=payload, **latents)
    return path


def test_the_official_file_gives_its_objects_in_its_order(official, frames):
    factors = read_official(str(official))
    assert factors.grid == without_colour(dsprites(position_range=(0.0, 1.0)))
    assert len(factors) == 737280
    classes, _, hashes = frames
    shape, scale, orientation, x, y = classes.T
    assert digests(render(factors[(((shape * 6 + scale) * 40 + orientation) * 32 + x) * 32 + y])) == hashes


def test_no_pickle_is_run(official, tmp_path):
    pickled = tmp_path / "file.npz"
    np.savez(pickled, latents_classes=np.array([[Payload(tmp_path / "written")] * 6]))
    read_official(official)
    with pytest.raises(ValueError, match=r"expected the field latents_classes .* int64 .* got object \[1, 6\]"):
        read_official(pickled)
    for path, field in ((official, "metadata"), (pickled, "latents_classes")):
        assert not path.with_name("written").exists()
        np.load(path, allow_pickle=True)[field]
        assert path.with_name("written").exists(), "the payload of this test does nothing"


@pytest.mark.parametrize(
    ("field", "entry", "wrong", "message"),
    [
        ("latents_classes", (5, 5), 6, r"\[0, 0, 0, 0, 0, 5\] in row 5, got \[0, 0, 0, 0, 0, 6\]"),
        ("latents_classes", (0, 0), -(2**63), r"in row 0, got \[-9223372036854775808, 0"),
        ("latents_values", (737279, 3), 0.0, r"6.283185307179586, 1.0, 1.0\] in row 737279, got \[1.0, 3.0, 1.0, 0.0,"),
        ("latents_values", (1, 5), 1 / 31 + 1e-8, "in row 1, got"),
        ("latents_values", (2, 0), np.nan, "in row 2, got .nan"),
    ],
)
def test_another_table_is_refused(field, entry, wrong, message, latents, tmp_path):
    changed = {name: table.copy() for name, table in latents.items()}
    changed[field][entry] = wrong
    np.savez(tmp_path / "file.npz", **changed)
    with pytest.raises(ValueError, match=f"file.npz: {field}: expected .*{message}"):
        read_official(tmp_path / "file.npz")


def test_the_last_digits_of_values_do_not_matter(latents, tmp_path):
    np.savez(tmp_path / "file.npz", **latents | {"latents_values": latents["latents_values"] + 1e-12})
    assert len(read_official(tmp_path / "file.npz")) == 737280


@pytest.mark.parametrize("missing", ["latents_classes", "latents_values"])
def test_a_missing_field_is_named(missing, latents, tmp_path):
    np.savez(tmp_path / "file.npz", **{name: table for name, table in latents.items() if name != missing})
    with pytest.raises(ValueError, match=f"file.npz: expected the field {missing} .*no item named '{missing}.npy'"):
        read_official(tmp_path / "file.npz")


@pytest.mark.parametrize(("dtype", "rows"), [("int32", 737280), ("float64", 737280), ("int64", 10), ("int64", 10**15)])
def test_another_dtype_or_shape_is_refused_before_it_is_read(dtype, rows, tmp_path):
    header = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": (rows, 6)}
    with zipfile.ZipFile(tmp_path / "file.npz", "w") as archive, archive.open("latents_classes.npy", "w") as member:
        np.lib.format.write_array_header_1_0(member, header)
    message = rf"file.npz: expected the field latents_classes .* int64 \[737280, 6\].* got {dtype} \[{rows}, 6\]"
    with pytest.raises(ValueError, match=message):
        read_official(tmp_path / "file.npz")


def test_damaged_files_are_refused(official, tmp_path):
    whole = official.read_bytes()
    with zipfile.ZipFile(official) as archive:
        start = archive.getinfo("latents_classes.npy").header_offset
    damaged = bytearray(whole)
    damaged[start + 3000] ^= 255
    for content in (b"", b"not an archive", whole[: len(whole) // 2], whole[:-1], bytes(damaged)):
        (tmp_path / "file.npz").write_bytes(content)
        with pytest.raises(ValueError, match=r"file.npz: expected the field latents_classes of the official"):
            read_official(tmp_path / "file.npz")


def test_no_file_is_refused(tmp_path):
    for path in (tmp_path / "absent.npz", tmp_path):
        with pytest.raises(FileNotFoundError, match=f"{path}: expected the official dSprites file"):
            read_official(path)
