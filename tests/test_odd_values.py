"""Values, options and sizes that nobody should type: each is refused in one line, and soon."""

import subprocess
import sys
import time

import pytest

from tpr_attention.cli import main
from tpr_attention.commands.keys import MOST_BYTES, parse_file, parse_line
from tpr_attention.training.spec import SpecError
from tpr_attention.training.sweep import MOST_RUNS, sweep


def refused(capsys, arguments, code=2):
    """What is said of a request that is refused."""
    try:
        found = main(arguments)
    except SystemExit as stop:
        found = stop.code
    said = capsys.readouterr()
    assert found == code, said
    assert said.out == ""
    assert len(said.err.splitlines()) == 1, said.err
    assert len(said.err) < 1100
    return said.err.removeprefix("error: ").rstrip("\n")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("!!int abc", "not of type !!int: 'abc'"),
        ("!!int ''", "not of type !!int: ''"),
        ("!!bool x", "not of type !!bool: 'x'"),
        ("!!float x", "not of type !!float: 'x'"),
        ("!!timestamp x", "expected a value of JSON, not one of type !!timestamp"),
        ("!!timestamp 2020-01-01", "expected a value of JSON, not one of type !!timestamp"),
        ("!!binary abc", "expected a value of JSON, not one of type !!binary"),
        ("!!set {a, b}", "expected a value of JSON, not one of type !!set"),
        ("!!python/name:os.system", "expected a value of JSON, not one of type !!python/name:os.system"),
        ("9" * 5000, "a number of 5,000 digits"),
        ("[" * 1500, "nested deeper than 50 levels"),
        ("[" * 1500 + "]" * 1500, "nested deeper than 50 levels"),
        ("&a [*a]", "got one that contains itself"),
        ("*a", "found undefined alias 'a'"),
        ("{a: 1, a: 2}", "the key 'a' is given twice"),
        ("{1: 2}", "expected a text as key, got 1"),
        ("{[1]: 2}", "expected a text as key, got a list"),
        ("{<<: 1}", "expected a mapping or list of mappings for merging"),
        ("\t5", "found character '\\t' that cannot start any token"),
        ("\x00", "the character '\\x00' at position 0 is no text"),
        ("\x1b[31m", "the character '\\x1b' at position 0 is no text"),
        ("\udcff", "the character '\\udcff' at position 0 is no text"),
        ("5\n---\n6", "expected a single document"),
        ("", "steps: expected a value after the sign =; null for none"),
        (" \t ", "steps: expected a value after the sign =; null for none"),
        ("2020-13-45", "training.steps: expected a whole number, got '2020-13-45'"),
        ("2020-01-01", "training.steps: expected a whole number, got '2020-01-01'"),
        ("010", "training.steps: expected a whole number, got '010'"),
        ("1:30", "training.steps: expected a whole number, got '1:30'"),
        ("yes", "training.steps: expected a whole number, got 'yes'"),
        ('"\\ud800"', "training.steps: expected finite numbers of 64 bits, texts"),
        ("1e400", "training.steps: expected finite numbers of 64 bits, texts, true, false or null, got inf"),
        (".nan", "got nan"),
        ("1.5", "training.steps: expected a whole number, got 1.5"),
        ("9223372036854775808", "training.steps: expected finite numbers of 64 bits"),
        ("0", "training.steps: expected a whole number of at least 1, got 0"),
    ],
)
def test_values_that_are_none(value, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    begun = time.monotonic()
    assert message in refused(capsys, ["run", f"steps={value}"])
    assert time.monotonic() - begun < 10
    assert list(tmp_path.iterdir()) == []


def test_numbers_as_people_write_them(tmp_path):
    assert sweep({}, parse_line(["steps=1e4"])) == sweep({"training.steps": 10_000})
    path = tmp_path / "sweep.yaml"
    path.write_text("\ufeffsteps: [1e1, 20, 3e+1]\nlearning_rate: 1e-2\n", encoding="utf-8")
    assert [spec.training.steps for spec in sweep(parse_file(str(path)))] == [10, 20, 30]
    typed = parse_line(["a=1_000", "b=.5", "c=-1.5e3", "d=0x10", "e=null", "f=True", "g=no"])
    assert list(typed.values()) == [1000, 0.5, -1500.0, 16, None, True, "no"]


LAUGHS = "".join(
    f"{name}: &{name} [{', '.join([f'*{before}' if before else '1'] * 9)}]\n"
    for name, before in zip("abcdefghi", " abcdefgh".replace(" ", "\0"), strict=True)
).replace("*\0", "1")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"model: tpr\nsteps: 5\nmodel: resnet\n", "line 3: the key 'model' is given twice"),
        (b"steps: 5\nruns:\n- {model: tpr}\n- {model: tpr, model: resnet}\n", "line 4: the key 'model' is given twice"),
        (b"steps: !!int abc\n", "line 1: not of type !!int: 'abc'"),
        (b"steps: 5\nsplit: !!timestamp 2020-01-01\n", "line 2: expected a value of JSON, not one of type !!timestamp"),
        (b"model: tpr\n\tsteps: 5\n", "line 2: "),
        (b"model: t\xe9\n", "cannot be read: byte 8 is not UTF-8"),
        (b"model: t\0\n", "the character '\\x00' at position 8 is no text"),
        (b"a: " + b"[" * 1500, "line 1: nested deeper than 50 levels"),
        (LAUGHS.encode(), "expected at most 100,000 values in 50 levels, got"),
        (b"a: &a {b: *a}\n", "got one that contains itself"),
        (b"#" * (MOST_BYTES + 1), f"expected at most {MOST_BYTES:,} bytes that describe runs, got more"),
        (b"", "expected keys and values"),
        (b"- 1\n", "expected keys and values"),
        (b"steps: 5\ntraining: {steps: 6}\n", "training.steps: given twice, as 'steps' and 'training.steps'"),
        (b"training.steps: 5\ntraining: {steps: 6}\n", "training.steps: given twice"),
        (b"runs: []\n", "runs: expected at least one"),
        (b"runs: 5\n", "runs: expected a list of keys and values, got 5"),
    ],
)
def test_files_that_describe_no_runs(content, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sweep.yaml").write_bytes(content)
    assert message in refused(capsys, ["run", "--sweep", "sweep.yaml"])
    assert [path.name for path in tmp_path.iterdir()] == ["sweep.yaml"]


def test_aliases_that_are_small_are_taken(tmp_path):
    path = tmp_path / "sweep.yaml"
    path.write_text("seed: &few [0, 1]\nruns:\n- &first {model: tpr}\n- {<<: *first, num_heads: 2}\n")
    assert len(sweep(parse_file(str(path)))) == 4


@pytest.mark.parametrize("name", ["", ".", "none.yaml", "a\0b"])
def test_files_that_cannot_be_read(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert "cannot be read: " in refused(capsys, ["run", "--sweep", name])


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (["steps=5", "steps=5"], "steps: given twice; a list such as steps=[1,2] means each of its values"),
        (["steps=5", "training.steps=6"], "training.steps: given twice, as 'steps' and 'training.steps'"),
    ],
)
def test_a_key_that_is_typed_twice(keys, message, capsys):
    assert refused(capsys, ["run", *keys]) == message


