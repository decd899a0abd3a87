"""Published draft heads where a draft model is named: by command, and in the page's field for the draft."""

import json

import pytest
import torch

from decoders.lane import Lane, Limits
from explorer.cli import main
from explorer.runs.load_pair import load_models
from explorer.runs.model_pool import Loader
from explorer.runs.validation import Choice
from tests.decoders.models.test_published_heads import CONFIG, eagle_tensors, medusa_tensors
from tests.helpers import published_heads as files
from tests.helpers import tiny_models

ASKED = {"tree": "chain", "depth": 3}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A target, and an EAGLE drafter of random weights for it."""
    path = tmp_path_factory.mktemp("pair")
    return tiny_models.save(path / "target", seed=3), files.write(path / "eagle", CONFIG, eagle_tensors())


def greedy(target) -> list[int]:
    return tiny_models.generate(target, [5, 6], max_new_tokens=12)


def test_a_folder_of_heads_is_a_draft_on_the_command_line(folders, capsys):
    models = load_models(folders[0], folders[1], ("target",), "cpu")
    assert models.keys() == {"target"} and folders[1] in models["target"].note
    trace = Lane("eagle", [5, 6], models, ASKED, limits=Limits(12)).run()
    assert trace.output() == greedy(models["target"]) and trace.costs.totals()["draft_forwards"] > 0
    asked = ["--strategy", "eagle2", "--prompt", "the cat", "--model", folders[0], "--draft", folders[1]]
    main(["run", *asked, "--device", "cpu", "--max-new-tokens", "8", "--json"])
    assert json.loads(capsys.readouterr().out)["totals"]["proposed"] > 0


def test_a_folder_of_heads_is_a_draft_in_the_page(folders):
    """Its set has the heads; another set of the same target has not, and shares its weights."""
    loader = Loader(folders[0], None, "cpu")
    loader.load()
    headed = loader.open(Choice(folders[0], folders[1], device="cpu"))
    headed.wait()
    assert headed.models.keys() == {"target"} and "eagle" in headed.models["target"].heads
    assert headed.models["target"].model is loader.models["target"].model
    assert not loader.models["target"].heads and not loader.models["target"].own_heads
    assert "Together" in (
        sentence := loader.need(Choice(folders[0], folders[1], "bfloat16", "cpu"))["sentence"]
    )
    assert sentence.count("\n") == 0
    again = loader.open(Choice(folders[0], None, "auto", "cpu"))
    again.wait()
    assert not again.models["target"].own_heads


def test_pickled_heads_are_refused_until_they_are_converted(folders, tmp_path, capsys):
    (tmp_path / "config.json").write_text(json.dumps({"medusa_num_heads": 3}), "utf-8")
    torch.save(medusa_tensors(), tmp_path / "medusa_lm_head.pt")
    with pytest.raises(ValueError, match="convert-heads"):
        load_models(folders[0], str(tmp_path), ("target",), "cpu")
    main(["convert-heads", str(tmp_path)])
    assert "medusa_lm_head.safetensors" in capsys.readouterr().out
    target = load_models(folders[0], str(tmp_path), ("target",), "cpu")["target"]
    trace = Lane("medusa", [5, 6], {"target": target}, ASKED, limits=Limits(12)).run()
    assert trace.output() == greedy(target)
    with pytest.raises(SystemExit):
        main(["convert-heads", folders[0]])


def test_heads_for_another_target_are_refused_in_one_sentence(tmp_path, folders):
    wide = files.write(tmp_path / "wide", CONFIG | {"hidden_size": 64}, eagle_tensors())
    with pytest.raises(ValueError, match="their hidden size is 64, that of the target is 32"):
        load_models(folders[0], wide, ("target",), "cpu")
