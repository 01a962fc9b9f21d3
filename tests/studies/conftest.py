import pytest

from tests.studies import stored
from tpr_attention.runner.store import Store
from tpr_attention.studies import Setup
from tpr_attention.studies.paper.figures import FIGURES


@pytest.fixture
def store(tmp_path):
    return stored.Remembered(tmp_path / "store")


@pytest.fixture
def written(tmp_path):
    """A store whose runs are files."""
    return Store(tmp_path / "written", create=True)


@pytest.fixture(scope="package")
def reproduced(tmp_path_factory):
    """A store of all figures of the paper with three seeds and ten steps, that is only read."""
    store = Store(tmp_path_factory.mktemp("reproduced") / "store", create=True)
    stored.save(store, stored.plans_of(FIGURES, Setup(seeds=3, steps=10)))
    return store
