"""What a measurement leaves beside a model."""

import json

from explorer.training.evaluation.findings import Findings, keep


def test_findings_are_written_beside_the_model_and_added_to_its_facts(tmp_path):
    """Texts as they are, everything else as JSON; facts that are not measured stay."""
    (tmp_path / "facts.json").write_text('{"parameters": 3, "canvas": 1}', "utf-8")
    keep(tmp_path, Findings({"ranks.json": {"story": {"share": 0.5}}, "sample.txt": "Once."}, {"canvas": 40}))
    assert json.loads((tmp_path / "ranks.json").read_text("utf-8")) == {"story": {"share": 0.5}}
    assert (tmp_path / "sample.txt").read_text("utf-8") == "Once.\n"
    facts = (tmp_path / "facts.json").read_text("utf-8")
    assert json.loads(facts) == {"parameters": 3, "canvas": 40} and facts.endswith("}\n")
    keep(tmp_path, Findings({"ranks.json": {}}))
    assert (tmp_path / "facts.json").read_text("utf-8") == facts
