"""Damaged folders: one sentence with the file's name, for each kind; and no code of a folder ever runs."""

import ast
import json
from pathlib import Path

import pytest

import decoders
from decoders.models.loading import load
from decoders.refusal import Refusal
from explorer import cli
from explorer.runs.model_pool import Loader
from tests.helpers import tiny_models


def change(path: Path, **keys) -> None:
    """Puts other values into a JSON file."""
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | keys), "utf-8")


def cut(path: Path, share: float) -> None:
    """Keeps the beginning of a file."""
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])


DAMAGE = {
    "config cut": (lambda f: cut(f / "config.json", 0.5), "the file config.json is not a JSON object"),
    "config a list": (
        lambda f: (f / "config.json").write_text("[]", "utf-8"),
        "the file config.json is not a JSON",
    ),
    "config not text": (lambda f: (f / "config.json").write_bytes(b"\xff\xfe\x00"), "the file config.json"),
    "weights cut": (lambda f: cut(f / "model.safetensors", 0.5), "the file model.safetensors is damaged"),
    "weights empty": (lambda f: cut(f / "model.safetensors", 0), "the file model.safetensors is damaged"),
    "no tokenizer": (
        lambda f: [path.unlink() for path in f.glob("tokenizer*")],
        "its folder holds no tokenizer; put its tokenizer.json beside config.json",
    ),
    "tokenizer cut": (lambda f: cut(f / "tokenizer.json", 0.5), "the file tokenizer.json is not a JSON"),
    "tokenizer of nothing": (
        lambda f: (f / "tokenizer.json").write_text('{"model": {"type": "BPE"}}', "utf-8"),
        "the file tokenizer.json holds no tokenizer",
    ),
    "shapes": (
        lambda f: change(f / "config.json", intermediate_size=64),
        "its files hold model.layers.0.mlp.down_proj.weight with the shape [32, 48] where",
    ),
    "odd value": (lambda f: change(f / "config.json", num_attention_heads=0), "could not be loaded: "),
    "value of text": (lambda f: change(f / "config.json", hidden_size="many"), "could not be loaded: "),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_folder_is_one_sentence_that_names_the_file(damage, tmp_path, capsys):
    name = tiny_models.save(tmp_path / "own")
    harm, says = DAMAGE[damage]
    harm(tmp_path / "own")
    with pytest.raises(Refusal) as refused:
        load(name, "cpu")
    told = str(refused.value)
    assert told.startswith(f"The model {name!r} could not be loaded: ") and says in told and "\n" not in told
    loader = Loader(name, None, "cpu")
    loader.load()
    assert (loader.state, loader.sentence) == ("failed", told)  # the page says the same
    with pytest.raises(SystemExit) as ended:
        cli.main(["run", "--strategy", "greedy", "--prompt", "a", "--model", name, "--device", "cpu"])
    assert ended.value.code == 2 and told.split(": ", 1)[1] in " ".join(capsys.readouterr().err.split())


CONFIG = {"model_type": "evil", "auto_map": {"AutoConfig": "evil.Own", "AutoModelForCausalLM": "evil.Own"}}
WORDS = {"tokenizer_class": "Own", "auto_map": {"AutoTokenizer": ["evil.Own", "evil.Own"]}}


@pytest.mark.parametrize(("file", "keys"), [("config.json", CONFIG), ("tokenizer_config.json", WORDS)])
def test_the_code_of_a_folder_never_runs_and_nobody_is_asked(file, keys, tmp_path, monkeypatch):
    folder, marker = tmp_path / "own", tmp_path / "it ran"
    name, asked = tiny_models.save(folder), []
    (folder / "evil.py").write_text(f"open({str(marker)!r}, 'w')\nclass Own: pass\n", "utf-8")
    change(folder / file, **keys)
    monkeypatch.setattr("builtins.input", lambda *words: asked.append(words) or "y")  # a terminal's answer
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path))
    try:
        load(name, "cpu")
    except Refusal as refused:
        assert "Python code of its own, which is not run here" in str(refused)
    assert not marker.exists() and not asked


def test_every_call_that_could_run_a_folders_code_forbids_it():
    """`from_pretrained` and `from_config` of the classes that look into a folder for the class to load."""
    calls = 0
    for path in Path(decoders.__file__).parents[1].glob("[dev]*/**/*.py"):
        written = path.read_text("utf-8")
        if "from_pretrained" not in written and "from_config" not in written:
            continue  # to parse all files takes seconds
        for node in ast.walk(ast.parse(written)):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            of = ast.unparse(node.func.value)
            loads = node.func.attr in ("from_pretrained", "from_config")
            if loads and of.startswith(("Auto", "architecture")):
                calls += 1
                given = {one.arg: ast.unparse(one.value) for one in node.keywords}
                assert given.get("trust_remote_code") == "False", f"{path}:{node.lineno}"
    assert calls > 8