def test_floors_with_a_key_twice(capsys):
    said = refused(capsys, ["floors", "split=square_red", "task.split=scale_pos"])
    assert said == "task.split: given twice, as 'split' and 'task.split'"


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--shard", "0/0", "expected a part of the whole such as 2/8, of at most 100,000, got '0/0'"),
        ("--shard", "5/2", "got '5/2'"),
        ("--shard", "1/99999999999999999999", "got '1/99999999999999999999'"),
        ("--shard", "1/100001", "of at most 100,000"),
        ("--shard", "²/³", "got '²/³'"),
        ("--shard", "٣/٣", "got '٣/٣'"),
        ("--shard", "1/2/3", "got '1/2/3'"),
        ("--shard", "", "got ''"),
        ("--workers", "0", "expected a whole number from 1 to 1,024, because each has a copy of torch in memory"),
        ("--workers", "-1", "got '-1'"),
        ("--workers", "100000", "got '100000'"),
        ("--workers", "9" * 5000, "from 1 to 1,024"),
        ("--workers", "1.5", "got '1.5'"),
        ("--checkpoint-seconds", "nan", "expected a number of seconds of at least 0, got 'nan'"),
        ("--checkpoint-seconds", "-1", "got '-1'"),
        ("--checkpoint-seconds", "inf", "got 'inf'"),
        ("--checkpoint-steps", "0", "expected a whole number of at least 1, got '0'"),
        ("--seeds", "0", "expected a whole number of at least 1, got '0'"),
        ("--seeds", "five", "got 'five'"),
        ("--steps", "0", "expected a whole number of at least 1, got '0'"),
        ("--steps", "9" * 30, "expected a whole number of at least 1"),
    ],
)
def test_options_that_cannot_be(option, value, message, capsys):
    command = "reproduce" if option in ("--seeds", "--steps") else "run"
    said = refused(capsys, [command, f"{option}={value}"])
    assert said.startswith(f"{option}: ")
    assert message in said
    assert said.endswith(f"see tpr-attention {command} --help")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected a command, one of reproduce, run, report"),
        (["fly"], "command: invalid choice: 'fly'"),
        (["\x1b[31m"], r"command: invalid choice: '\x1b[31m'"),
        (["run", "a=1", "--workers", "2", "b=2"], "unrecognized arguments: b=2; keys stand together"),
        (["list", "--stroe", "x"], "unrecognized arguments: --stroe x"),
        (["examples", "--count", "1001"], "--count: expected a whole number from 1 to 1,000, got '1001'"),
    ],
)
def test_arguments_that_nothing_takes(arguments, message, capsys):
    assert message in refused(capsys, arguments)


