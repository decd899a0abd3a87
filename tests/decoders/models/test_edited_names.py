"""Names of edited models: what they ask for, what is refused, and that loading makes it."""

import pytest
import torch

from decoders.models.loading import load
from decoders.models.memory_estimate import footprint
from decoders.models.names import resolve
from explorer.cli import main
from tests.helpers import tiny_models


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    return tiny_models.save(tmp_path_factory.mktemp("models") / "base")


@pytest.mark.parametrize(
    ("tail", "says"),
    [
        (":bits=1", "not a number of bits; write one from 2 to 16"),
        (":bits=x", "not a number of bits"),
        (":wanda=1.5", "not a share of a model; write a number from 0 to 1"),
        (":magnitude=4of2", "keeps no weights; write a pattern such as 2of4"),
        (":drop=b3", "names no block; write a3, m3 or 3"),
        (":sparsify=1", "There is no edit 'sparsify' of a model; use magnitude"),
        ("+0.5.5*llama-tiny-flaws", "not a weight of a low-rank module"),
    ],
)
def test_what_is_no_edit_is_refused_before_anything_is_loaded(tail, says):
    with pytest.raises(ValueError, match=says):
        resolve(f"llama-tiny{tail}")


def test_an_edited_model_takes_as_much_memory_as_its_base(folder):
    assert footprint(f"{folder}:bits=4").parameters == footprint(folder).parameters


def test_loading_makes_the_edits_in_their_order(folder):
    whole = load(folder, "cpu")
    for tail in (":magnitude=0", ":drop=", ":rank=1.0:bits=16"):
        same = load(f"{folder}{tail}", "cpu")
        for one, other in zip(whole.model.parameters(), same.model.parameters(), strict=True):
            torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-3)
    name = f"{folder}:drop=1:wanda=2of4"
    found = load(name, "cpu")
    assert found.name == name and found.facts()["layers"] == 1
    kept = found.model.model.layers[0].mlp.up_proj.weight
    assert (kept.unflatten(-1, (-1, 4)).ne(0).sum(-1) == 2).all()
    nonzero = kept.ne(0)
    assert torch.equal(kept[nonzero], whole.model.model.layers[1].mlp.up_proj.weight[nonzero])
    assert found.token_key == whole.token_key


def test_a_sum_of_shipped_modules_knows_the_tokens_of_both():
    both = load("llama-tiny+0.5*llama-tiny-verilog+0.5*llama-tiny-summaries", "cpu")
    assert both.engine.vocabulary == len(both.tokenizer) == 4096 + 1 + 13
    assert both.tokenizer.convert_tokens_to_ids("[FRAG]") == 4096
    with pytest.raises(ValueError, match="'llama-tiny' is not a low-rank module; add one such as"):
        load("llama-tiny+1*llama-tiny", "cpu")
    with pytest.raises(ValueError, match="change 'llama-tiny', not 'llama-tiny-draft'"):
        load("llama-tiny-draft+1*llama-tiny-flaws", "cpu")


def test_the_command_line_decodes_with_one_and_refuses_a_wrong_one(capsys, folder):
    run = ["run", "--strategy", "greedy", "--prompt", "the cat", "--max-new-tokens", "2", "--json"]
    main([*run, "--model", f"{folder}:bits=4"])
    assert '"output_tokens"' in capsys.readouterr().out
    with pytest.raises(SystemExit) as stopped:
        main([*run, "--model", f"{folder}:bits=99"])
    assert stopped.value.code == 2 and "from 2 to 16" in capsys.readouterr().err
