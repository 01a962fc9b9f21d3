"""The room "Composition": its arithmetic in JavaScript against the task and the models in torch."""

from pathlib import Path

import numpy as np
import pytest
import torch

from tpr_attention.explorer.rooms import composition
from tpr_attention.explorer.rooms.composition import KINDS, data
from tpr_attention.explorer.trained import Trained, label_of, of_folder
from tpr_attention.generators import named_generator
from tpr_attention.models.build import build
from tpr_attention.report.inspection import Names, inspect_weights, transfers
from tpr_attention.studies.contestants import contestant
from tpr_attention.tasks.composition.pairs import Pairs
from tpr_attention.training.prepare import make_task
from tpr_attention.training.spec import RunSpec

OPTIONS = {
    "tpr": {"num_heads": 3},
    "tpr-laws": {"num_heads": 3, "hidden": 5, "num_codes": 4},
    "tpr-stack": {"num_heads": 2},
    "tpr-second": {"num_heads": 2},
}
WORLDS = [("square_red", None), ("square_red", "shape_col"), ("square_pos", "scale_pos"), ("scale_pos", "scale_pos")]
COUNT = 40


def spec_of(model="tpr", split="square_red", interaction=None, **values):
    options = {f"model.{name}": value for name, value in OPTIONS.get(model, {}).items()}
    return RunSpec.of({"task.split": split, "task.interaction": interaction, "model": model, **options, **values})


def random_model(spec):
    """A model of a spec with random weights: those of a new one would let it copy."""
    model = build(spec.model.name, make_task(spec.task, spec.seed), **spec.model.options).double()
    generator = named_generator(0, spec.model.name)
    with torch.no_grad():
        for tensor in (*model.parameters(), *model.buffers()):
            drawn = torch.randn(tensor.shape, generator=generator, dtype=torch.float64)
            tensor.copy_((0.5 * drawn).float())
    return model.eval()


def trained(spec):
    weights = {name: tensor.float().numpy() for name, tensor in random_model(spec).state_dict().items()}
    return Trained(spec, weights, label_of(spec))


def random_pairs(task, count=COUNT):
    generator = named_generator(1, "pairs")
    reference, transform = task.grid.sample(count, generator), task.grid.sample(count, generator)
    transform.columns["colour"][::2] = reference.columns["colour"][::2]  # so that inputs may carry what is asked for
    action = torch.randint(len(task.grid.actions), (count,), generator=generator)
    return Pairs(reference, transform, action)


def asked(pairs):
    """The pairs as JavaScript takes them."""
    return {
        "references": pairs.reference.classes.tolist(),
        "transforms": pairs.transform.classes.tolist(),
        "actions": pairs.action.tolist(),
    }


@pytest.fixture(scope="module", params=WORLDS, ids=lambda world: f"{world[0]}-{world[1]}")
def world(request):
    """A task, the same as tables, and random pairs."""
    spec = spec_of("tpr", *request.param)
    found = data([trained(spec)])
    task = make_task(spec.task, spec.seed)
    return task, {"world": found["worlds"][0], "tables": found["tables"]}, random_pairs(task)


def test_objects_are_encoded_as_in_python(engine, world):
    task, values, pairs = world
    found = engine.run("references.map((one) => encodeFactors(world, tables, one))", **values, **asked(pairs))
    expected = task.encode(pairs).inputs[0].double().numpy()
    np.testing.assert_allclose(np.array(found), expected, atol=0)


def test_noisy_objects_are_decoded_as_in_python(engine, world):
    task, values, pairs = world
    objects = task.encode(pairs, torch.float64).target
    objects = objects + 0.2 * torch.randn(objects.shape, generator=named_generator(2, "noise"), dtype=torch.float64)
    found = engine.run("objects.map((one) => decodeObject(world, tables, one))", objects=[*objects.numpy()], **values)
    assert found == task.encoding.decode(objects).classes.tolist()


def test_targets_and_kinds_are_those_of_python(engine, world):
    task, values, pairs = world
    found = engine.run(
        "references.map((one, k) => [substituteFactors(world, one, transforms[k], actions[k]), "
        "kindOf(world, one, transforms[k], actions[k])])",
        **values,
        **asked(pairs),
    )
    assert [one for one, _ in found] == pairs.target.classes.tolist()
    held_out = task.pairing.held_out
    for part in ("reference", "transform", "target"):
        assert [kind[part] for _, kind in found] == held_out(getattr(pairs, part)).tolist()


@pytest.mark.parametrize("condition", ["train", "ood_reference", "ood_transform", "ood_composition"])
def test_drawn_pairs_have_the_condition_that_python_drew(engine, world, condition):
    task, values, _ = world
    pairs = task.pairing.draw(condition, COUNT, named_generator(0, condition))
    found = engine.run(
        "references.map((one, k) => kindOf(world, one, transforms[k], actions[k]).condition)", **values, **asked(pairs)
    )
    assert found == [condition] * COUNT


