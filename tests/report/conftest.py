import pytest

from tests.report import made_up
from tpr_attention.experiments.store import Store
from tpr_attention.report.results import Results


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store", create=True)


@pytest.fixture
def run(store):
    """Store the runs of a study, all of them or those that are wanted, and read them back."""

    def save(study, wanted=lambda spec: True, values=made_up.losses):
        for spec in filter(wanted, study.specs):
            made_up.save(store, spec, values)
        return Results(store, study.specs)

    return save
