"""The arithmetic of the room "Pixels" against torch: frames, encoder, composition, decoder, clean-up memory."""

import zlib
from base64 import b64decode
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tpr_attention.explorer.packing import pack
from tpr_attention.explorer.page import write_page
from tpr_attention.explorer.rooms import images
from tpr_attention.explorer.trained import of_file
from tpr_attention.functional.images.phases import moved, spectrum
from tpr_attention.functional.images.splines import read_splines
from tpr_attention.generators import named_generator
from tpr_attention.models.build import build
from tpr_attention.nn.images.poses import Pose, own_frame
from tpr_attention.tasks.composition.factors import substitute
from tpr_attention.tasks.images.composition import ImageComposition
from tpr_attention.tasks.images.frames import coloured_grid, draw_frames, draw_masks, white_grid
from tpr_attention.tasks.images.metrics import measure_images

PIXELS = Path(__file__).parents[2] / "docs" / "models" / "pixels.safetensors"
MOST_BYTES = 2_400_000
"""What this room may take of a page of 3 MB."""


@pytest.fixture(scope="module")
def trained():
    found = of_file(PIXELS)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def data(trained):
    found = images.data([trained])
    assert found is not None
    return found


@pytest.fixture(scope="module")
def task(trained):
    return ImageComposition(**trained.spec.task.options)


@pytest.fixture(scope="module")
def model(trained, task):
    """The model with the weights of the file, in float64."""
    made = build("images-composer", task, **trained.spec.model.options).eval().double()
    made.load_state_dict({name: torch.from_numpy(array).double() for name, array in trained.weights.items()})
    return made


@pytest.fixture(scope="module")
def page(engine, data):
    """The engine with the unpacked data of the room as `data`, and its model as `model`."""
    engine.run("(globalThis.data = given, globalThis.model = imageModel(given.model), 0)", given=data)
    return engine


def _objects(model, task, count, name):
    """Objects as the encoder reads them, and as the layer composes them."""
    batch = task.draw("in_distribution", count, named_generator(0, name), torch.float64)
    with torch.no_grad():
        return model.composed(*batch.inputs)[0]


@pytest.mark.parametrize("grid", [coloured_grid(9), white_grid(40)], ids=["coloured", "white"])
def test_frames_are_those_of_dsprites(engine, grid):
    factors = grid.sample(400, named_generator(0, "frames"))
    drawn = engine.run(
        "classes.map((one) => frameMask(grid, one).join(''))", grid=images._grid(grid), classes=factors.classes.tolist()
    )
    assert drawn == ["".join(map(str, mask.flatten().tolist())) for mask in draw_masks(factors)]


def test_colours_are_channels(page, task):
    factors = task.grid.sample(6, named_generator(0, "colours"))
    for row, frame in zip(factors.classes.tolist(), draw_frames(factors, torch.float64), strict=True):
        drawn = page.run("frameImage(frameMask(data.grid, classes), classes[5])", classes=row)
        assert torch.equal(torch.tensor(drawn, dtype=torch.float64), frame.flatten())


def test_waves_and_phases(engine):
    generator = named_generator(0, "waves")
    mask = torch.rand(12, 12, generator=generator, dtype=torch.float64)
    angles = torch.randn(2, generator=generator, dtype=torch.float64)
    wanted = moved(spectrum(mask, 4), angles)
    found = engine.run(
        "movedWaves(maskSpectrum(mask, 12, 4), angles, 4)", mask=mask.flatten().tolist(), angles=angles.tolist()
    )
    np.testing.assert_allclose(found["re"], wanted.real.flatten(), atol=1e-10)
    np.testing.assert_allclose(found["im"], wanted.imag.flatten(), atol=1e-10)


@pytest.mark.parametrize("log_scale", [-3.0, -0.2, 0.7, 3.0])  # far beyond the border, and within
@pytest.mark.parametrize("reader", ["bilinearReader", "splineReader"])
def test_templates_are_read_as_torch_reads_them(engine, reader, log_scale):
    generator = named_generator(0, "templates")
    template = torch.randn(9, 9, generator=generator, dtype=torch.float64)
    turn = torch.rand((), generator=generator, dtype=torch.float64) * 6
    centre = torch.rand(2, generator=generator, dtype=torch.float64) * 16
    direction = torch.stack([turn.cos(), turn.sin()])
    pose = Pose(centre[None], direction[None], torch.tensor([log_scale], dtype=torch.float64))
    cells = own_frame(pose, 16, 5.0)
    wanted = {
        "bilinearReader": lambda: F.grid_sample(template[None, None], cells, "bilinear", "border", align_corners=True),
        "splineReader": lambda: read_splines(template[None], torch.zeros(256, dtype=torch.long), cells.flatten(0, 2)),
    }[reader]()
    found = engine.run(
        f"fieldInFrame({reader}(template.data, 9), pose, 16, 5)",
        template=template,
        pose={"centre": centre.tolist(), "direction": direction.tolist(), "logScale": log_scale},
    )
    np.testing.assert_allclose(found, wanted.flatten(), atol=1e-10)


