"""A draft or heads that a run would not use, or that are not there, are refused with their name."""

import json
import shutil
from pathlib import Path

import pytest

import decoding_explorer as dx
from decoders.lane import Lane
from decoders.models.catalog import SHIPPED, exits
from decoders.models.loading import load
from decoders.models.model_heads import shipped_for
from decoders.models.names import shipped_name
from decoders.refusal import Refusal
from explorer import cli
from explorer.acceptance import command
from explorer.cli_options import parser
from explorer.runs.load_pair import load_models
from explorer.runs.model_pool import Loader

HEADS = str(SHIPPED / "llama-tiny-heads")
RUN = ("run", "--prompt", "Once", "--device", "cpu", "--max-new-tokens", "2")


def refused(capsys, *options: str) -> str:
    """The line with which the command ends."""
    with pytest.raises(SystemExit) as ended:
        cli.main([*RUN, *options])
    assert ended.value.code == 2
    return " ".join(capsys.readouterr().err.split())


@pytest.fixture
def folders(tmp_path):
    """A folder of each kind that holds no heads: kind -> name."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "config.json").write_text('{"model_type": "llama"}', "utf-8")
    return {"empty": str(tmp_path / "empty"), "missing": "no/such-folder", "notes": str(tmp_path / "notes")}


@pytest.mark.parametrize("kind", ["empty", "missing", "notes"])
def test_a_draft_that_eagle_would_not_use_is_refused_everywhere(kind, folders, capsys):
    name = folders[kind]
    said = f"No strategy of this run uses the draft {name!r}"
    assert said in refused(capsys, "--strategy", "eagle", "--draft", name)
    with pytest.raises(Refusal, match=said):
        dx.decode("eagle", "Once", draft=name)


def test_each_draft_must_have_a_role_in_a_strategy_of_the_run():
    with pytest.raises(Refusal, match="uses the draft 2 'llama-tiny-draft-distilled'"):
        load_models("llama-tiny", "llama-tiny-draft,llama-tiny-draft-distilled", ("target", "draft"), "cpu")


@pytest.mark.parametrize("kind", ["empty", "missing", "notes"])
def test_named_heads_that_are_none_are_refused(kind, folders, capsys):
    assert repr(folders[kind]) in refused(capsys, "--strategy", "eagle", "--heads", folders[kind])
    loader = Loader("llama-tiny", folders[kind], "cpu")
    loader.load()
    assert loader.state == "failed" and folders[kind] in loader.sentence


def test_a_folder_of_heads_without_a_module_is_refused(tmp_path):
    shutil.copytree(HEADS, tmp_path / "own")
    config = json.loads((tmp_path / "own" / "config.json").read_text("utf-8"))
    (tmp_path / "own" / "config.json").write_text(json.dumps(config | {"modules": {}}), "utf-8")
    with pytest.raises(Refusal, match="holds no draft heads"):
        load_models("llama-tiny", None, ("target",), "cpu", [str(tmp_path / "own")])


def test_heads_that_no_lane_asks_for_are_refused_with_their_kinds(capsys):
    said = "No strategy of this run uses the heads 'llama-tiny-judge' (judge)"
    assert said in refused(capsys, "--strategy", "eagle", "--heads", "llama-tiny-judge")
    cli.main([*RUN, "--strategy", "eagle", "--heads", HEADS])
    with pytest.raises(Refusal, match="uses the heads 'llama-tiny-judge'"):
        dx.decode("eagle", "Once", draft="llama-tiny-judge", max_new_tokens=2)
    assert dx.decode("eagle", "Once", draft="llama-tiny-heads", max_new_tokens=2).output()
    assert not dx._kept("llama-tiny").own_heads


def test_a_report_of_acceptance_refuses_them_too(tmp_path):
    (tmp_path / "prompts.txt").write_text("Once\n", "utf-8")
    given = ["acceptance", "--draft", "medusa", "--prompts", str(tmp_path / "prompts.txt")]
    options = parser().parse_args([*given, "--max-new-tokens", "2", "--heads", "llama-tiny-judge"])
    with pytest.raises(Refusal, match="uses the heads 'llama-tiny-judge'"):
        command.command(options)


def test_a_copy_of_a_shipped_target_has_its_heads(tmp_path):
    """By what is in the folder, not by its name: another model under the shipped name has none."""
    copy = Path(shutil.copytree(SHIPPED / "llama-tiny", tmp_path / "mine"))
    model = load(str(copy), "cpu")
    assert set(model.heads) == set(shipped_for(load("llama-tiny", "cpu"))) != set()
    assert shipped_name(str(copy)) == "llama-tiny" and exits(shipped_name(str(copy))) == [3, 6, 9]
    assert Lane("eagle", model.encode("Once"), {"target": model}).advance()
    other = shutil.copytree(SHIPPED / "llama-tiny-draft", tmp_path / "llama-tiny")
    assert shipped_name(str(other)) == "llama-tiny-draft"
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    assert shipped_name(str(copy)) == str(copy)