def test_all_this_is_said_before_torch_is_loaded(tmp_path):
    (tmp_path / "many.yaml").write_text(f"seed: [{', '.join(map(str, range(1000)))}]\nsteps: [1, 2, 3]\n")
    code = (
        "import sys; from tpr_attention.cli import main\n"
        "for request in (['run', 'steps=[[['], ['run', '--shard', '5/2'], ['run', '--workers', '0'],"
        " ['run', 'steps=5', 'steps=6'], ['run', '--sweep', 'many.yaml', f'train_examples={[*range(1, 100)]}']):\n"
        "    try: code = main(request)\n"
        "    except SystemExit as stop: code = stop.code\n"
        "    assert code == 2, request\n"
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert f"runs: expected at most {MOST_RUNS:,} in one request, got 297,000" in done.stderr


def test_runs_are_counted_before_they_are_listed(capsys):
    begun = time.monotonic()
    with pytest.raises(SpecError, match=f"runs: expected at most {MOST_RUNS:,} in one request, got 40,000,000"):
        sweep({"seed": list(range(20_000)), "steps": list(range(1, 2_001))})
    names = ["tpr"] * 1_000
    with pytest.raises(SpecError, match="got 1,000,000"):
        sweep({"task": ["composition"] * 1_000, "model": names})
    with pytest.raises(SpecError, match="got 200,000"):
        sweep(
            {"seed": list(range(1_000)), "runs": [{"model": "tpr"}, {"model": "resnet", "steps": list(range(1, 200))}]}
        )
    assert time.monotonic() - begun < 10
    said = refused(capsys, ["reproduce", "--seeds", "99999999999", "--dry-run", "--studies", "main-interacting"])
    assert said.startswith(f"runs: expected at most {MOST_RUNS:,} in one request, got ")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (["task=random-composition", "factors=1000000"], "task.factors: expected at most 128, got 1,000,000"),
        (["task=random-composition", "filler_dim=1000000"], "task.filler_dim: expected at most 1,024, got 1,000,000"),
        (["batch_size=1000000000000"], "training.train_examples: expected at least a batch of 1000000000000"),
        (["train_examples=1000000000000"], "training.train_examples: expected a run that fits into this machine's"),
        (["test_examples=1000000000000"], "training.test_examples: expected a run that fits into this machine's"),
        (["num_heads=1000000000"], "model.num_heads, training.test_examples: expected a run that fits into"),
        (["noise=1e300"], "task.noise: expected a number from 0 to 1e+06, got 1e+300"),
        (["position_range=[0,1e200]"], "position_range"),
        (["device=moon"], "training.device: cannot use 'moon'"),
    ],
)
def test_sizes_that_no_machine_has(keys, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    begun = time.monotonic()
    assert message in refused(capsys, ["run", *keys, "--dry-run"])
    assert time.monotonic() - begun < 60
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("keys", "numbers"),
    [(["factors=60"], "360 and 442,860"), (["filler_dim=1000"], "10,000 and 330")],
)
def test_floors_that_would_take_hours(keys, numbers, capsys):
    begun = time.monotonic()
    said = refused(capsys, ["floors", "task=random-composition", *keys])
    assert "at most 2,000 numbers and 200,000 means of products" in said
    assert said.endswith(f"got {numbers}")
    assert time.monotonic() - begun < 60


def test_floors_that_take_long_say_so_where_no_progress_is_shown(capsys, monkeypatch):
    monkeypatch.setattr("tpr_attention.commands.floors.SILENT_SECONDS", 0.0)
    assert main(["floors", "split=square_red", "interaction=null"]) == 0
    said = capsys.readouterr()
    assert said.err == "computing floors ...\n"
    assert "solvable" in said.out
