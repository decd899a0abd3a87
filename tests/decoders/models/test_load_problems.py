"""Damaged folders: one sentence with the file's name, for each kind; and no code of a folder ever runs."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import decoders
from decoders.lane import Lane
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


LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"


def put(name: str, text: str | bytes):
    """The damage that a file has other contents."""
    data = text.encode() if isinstance(text, str) else text
    return lambda folder: (folder / name).write_bytes(data)


def more_tokens(folder: Path) -> None:
    """Gives the tokenizer three tokens more than the model scores."""
    words = tiny_models.tokenizer.__wrapped__()
    words.add_tokens(["<one>", "<two>", "<three>"])
    words.save_pretrained(folder)


def in_shards(index: str):
    """The damage that the weights lie in the files of an index."""

    def harm(folder: Path) -> None:
        (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
        (folder / "model.safetensors.index.json").write_text(index, "utf-8")

    return harm


DAMAGE = {
    "config cut": (lambda f: cut(f / "config.json", 0.5), "the file config.json is not a JSON object ("),
    "config empty": (put("config.json", ""), "the file config.json is empty; copy or download it again."),
    "config a list": (put("config.json", "[]"), "the file config.json is not a JSON object"),
    "config not text": (put("config.json", b"\xff\xfe\x00"), "the file config.json is not a JSON object"),
    "config a pointer": (
        put("config.json", LFS),
        "the file config.json is only a pointer",
    ),
    "config says nothing": (put("config.json", "{}"), "the file config.json names no model_type; copy"),
    "config of nothing": (lambda f: change(f / "config.json", model_type="nothing"), "could not be loaded: "),
    "weights cut": (lambda f: cut(f / "model.safetensors", 0.5), "the file model.safetensors is damaged"),
    "weights cut in the header": (
        lambda f: cut(f / "model.safetensors", 0.001),
        "the file model.safetensors is damaged or incomplete (",
    ),
    "weights empty": (lambda f: cut(f / "model.safetensors", 0), "the file model.safetensors is empty; copy"),
    "weights a pointer": (
        put("model.safetensors", LFS),
        "the file model.safetensors is only a pointer",
    ),
    "a shard is missing": (
        in_shards('{"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-2.safetensors"}}'),
        "the file model-2.safetensors is missing, which model.safetensors.index.json names",
    ),
    "an index of nothing": (
        in_shards('{"weight_map": 5}'),
        "the file model.safetensors.index.json does",
    ),
    "no tokenizer": (
        lambda f: [path.unlink() for path in f.glob("tokenizer*")],
        "its folder holds no tokenizer; put its tokenizer.json beside config.json",
    ),
    "tokenizer cut": (lambda f: cut(f / "tokenizer.json", 0.5), "the file tokenizer.json is not a JSON"),
    "tokenizer empty": (put("tokenizer.json", ""), "the file tokenizer.json is empty; copy"),
    "tokenizer a pointer": (
        put("tokenizer.json", LFS),
        "the file tokenizer.json is only a pointer",
    ),
    "tokenizer of nothing": (
        put("tokenizer.json", '{"model": {"type": "BPE"}}'),
        "the file tokenizer.json holds no tokenizer",
    ),
    "tokenizer settings cut": (
        put("tokenizer_config.json", "{"),
        "the file tokenizer_config.json is not",
    ),
    "tokenizer larger": (
        more_tokens,
        "its tokenizer has the token '<three>' with the id 261, and the model scores 259 tokens; use the",
    ),
    "template not text": (
        put("chat_template.jinja", b"\xff\xfe"),
        "the file chat_template.jinja is not UTF-8 text (2 bytes)",
    ),
    "generation settings cut": (
        lambda f: cut(f / "generation_config.json", 0.5),
        "the file generation_config.json is not a JSON object",
    ),
    "end out of range": (
        lambda f: change(f / "generation_config.json", eos_token_id=[2, 999]),
        "its generation_config.json or config.json sets eos_token_id to 999, and the model scores 259 tokens",
    ),
    "beginning out of range": (
        lambda f: change(f / "generation_config.json", bos_token_id=-3),
        "sets bos_token_id to -3, and the model scores 259 tokens; correct it.",
    ),
    "shapes": (
        lambda f: change(f / "config.json", intermediate_size=64),
        "its files hold model.layers.0.mlp.down_proj.weight with the shape [32, 48] where",
    ),
    "more layers": (
        lambda f: change(f / "config.json", num_hidden_layers=3),
        "its files lack model.layers.2.input_layernorm.weight and 8 more of LlamaForCausalLM; use",
    ),
    "other vocabulary": (
        lambda f: change(f / "config.json", vocab_size=100),
        "its files hold lm_head.weight with the shape [259, 32] where its config.json asks for [100, 32] and",
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
    try:
        loader.need(loader.choice)  # the page asks this first
    except Refusal as refused:
        assert "\n" not in str(refused)
    with pytest.raises(SystemExit) as ended:
        cli.main(["run", "--strategy", "greedy", "--prompt", "a", "--model", name, "--device", "cpu"])
    assert ended.value.code == 2 and told.split(": ", 1)[1] in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("token", [259, 10**9, -1])
def test_a_token_that_the_model_lacks_is_a_sentence(token, tiny_model):
    """Such as a special token that the class of a tokenizer adds, which its model never had."""
    with pytest.raises(Refusal, match=f"The prompt has the token {token:,}, and 'tiny-llama' scores 259"):
        Lane("greedy", [5, token], {"target": tiny_model("llama")})


OWN = {"AutoConfig": "evil.Own", "AutoModelForCausalLM": "evil.Own"}
OWN_TOKENIZER = {"tokenizer_class": "Own", "auto_map": {"AutoTokenizer": ["evil.Own", None]}}
CODE = {  # what of a folder has code of its own: (file, keys, whether transformers can do without)
    "an unknown architecture": ("config.json", {"model_type": "evil", "auto_map": OWN}, False),
    "a known architecture": ("config.json", {"auto_map": OWN}, True),
    "the tokenizer": ("tokenizer_config.json", OWN_TOKENIZER, False),
    "the processor": ("processor_config.json", {"auto_map": {"AutoProcessor": "evil.Own"}}, True),
    "generate": ("custom_generate/requirements.txt", {}, True),
}
LOADS = """
import json, sys
from decoders.models.loading import load
from decoders.refusal import Refusal
said = {}
for name in sys.argv[1:]:
    try:
        said[name] = type(load(name, "cpu").model).__name__
    except Refusal as refused:
        said[name] = str(refused)