def test_encoder(page, model, task):
    frames = draw_frames(task.grid.sample(5, named_generator(0, "encoder")), torch.float64)
    noise = torch.rand(1, 3, 64, 64, generator=named_generator(0, "noise"), dtype=torch.float64)
    frames = torch.cat([frames, torch.zeros(1, 3, 64, 64).double(), noise])  # nothing, and noise
    with torch.no_grad():
        wanted = model.encoder.inspect(frames)
    for k, frame in enumerate(frames):
        found = page.run("model.encode(Float64Array.from(image))", image=frame.flatten().tolist())
        np.testing.assert_allclose(found["object"], wanted.objects[k], atol=1e-5)
        np.testing.assert_allclose(found["angles"], wanted.angles[k], atol=1e-5)
        np.testing.assert_allclose(found["colour"], wanted.colour[k], atol=1e-5)


def test_composition(page, model):
    generator = named_generator(0, "composition")
    one, other = torch.randn(2, 5, 8, generator=generator, dtype=torch.float64)
    for action in range(5):
        with torch.no_grad():
            wanted = model.compose(one[None], other[None], torch.eye(5, dtype=torch.float64)[action][None])[0]
        found = page.run("model.compose(one, other, action)", one=one, other=other, action=action)
        np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_decoder(page, model, task):
    any_objects = torch.randn(2, 5, 8, generator=named_generator(0, "objects"), dtype=torch.float64)
    objects = torch.cat([_objects(model, task, 5, "decoder"), any_objects])
    with torch.no_grad():
        wanted, pose = model.decoder(objects), model.decoder.pose(objects)
    for k, obj in enumerate(objects):
        np.testing.assert_allclose(page.run("model.drawFillers(o)", o=obj), wanted[k].flatten(), atol=1e-5)
        found = page.run("model.pose(o)", o=obj)
        np.testing.assert_allclose(found["centre"], pose.centre[k], atol=1e-5)
        np.testing.assert_allclose(found["direction"], pose.direction[k], atol=1e-5)
        np.testing.assert_allclose(found["logScale"], pose.log_scale[k], atol=1e-5)


def test_clean_up_memory_reads_the_same_codes_and_draws_the_same_pixels(page, model, task):
    objects = _objects(model, task, 400, "memory")
    codes = model.memory.read(objects, model.decoder)
    assert page.run("objects.map((one) => model.readCodes(one))", objects=list(objects)) == codes.tolist()
    drawn = page.run(
        "codes.map((one) => [...model.drawCodes(one)].map((p) => Number(p > 0.5)).join(''))", codes=codes.tolist()
    )
    wanted = (model.memory.draw(codes) > 0.5).int().flatten(1)
    assert drawn == ["".join(map(str, row)) for row in wanted.tolist()]


def test_cut_templates_hardly_change_how_likely_a_pixel_is(page, model, task):
    codes = model.memory.read(_objects(model, task, 20, "cut"), model.decoder)
    for row, wanted in zip(codes.tolist(), model.memory.draw(codes), strict=True):
        np.testing.assert_allclose(page.run("model.drawCodes(codes)", codes=row), wanted.flatten(), atol=2e-3)


def test_view_is_what_the_model_answers(page, trained, task):
    """In float32, as models are trained and measured: wrong pixels are counted after rounding, which allows for it."""
    model = build("images-composer", task, **trained.spec.model.options).eval()
    model.load_state_dict({name: torch.from_numpy(array).float() for name, array in trained.weights.items()})
    grid = task.grid
    first, second = (grid.sample(40, named_generator(0, name)) for name in ("first", "second"))
    action = torch.arange(40) % 5
    target = substitute(first, second, action)
    with torch.no_grad():
        answers = model(draw_frames(first), draw_frames(second), torch.eye(5)[action])
    measured = measure_images(answers, draw_frames(target))
    for k in range(40):
        state = {"reference": first.classes[k].tolist(), "transform": second.classes[k].tolist()}
        view = page.run(
            "{ const v = imageView({ ...imageDefaults(data), ...given }, data);"
            " return { count: v.answers[1].count, iou: v.answers[1].iou, heldOut: v.heldOut, classes: v.classes }; }",
            given={**state, "action": int(action[k])},
        )
        assert view["classes"] == target.classes[k].tolist()
        assert view["count"] == measured["wrong_pixels"][k]
        assert view["iou"] == pytest.approx(float(measured["iou"][k]), abs=1e-6)
        assert bool(view["heldOut"]) == bool(task.held_out(target)[k])


