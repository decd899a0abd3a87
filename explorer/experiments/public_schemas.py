"""How do the engines handle the public benchmark's small schemas?

JSONSchemaBench (Geng et al. 2025) comes without a licence, so none of its schemas is shipped: `--schemas
FOLDER` names a copy of the benchmark's repository. Of its groups Github_trivial and Github_easy, this uses
the schemas with odd numbers and at most 256 characters; those with even numbers are left for tuning. The
instances are the benchmark's own, as far as jsonschema agrees with them (draft 2020-12, formats too).
Declared, empirical, compliance, over- and under-constrained as in structured-outputs. The target was trained
on none of these texts, and a text that has not ended after 120 tokens does not validate.
"""

import json
import re
from pathlib import Path

from decoders.refusal import Refusal
from explorer.experiments import Models, Result
from explorer.experiments import structured_outputs as study

PAPERS = study.PAPERS
READS_SCHEMAS = True
GROUPS = ("Github_trivial", "Github_easy")
SMALL = 256  # characters, as the benchmark counts them
FILE = re.compile(rf"({'|'.join(GROUPS)})---o(\d*[13579])\.json")


def read(folder: Path) -> list[dict]:
    """The schemas, in the form of those of `structured_outputs`. Raises Refusal with one sentence if there
    are none.
    """
    schemas = []
    for path in sorted((folder / "maskbench" / "data").glob("Github_*.json")):
        if not (name := FILE.fullmatch(path.name)):
            continue
        held = json.loads(path.read_text("utf-8"))
        if held["meta"]["full_size"] > SMALL:
            continue
        one = {"tier": name[1].lower().replace("_", "-"), "name": f"o{name[2]}", "schema": held["schema"]}
        for kind in ("valid", "invalid"):
            values = [test["data"] for test in held.get("tests", []) if test["valid"] == (kind == "valid")]
            agreed = [v for v in values if study.valid(held["schema"], json.dumps(v)) == (kind == "valid")]
            one[kind] = agreed
        schemas.append(one)
    if not schemas:
        raise Refusal(f"{folder} is not a copy of JSONSchemaBench: it has no maskbench/data/Github_*.json.")
    return schemas


def run(models: Models, folder: Path) -> Result:
    """One row per engine and group, and one for each engine as a whole."""
    return study.compared(models, read(folder))


finding = study.finding
stands = study.stands
