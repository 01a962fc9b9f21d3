"""Laws of roles are what their equation says, never read their own role, and can be those of the tasks."""

import pytest
import torch

from tpr_attention.nn import CleanUp, RoleLaws
from tpr_attention.tasks.composition.task import dsprites_composition

ROLES, FILLERS, READS = 5, 3, 3


@pytest.fixture
def laws(generator):
    made = RoleLaws(ROLES, FILLERS, num_pairs=2, num_units=3, hidden=4, dtype=torch.float64)
    for parameter in made.parameters():
        parameter.data.normal_(generator=generator)
    return made


def literal(laws, obj):
    """The equation, role by role and head by head."""
    found = []
    for r in range(ROLES):
        queries = laws.query_map[r] * (torch.arange(ROLES) != r)
        read = queries @ obj
        first, second, units, given = torch.split(read, [2, 2, 3, READS])
        law = laws.bias[r]
        for s in range(ROLES):
            law = law + (laws.linear_map[r, :, s] @ obj[s] if s != r else 0)
        for h in range(2):
            law = law + torch.einsum("kij,i,j->k", laws.pair_map[r, :, h], first[h], second[h])
        for h in range(3):
            law = law + laws.unit_map[r, :, h] @ units[h] / (units[h].square().sum() + 1e-6).sqrt()
        hidden = torch.einsum("mkf,kf->m", laws.hidden_map[r], given) + laws.hidden_bias[r]
        found.append(law + laws.output_map[r] @ torch.nn.functional.gelu(hidden))
    return torch.stack(found)


def test_laws_are_their_equation_with_gradients(laws, normal):
    objects = normal(4, ROLES, FILLERS)
    found, expected = laws(objects), torch.stack([literal(laws, obj) for obj in objects])
    torch.testing.assert_close(found, expected)
    inputs = [objects, *laws.parameters()]
    for one, other in zip(
        torch.autograd.grad(found.square().sum(), inputs),
        torch.autograd.grad(expected.square().sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


def test_no_role_is_read_by_its_own_law(laws, normal):
    jacobian = torch.autograd.functional.jacobian(laws, normal(ROLES, FILLERS).detach())  # [r f s g]
    sizes = jacobian.abs().amax((1, 3))
    assert (sizes.diagonal() == 0).all()
    assert (sizes + torch.eye(ROLES) > 0).all()


def test_stacked_laws_are_those_of_each_model(normal):
    models = [RoleLaws(ROLES, FILLERS, dtype=torch.float64) for _ in range(2)]
    for model in models:
        for parameter in model.written_maps:
            parameter.data.normal_()
    objects = normal(2, ROLES, FILLERS, 7).detach()
    stacked, _ = torch.func.stack_module_state(models)

    class Columns(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.laws = models[0]

        def forward(self, columns):
            return self.laws.of_columns(columns)

    found = torch.func.functional_call(Columns(), {f"laws.{name}": value for name, value in stacked.items()}, objects)
    torch.testing.assert_close(found, torch.stack([m.of_columns(o) for m, o in zip(models, objects, strict=True)]))


def laws_of(interaction, split):
    """Laws and the objects of a task with an interaction, whose role is the last."""
    task = dsprites_composition(split, interaction)
    batch = task.draw("ood_reference", 64, torch.Generator().manual_seed(0), torch.float64)
    laws = RoleLaws(task.num_roles, 3, dtype=torch.float64)
    laws.query_map.data.zero_()
    names = task.encoding.role_names
    return task, laws, batch.inputs[0], names


def test_the_numerical_interaction_can_be_constructed():
    _, laws, objects, names = laws_of("scale_pos", "square_red")
    last = len(names) - 1
    unit = 2 * laws.num_pairs  # the first normalised head reads the sum of both fillers
    laws.query_map.data[last, unit, [names.index("scale"), names.index("position")]] = 1
    laws.unit_map.data[last, :, 0] = torch.eye(3)
    torch.testing.assert_close(laws(objects)[:, last], objects[:, last], rtol=0, atol=1e-5)


def test_the_categorical_interaction_can_be_constructed():
    task, laws, objects, names = laws_of("shape_col", "scale_pos")
    last = len(names) - 1
    laws.query_map.data[last, 0, names.index("shape")] = 1
    laws.query_map.data[last, laws.num_pairs, names.index("colour")] = 1
    mixing = task.encoding.tables[last].fillers.reshape(3, 3, 3)  # shape, colour, filler
    laws.pair_map.data[last, :, 0] = mixing.permute(2, 0, 1)
    torch.testing.assert_close(laws(objects)[:, last], objects[:, last])


def test_a_clean_up_finds_the_code_behind_noise(generator):
    clean_up = CleanUp(2, 3, 4, dtype=torch.float64)
    clean_up.codes.data = 2 * torch.eye(4, 3, dtype=torch.float64).expand(2, 4, 3).clone()
    clean_up.sharpness.data.fill_(5.0)
    numbers = torch.randint(4, (50, 2), generator=generator)
    clean = clean_up.codes.data[torch.arange(2), numbers]
    noise = 0.1 * torch.randn(clean.shape, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(clean_up(clean + noise), clean, rtol=0, atol=1e-6)


def test_a_clean_up_is_the_mean_of_the_posterior(normal):
    clean_up = CleanUp(2, 3, 5, dtype=torch.float64)
    objects = normal(2, 3)
    for r in range(2):
        codes, precision = clean_up.codes[r], clean_up.sharpness[r].exp()
        likelihood = torch.exp(-precision * (objects[r] - codes).square().sum(-1))
        expected = (likelihood / likelihood.sum()) @ codes
        torch.testing.assert_close(clean_up(objects)[r], expected)


@pytest.mark.parametrize("make", [RoleLaws, lambda roles, fillers, **how: CleanUp(roles, fillers, 4, **how)])
def test_sizes_and_shapes_are_checked(make):
    layer = make(5, 3)
    with pytest.raises(ValueError, match="objects"):
        layer(torch.zeros(2, 4, 3))
    with pytest.raises((TypeError, ValueError), match="num_roles"):
        make(0, 3)
    assert layer(torch.zeros(0, 5, 3)).shape == (0, 5, 3)
    assert layer(torch.zeros(2, 7, 5, 3)).shape == (2, 7, 5, 3)
    assert next(make(5, 3, device="meta").parameters()).is_meta
