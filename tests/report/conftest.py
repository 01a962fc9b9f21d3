import pytest

from tests.report import made_up
from tpr_attention.report.results import Results
from tpr_attention.runner.store import Store


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store", create=True)


@pytest.fixture
def run(store):
    """Store the runs of a plan, all of them or those that are wanted, and read them back."""

    def save(plan, wanted=lambda spec: True, values=made_up.losses):
        for spec in filter(wanted, plan.specs):
            made_up.save(store, spec, values)
        return Results(store, plan.specs)

    return save