@pytest.mark.parametrize("condition", ["train", "ood_reference", "ood_transform", "ood_composition"])
def test_questions_can_be_drawn(engine, world, condition):
    task, values, _ = world
    for start in range(5):
        found = engine.run(f"drawQuestion(world, '{condition}', {start})", **values)
        pair = Pairs(
            task.grid.table(torch.tensor([found["reference"]])),
            task.grid.table(torch.tensor([found["transform"]])),
            torch.tensor([found["action"]]),
        )
        held = [bool(task.pairing.held_out(one)) for one in (pair.reference, pair.transform, pair.target)]
        wanted = task.pairing.conditions[condition]
        assert all(
            want is None or want is has
            for want, has in zip((wanted.reference, wanted.transform, wanted.target), held, strict=True)
        )


def test_the_best_answer_and_its_errors_are_those_of_python(engine, world):
    task, values, pairs = world
    drawn = task.pairing.draw("ood_composition", COUNT, named_generator(3, "pairs"))
    for some in (pairs, drawn):
        batch = task.encode(some)
        best = task.best_answer(*batch.inputs)
        found = engine.run(
            "references.map((one, k) => { const best = bestAnswer(world, tables, one, transforms[k], actions[k]); "
            "const target = encodeFactors(world, tables, substituteFactors(world, one, transforms[k], actions[k])); "
            "return { ...best, ...errorsOf(world, best.answer, target) }; })",
            **values,
            **asked(some),
        )
        np.testing.assert_allclose([one["answer"] for one in found], best.double().numpy(), atol=1e-6)
        measured = task.measure(best, batch)
        np.testing.assert_allclose([one["loss"] for one in found], measured["loss"].numpy(), atol=1e-6)
        for role, name in enumerate(task.encoding.role_names):
            np.testing.assert_allclose([one["roles"][role] for one in found], measured[name].numpy(), atol=1e-6)
            guessed = [role in one["unknown"] for one in found]
            assert guessed == ((best - batch.target).abs() > 1e-6).any(-1)[:, role].tolist()


def test_answers_that_are_read_rightly_are_those_of_python(engine, world):
    task, values, pairs = world
    target = task.encode(pairs, torch.float64).target
    answer = target + 0.4 * torch.randn(target.shape, generator=named_generator(2, "noise"), dtype=torch.float64)
    found = engine.run(
        "answers.map((one, k) => rightRoles(world, tables, one, targets[k]))",
        answers=[*answer.numpy()],
        targets=[*target.float().numpy()],
        **values,
    )
    shares = task.encoding.accuracy(answer, pairs.target)
    assert 0 < np.mean(found) < 1
    np.testing.assert_allclose(np.mean(found, 0), [*shares.values()], atol=1e-9)


@pytest.fixture(scope="module", params=[None, "shape_col"])
def models(request):
    """All models that the page knows in one world, by name: their specs, and what the page has of them."""
    specs = {name: spec_of(name, "square_red", request.param) for name in KINDS}
    shown = data([trained(spec) for spec in specs.values()])["models"]
    assert len(shown) == len(KINDS)
    return {one["name"]: (specs[one["name"]], one) for one in shown}


@pytest.mark.parametrize("name", KINDS)
def test_answers_of_models_are_those_of_torch(engine, models, name):
    spec, shown = models[name]
    task, model = make_task(spec.task, spec.seed), random_model(spec)
    pairs = random_pairs(task, 12)
    batch = task.encode(pairs, torch.float64)
    with torch.no_grad():
        expected = model(*batch.inputs)
    assert (expected - batch.inputs[0]).abs().max() > 0.1
    found = engine.run(
        "references.map((one, k) => answerOf(model, one, transforms[k], actions[k]).output)",
        model=shown,
        references=[*batch.inputs[0].numpy()],
        transforms=[*batch.inputs[1].numpy()],
        actions=pairs.action.tolist(),
    )
    np.testing.assert_allclose(np.array(found), expected.numpy(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind in ("heads", "laws", "attention")])
