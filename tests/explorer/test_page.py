"""One page that needs no network, runs one script, and takes no text for markup."""

import json
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from safetensors.numpy import save_file

from tests.explorer.conftest import engine_of
from tpr_attention import __version__
from tpr_attention.cli import main
from tpr_attention.explorer import page
from tpr_attention.explorer.trained import Trained, label_of, of_folder, of_store
from tpr_attention.runner.store import Store, StoreError
from tpr_attention.training.spec import RunSpec

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)> & ' \" \N{PARTY POPPER}"
MODULES = Path(page.__file__).parent / "modules"
MOST_BYTES = 3_000_000


class Reader(HTMLParser):
    """Tags with their attributes and texts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.is_open = [], False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append([tag, dict(attributes), ""])
        self.is_open = True

    def handle_endtag(self, tag):
        self.is_open = False

    def handle_data(self, data):
        if self.is_open:
            self.tags[-1][2] += data

    def all(self, tag):
        return [(attributes, text) for name, attributes, text in self.tags if name == tag]


@pytest.fixture(scope="module")
def written():
    return page.write_page()


def test_only_the_script_of_the_page_runs(written):
    read = Reader(written)
    (policy,) = (found["content"] for found, _ in read.all("meta") if "http-equiv" in found)
    scripts = [text for found, text in read.all("script") if "type" not in found]
    assert len(scripts) == 1
    digest = b64encode(sha256(scripts[0].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy
    assert {found["type"] for found, _ in read.all("script") if "type" in found} <= {"application/json"}


def test_nothing_is_loaded_from_elsewhere(written):
    read = Reader(written)
    for tag, attributes, _ in read.tags:
        for name in ("src", "href", "action", "data"):
            assert attributes.get(name, "data:,").startswith(("data:", "#")), (tag, attributes)
    known = {"http://www.w3.org/2000/svg", "http://www.w3.org/1998/Math/MathML"}  # names, which nothing asks for
    assert set(re.findall(r"https?://[^\s\"'`)]+", written)) <= known
    assert not re.search(r"@import|url\((?!#)", written)
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|EventSource|sendBeacon|importScripts)\b", written)


def test_the_page_is_small(written):
    assert len(written.encode()) < MOST_BYTES


def test_texts_never_become_markup():
    for path in MODULES.rglob("*.js"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text), (
            path
        )


def test_names_are_escaped(monkeypatch):
    monkeypatch.setattr(page, "ROOMS", {"memory": lambda trained: {"label": trained[0].label, "one": np.ones(2)}})
    trained = Trained(RunSpec.of({"model": "tpr"}), {}, EVIL)
    read = Reader(page.write_page([trained]))
    assert read.all("img") == []
    (block,) = (text for found, text in read.all("script") if found.get("id") == "data-memory")
    assert json.loads(block)["values"]["label"] == EVIL


def test_a_room_without_data_is_not_shown(monkeypatch):
    monkeypatch.setattr(page, "ROOMS", {"memory": lambda trained: None})
    assert 'id="data-memory"' not in page.write_page()


def test_rooms_have_the_same_keys_in_python_and_javascript(engine):
    assert engine.run("ROOMS.map((room) => room.key)") == list(page.ROOMS)


def test_every_module_is_a_part_of_the_page():
    modules = {}
    page._collect("main.js", modules, {}, ())
    assert set(modules) == {path.relative_to(MODULES).as_posix() for path in MODULES.rglob("*.js")}


@pytest.mark.parametrize(
    ("modules", "said"),
    [
        ({"main.js": 'import { b } from "./b.js";\n', "b.js": 'import { a } from "./main.js";\n'}, "imports itself"),
        (
            {"main.js": 'import { a } from "./b.js";\nexport const a = 1;\n', "b.js": "export const a = 2;\n"},
            "exports a",
        ),
        ({"main.js": "export default 1;\n"}, "cannot be joined"),
        ({"main.js": 'import "./b.css";\n'}, "cannot be joined"),
    ],
)
def test_modules_that_cannot_be_joined_are_refused(monkeypatch, modules, said):
    monkeypatch.setattr(page, "_resource", lambda name: modules[name.removeprefix("modules/")])
    with pytest.raises(ValueError, match=said):
        page.joined()


def test_joined_modules_keep_their_own_names(monkeypatch):
    modules = {
        "main.js": 'import {\n  twice,\n} from "./b.js";\n\nconst own = 1;\nexport const sum = () => own + twice();\n',
        "b.js": "const own = 20;\nexport const twice = () => 2 * own;\n",
    }
    monkeypatch.setattr(page, "_resource", lambda name: modules[name.removeprefix("modules/")])
    assert engine_of(page.joined()).run("sum()") == 41


def test_files_of_weights(tmp_path):
    spec = RunSpec.of({"model": "tpr", "num_heads": 8})
    weights = {"layer.map": np.arange(6, dtype=np.float16).reshape(2, 3)}
    save_file(weights, tmp_path / "b.safetensors", {"spec": spec.to_json()})
    save_file(weights, tmp_path / "a.safetensors", {"made by": "somebody else"})
    (found,) = of_folder(tmp_path)
    assert (found.spec, found.label) == (spec, "tpr, num heads 8")
    np.testing.assert_array_equal(found.weights["layer.map"], weights["layer.map"])
    (tmp_path / "c.safetensors").write_bytes(b"no such file")
    with pytest.raises(StoreError, match=r"c\.safetensors: cannot be read"):
        of_folder(tmp_path)


def test_runs_of_a_store(tmp_path, monkeypatch):
    """One seed of each kind, the lowest; nothing that diverged, nothing of a user's own."""
    specs = [RunSpec.of({"model": model, "seed": seed}) for model in ("tpr", "resnet") for seed in (2, 1)]
    specs.append(replace(specs[0], model=replace(specs[0].model, name="not.there:Own")))
    store = Store(tmp_path / "runs", create=True)
    monkeypatch.setattr(Store, "readable", lambda self: ({one.digest: one for one in specs}, ["broken"]))
    gone = specs[3].digest
    monkeypatch.setattr(Store, "divergence", lambda self, digest: (3, "loss") if digest == gone else None)
    monkeypatch.setattr(Store, "weights", lambda self, digest: {"digest": np.frombuffer(digest.encode(), np.uint8)})
    found, left_out = of_store(store)
    assert [(one.spec.model.name, one.spec.seed) for one in found] == [("tpr", 1), ("resnet", 2)]
    assert [one.label for one in found] == ["tpr", "resnet"]
    assert bytes(found[0].weights["digest"]).decode() == found[0].spec.digest
    own = specs[4].digest
    assert left_out == ["broken", f"{gone}: it diverged", f"{own}: the page does not know a task or model of your own"]


def test_labels_tell_options():
    assert label_of(RunSpec.of({"model": "tpr"})) == "tpr"


def test_the_command_writes_the_page(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["explore"]) == 0
    assert "without trained models" in capsys.readouterr().out
    assert (tmp_path / "explorer" / "explore.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_the_command_opens_the_page_if_asked(tmp_path, monkeypatch):
    opened = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert main(["explore", "--out", "elsewhere", "--open"]) == 0
    assert opened == [(tmp_path / "elsewhere" / "explore.html").as_uri()]


def test_a_store_that_is_not_there_is_told(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["explore", "--store", "missing"]) == 1
    assert "no store here" in capsys.readouterr().err
    (tmp_path / "file").touch()
    assert main(["explore", "--out", "file"]) == 1
    assert "cannot be written" in capsys.readouterr().err


def test_the_version_is_told(written):
    assert __version__ in written