def test_exchange_by_hand(page, model, task):
    first, second = (task.grid.sample(1, named_generator(0, name)) for name in ("one", "other"))
    with torch.no_grad():
        one, other = (model.encoder(draw_frames(factors, torch.float64))[0] for factors in (first, second))
    wanted = one.clone()
    wanted[[0, 3]] = other[[0, 3]]
    given = {"reference": first.classes[0].tolist(), "transform": second.classes[0].tolist()}
    found = page.run(
        "imageView({ ...imageDefaults(data), ...given, how: 'hand', taken: [0, 3] }, data).object", given=given
    )
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_links_keep_drawings(engine):
    mask = (torch.rand(4096, generator=named_generator(0, "drawing")) < 0.3).int().tolist()
    assert engine.run("pixelsOf(textOf(Uint8Array.from(mask)))", mask=mask) == mask
    assert engine.run("textOf(new Uint8Array(4096))") == ""
    assert engine.run("textOf(new Uint8Array(4096).fill(1))") == "0-35s"


@pytest.mark.parametrize(
    "patch",
    [
        {"reference": [0, 0]},
        {"transform": [0, 0, 0, 0, 32, 0]},
        {"action": 5},
        {"taken": [-1]},
        {"how": "foot"},
        {"cursor": 4096},
        {"drawn": "zzz-zzz"},
        {"drawn": "0-1-x!"},
    ],
    ids=str,
)
def test_states_that_cannot_be_shown_are_refused(page, patch):
    said = page.run(
        "{ try { checkImageState({ ...imageDefaults(data), ...patch }, data); return ''; }"
        " catch (error) { return error.message; } }",
        patch=patch,
    )
    assert said.startswith("expected")


def test_held_out_tables(data, task):
    factors = task.grid.sample(500, named_generator(0, "splits"))
    by_table = np.zeros(500, dtype=bool)
    for split in data["splits"]:
        sizes = [task.grid.sizes[task.grid.index(name)] for name in split["columns"]]
        place = np.ravel_multi_index([factors.column(name).numpy() for name in split["columns"]], sizes)
        by_table |= np.array([split["table"][k] == "1" for k in place])
    assert (by_table == task.held_out(factors).numpy()).all()


@pytest.mark.parametrize(
    "changes",
    [
        {"decoder": "spectrum", "clean_up": False},
        {"composition": "mlp"},
        {"encoder": "convolution"},
        {"distortion": "warped"},
    ],
    ids=str,
)
def test_models_that_the_page_cannot_compute_are_not_shown(trained, changes):
    other = replace(trained, spec=trained.spec.changed(changes))
    assert images.data([other]) is None
    shown = images.data([other, trained])
    assert shown is not None
    assert shown["label"] == trained.label


def test_weights_of_other_shapes_are_not_shown(trained):
    weights = {**trained.weights, "memory.templates": np.zeros((8, 16, 16), dtype=np.float16)}
    assert images.data([replace(trained, weights=weights)]) is None


def test_memories_with_angles_that_look_alike_are_not_shown(trained):
    """The page looks at images once, and does not tell such angles apart."""
    orders = np.full_like(trained.weights["memory.orders"], 6)
    assert images.data([replace(trained, weights={**trained.weights, "memory.orders": orders})]) is None


def test_numbers_of_16_bits_are_unpacked(engine):
    numbers = np.array([0.0, -0.0, 1.0, -2.5, 6e-8, 1e-5, 65504.0, 0.1, -3e-3], dtype=np.float16)
    packed = pack({"numbers": numbers, "ones": np.ones(3, dtype=np.float32)})
    raw = list(zlib.decompress(b64decode(packed["bytes"])))
    found = engine.run("withArrays(values, Uint8Array.from(raw).buffer).numbers.data", values=packed["values"], raw=raw)
    assert found == numbers.tolist()


def test_room_is_small(data, trained):
    assert len(pack(data)["bytes"]) < MOST_BYTES
    assert len(write_page([trained])) < 3_000_000