def test_updates_of_heads_add_up(engine, models, name):
    spec, shown = models[name]
    batch = make_task(spec.task, 0).draw("train", 1, named_generator(0, "one"), torch.float64)
    stages = engine.run(
        "answerOf(model, reference, transform, 1).stages",
        model=shown,
        reference=batch.inputs[0][0],
        transform=batch.inputs[1][0],
    )
    layers = [stage for stage in stages if stage["type"] == "heads"]
    assert bool(layers) == (KINDS[name] != "attention")
    for stage in layers:
        np.testing.assert_allclose(sum(head["update"] for head in stage["heads"]), stage["update"], atol=1e-9)
        for head in stage["heads"]:
            made = engine.run(f"readableHead(head, {str(stage['isNormalised']).lower()})", head=head)
            np.testing.assert_allclose(np.outer(made["newRole"], made["mapped"]), head["update"], atol=1e-9)
            np.testing.assert_allclose([np.abs(read["weights"]).max() for read in made["reads"]], 1)
            assert made["newRole"].max() == 1


@pytest.mark.parametrize("name", ["tpr", "tpr-laws"])
def test_transfers_are_those_of_inspect(engine, name):
    spec = contestant(name, "square_red", "shape_col", 4)
    one = trained(spec)
    (shown,) = data([one])["models"]
    roles = make_task(spec.task, 0).encoding.role_names
    layer = inspect_weights(one.weights, Names(roles=roles)).layers[0]
    for action in range(5):
        found = engine.run(f"transfersOf(model.weights, '{layer.name}.', {action})", model=shown)
        expected, _ = transfers(layer, f"action {action + 1}")
        assert len(found) == len(expected) > 0
        for ours, theirs in zip(found, expected, strict=True):
            assert (f"object {ours['object'] + 1}", roles[ours["role"]]) == (theirs.obj, theirs.role)
            assert roles[ours["newRole"]] == theirs.new_role
            np.testing.assert_allclose([ours["copied"], ours["mixed"]], [theirs.copied, theirs.mixed], atol=1e-5)


def test_floors_are_those_of_the_task():
    spec = spec_of("tpr", "square_red", "shape_col")
    (found,) = data([trained(spec)])["worlds"]
    assert found["floors"] == make_task(spec.task, spec.seed).floors()
    assert found["floors"]["ood_composition"]["knowable"] > 0


def test_equal_tables_are_kept_once():
    found = data([trained(spec_of("tpr", split, "scale_pos")) for split in ("square_red", "square_pos")])
    assert len(found["worlds"]) == 2
    assert len(found["tables"]) == 5  # shape and colour have the same


def test_one_run_of_each_model_is_shown_in_each_cell():
    usual, elsewhere = spec_of("tpr"), spec_of("tpr", "square_pos")
    others = [spec_of("tpr", noise=0.1), spec_of("tpr", steps=10), spec_of("tpr", seed=3)]
    found = data([trained(spec) for spec in (*others, usual, elsewhere)])
    assert [model["digest"] for model in found["models"]] == [usual.digest, elsewhere.digest]


def test_the_most_pairs_and_a_few_are_shown():
    specs = {pairs: spec_of("tpr", train_examples=pairs) for pairs in (30, 300, 1000, 10_000, 50_000)}
    found = data([trained(spec) for spec in specs.values()])
    assert [model["pairs"] for model in found["models"]] == [50_000, 300]
    assert len(found["worlds"]) == 1


def test_a_page_does_not_grow_without_end(monkeypatch):
    runs = [trained(spec_of("tpr")), trained(spec_of("tpr", train_examples=100))]
    monkeypatch.setattr(composition, "MOST_BYTES", 1.5 * sum(array.nbytes for array in runs[0].weights.values()))
    found = data(runs)
    assert [model["pairs"] for model in found["models"]] == [50_000]
    assert "too large" in found["left_out"][0]


def test_what_cannot_be_shown_is_named(monkeypatch):
    unfit = {"split": "my_module:split", "weights": np.array([np.nan])}
    spec = spec_of("tpr")
    code = RunSpec.from_json(spec.to_json().replace("square_red", unfit["split"]))
    one = trained(spec)
    broken = Trained(spec_of("resnet"), {"output.weight": unfit["weights"]}, "resnet")
    unknown = Trained(spec_of("oracle"), {}, "<b>oracle")
    found = data([one, Trained(code, one.weights, "tpr"), broken, unknown])
    assert len(found["models"]) == 1
    said = " ".join(found["left_out"])
    assert all(why in said for why in ("does not know this model", "code of your own", "not finite"))
    monkeypatch.setattr(composition, "MOST_ROWS", 5)
    assert data([one]) is None


def test_other_tasks_have_no_room():
    assert data([]) is None
    assert data([Trained(RunSpec.of({"task": "recall-capacity", "model": "recall-tpr"}), {}, "")]) is None


def test_models_of_the_documentation_are_small_and_all_shown():
    folder = Path(__file__).parents[2] / "docs" / "models" / "composition"
    assert sum(path.stat().st_size for path in folder.iterdir()) < 300_000
    found = data(runs := of_folder(folder))
    assert len(found["models"]) == len(runs) > 20
    assert found["left_out"] == []
