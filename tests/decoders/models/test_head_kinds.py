"""The table of heads: each entry finds its class, and a model reads a head when it is first asked for."""

import json
import subprocess
import sys

import pytest
from torch import nn

from decoders.models.catalog import SHIPPED, kind
from decoders.models.head_kinds import KINDS
from decoders.models.loading import load
from decoders.models.model_heads import Heads


@pytest.mark.parametrize("name", KINDS)
def test_an_entry_finds_the_class_of_its_kind(name):
    head = KINDS[name].head
    assert issubclass(head, nn.Module) and head.kind == name


def test_every_shipped_head_is_of_a_kind_in_the_table():
    """And a folder bears the name of its kind where that kind is alone in it."""
    shipped = [json.loads(path.read_text("utf-8")) for path in SHIPPED.glob("*/config.json")]
    folders = [config for config in shipped if "modules" in config]
    for config in folders:
        kinds = {module["kind"] for module in config["modules"].values()}
        assert kinds <= KINDS.keys() and (kind(config) == "heads") != any(KINDS[one].alone for one in kinds)
    assert len(folders) > 10


def test_the_table_needs_no_torch():
    code = "import sys, decoders.models.catalog; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_folder_is_read_when_one_of_its_kinds_is_asked_for():
    read = []

    def folder() -> dict[str, nn.Module]:
        read.append(1)
        return {"medusa": nn.Linear(1, 1), "eagle": nn.Linear(1, 1)}

    heads, own = Heads(dict.fromkeys(("medusa", "eagle"), folder)), nn.Linear(1, 1)
    heads["eagle"] = own
    assert list(heads) == ["medusa", "eagle"] and len(heads) == 2 and "judge" not in heads and not read
    assert heads["medusa"] is heads["medusa"] and heads["eagle"] is own and read == [1]
    del heads["eagle"]
    assert "eagle" not in heads and heads.get("judge") is None
    with pytest.raises(KeyError):
        del heads["eagle"]


def test_a_model_has_the_heads_that_are_shipped_for_it():
    target = load("llama-tiny")
    assert {"medusa", "hydra", "judge", "reward", "lens", "m2r2"} <= target.heads.keys()
    assert "acceptance" not in target.heads and "fragments" not in target.heads
    assert load("llama-tiny-draft-distilled").heads.keys() == {"acceptance"}
