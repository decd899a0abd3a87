"""The notebooks run, their stored outputs are what they give, and what their prose says is so."""

import json
import re
import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
RUN = runpy.run_path(str(FOLDER / "run.py"))
NAMES = sorted(path.name for path in FOLDER.glob("*.ipynb"))


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """ran(name): (the notebook as it is stored, as it is after a run, its variables), each run once."""
    done = {}

    def get(name: str):
        if name not in done:
            stored, again = RUN["read"](FOLDER / name), RUN["read"](FOLDER / name)
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(tmp_path_factory.mktemp("notebook"))
                done[name] = stored, again, RUN["run"](again)
        return done[name]

    return get


def texts(notebook: dict) -> list[str]:
    """What the outputs say in words."""
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", [])]
    return ["".join(one.get("text") or one["data"]["text/plain"]) for one in outputs]


def kinds(notebook: dict) -> list[list[str]]:
    """The kinds of the values that cells show."""
    return [
        sorted(output.get("data", {})) for cell in notebook["cells"] for output in cell.get("outputs", [])
    ]


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_and_has_the_outputs_that_are_stored(name, ran):
    stored, again, _ = ran(name)
    assert texts(stored) == texts(again) and kinds(stored) == kinds(again)
    assert ["image/svg+xml", "text/plain"] in kinds(stored)


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_installs_only_what_is_missing_and_asks_its_reader(name):
    notebook = RUN["read"](FOLDER / name)
    first = next("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code")
    assert (
        first.startswith("try:\n    import decoding_explorer as dx\nexcept ModuleNotFoundError:")
        and "    %pip install --quiet decoding-explorer\n" in first
    )
    prose = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown"]
    assert sum(text.count("?**") + text.count(".**") for text in prose) >= 2
    assert max(map(len, prose)) < 900
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", "\n".join(prose)):
        assert (FOLDER / link).exists(), link


def test_notebooks_are_small():
    assert len(NAMES) == 5
    assert sum((FOLDER / name).stat().st_size for name in NAMES) < 1_000_000
    for name in NAMES:
        assert json.loads((FOLDER / name).read_text("utf-8"))["nbformat"] == 4


def test_first_look(ran):
    *_, given = ran("1_first_look.ipynb")
    greedy, beams, drafted = given["greedy"], given["beams"], given["drafted"]
    assert beams.text() != greedy.text() == drafted.text()
    assert beams.costs.logprob > greedy.costs.logprob
    assert drafted.costs.target_forwards < greedy.costs.target_forwards / 2
    *_, four, eight = re.findall(
        r"draft of \d: +(\d+) .*, +(\d+) draft", "\n".join(texts(ran("1_first_look.ipynb")[1]))
    )
    assert int(eight[0]) < int(four[0]) and int(eight[1]) > int(four[1])


def test_rejected_drafts(ran):
    *_, given = ran("2_rejected_drafts.ipynb")
    assert not given["broken"] and given["tested"](given["trace"])
    assert len(given["luck"]) < len(given["rejected"]) / 2
    rate = {name: given["acceptance"](given[name])[0] for name in ("plain", "distilled", "certain")}
    assert rate["plain"] < rate["distilled"] < rate["certain"]
    shares = [
        float(share)
        for share in re.findall(r"depth \d: ([\d.]+)", texts(ran("2_rejected_drafts.ipynb")[1])[-1])
    ]
    assert len(shares) == 4 and shares == sorted(shares, reverse=True)


def test_watch_generate(ran):
    _, notebook, given = ran("3_watch_generate.ipynb")
    assert "\n".join(texts(notebook)).count("the same tokens: True") == 2
    assert given["run"].trace.output() == given["ours"].output()
    assert given["tokenizer"].decode(given["output"][0, given["inputs"].shape[1] :]) in texts(notebook)[1]


def test_beam_search_and_sampling(ran):
    _, notebook, given = ran("4_beam_search_and_sampling.ipynb")
    beams, drawn, repeated = given["beams"], given["drawn"], given["repeated"]
    assert repeated(beams) > 0.25 and all(repeated(trace) < 0.05 for trace in drawn)
    assert all(trace.costs.logprob < 2 * beams.costs.logprob for trace in drawn)
    first, *later = [p for _, p in given["chances"]]
    assert first == pytest.approx(0.2, abs=0.05) and min(later) > 1 / 3 and len(later) >= 3
    low, *_, high = [int(share) for share in re.findall(r"repeated +(\d+)%  …", "\n".join(texts(notebook)))]
    assert low > 20 and high == 0
    assert repeated(given["forbidden"], 3) == 0
    assert given["forbidden"].costs.logprob < beams.costs.logprob


def test_constraints(ran):
    _, notebook, given = ran("5_constraints.ipynb")
    own, count, weights = given["own"], given["count"], given["weights"]
    assert own["big"] / given["total"] > 0.85
    assert count["little"] / count.total() > 0.9
    assert weights["big"] / weights.total() > 0.7
    spaced, compact = re.findall(r"kept ([\d.]+) per token\n(.*)", texts(notebook)[-1])
    assert float(spaced[0]) > 0.95 and float(compact[0]) < 0.1
    facts = {"name": "Max", "age": 98, "city": "Cairo", "pet": "cat"}
    values = [json.loads(one[1].removesuffix("<|endoftext|>")) for one in (spaced, compact)]
    assert values[0] == facts != values[1] and values[1].keys() == facts.keys()
