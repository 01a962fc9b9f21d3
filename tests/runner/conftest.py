import pytest

from tests.runner.specs import SPECS
from tpr_attention.runner.executors.local import in_this_process
from tpr_attention.runner.run import run
from tpr_attention.runner.store import Store


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store", create=True)


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A store of all `SPECS` that is only read, and the events of their training."""
    store = Store(tmp_path_factory.mktemp("trained") / "store", create=True)
    return store, list(run(SPECS, store, in_this_process))