print(json.dumps(said))
"""


def test_the_code_of_a_folder_never_runs_and_nobody_is_asked_at_a_terminal(tmp_path):
    """transformers asks whoever sits at a terminal, unless it is told not to run such code."""
    marker = tmp_path / "it ran"
    evil = f"open({str(marker)!r}, 'w')\nclass Own: pass\ndef generate(*given): pass\n"
    names = {}
    for number, (what, (file, keys, _)) in enumerate(CODE.items()):
        folder = tmp_path / str(number)
        names[what] = tiny_models.save(folder)
        (folder / file).parent.mkdir(exist_ok=True)
        for place in ("evil.py", "custom_generate/generate.py")[: 1 + ("/" in file)]:
            (folder / place).write_text(evil, "utf-8")
        (folder / file).touch()
        if keys:
            known = json.loads((folder / file).read_text("utf-8") or "{}")
            (folder / file).write_text(json.dumps(known | keys), "utf-8")
    own, terminal = os.openpty()
    done = subprocess.run(
        [sys.executable, "-c", LOADS, *names.values()],
        stdin=terminal,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "HF_MODULES_CACHE": str(tmp_path / "modules")},
        check=True,
    )
    os.close(own)
    os.close(terminal)
    said = json.loads(done.stdout.splitlines()[-1])
    for what, (_, _, without) in CODE.items():
        refused = "it needs Python code of its own, which is not run here" in said[names[what]]
        assert (said[names[what]] == "LlamaForCausalLM") if without else refused, what
    assert "[y/N]" not in done.stdout + done.stderr and not marker.exists()


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
            if loads and of.removeprefix("transformers.").startswith(("Auto", "architecture")):
                calls += 1
                given = {one.arg: ast.unparse(one.value) for one in node.keywords}
                assert given.get("trust_remote_code") == "False", f"{path}:{node.lineno}"
    assert calls > 8
