"""A run that diverged is never shown as if it were finished."""

from tests.runner.specs import tiny
from tpr_attention.cli import main
from tpr_attention.runner.executors.local import in_this_process
from tpr_attention.runner.run import run
from tpr_attention.runner.store import Store

KEYS = ["steps=40", "train_examples=100", "test_examples=20", "batch_size=50"]


def test_run_and_show_mark_what_diverged(tmp_path, capsys):
    store = Store(tmp_path / "runs", create=True)
    specs = [tiny(steps=40, seed=seed, learning_rate=1e30 if seed == 1 else 0.01) for seed in (0, 1)]
    list(run(specs, store, in_this_process))
    step, tensor = store.divergence(specs[1].digest)
    said = f"diverged at step {step}: {tensor} is not finite"
    where = ["--store", str(store.path)]

    assert main(["run", *KEYS, "learning_rate=1e30", "seed=1", *where]) == 3
    out = capsys.readouterr().out
    (row,) = (line for line in out.splitlines() if specs[1].digest in line)
    assert said.split(":")[0] in " ".join(out.split())
    assert "e-0" not in row.partition(specs[1].digest)[2].replace("1e+30", "")
    assert "1 of 1 runs diverged" in out

    assert main(["show", specs[1].digest, *where]) == 3
    out = capsys.readouterr().out
    assert f"{said}: it has no final values" in out
    assert "metrics at the end" not in out

    assert main(["run", *KEYS, "learning_rate=0.01", "seed=0", *where]) == 0
    assert main(["show", specs[0].digest, *where]) == 0
    assert "diverged at" not in capsys.readouterr().out
