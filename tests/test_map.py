"""docs/map.md says what the folders of decoders/ hold."""

import runpy
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"


def test_the_map_is_current():
    page = runpy.run_path(str(DOCS / "map.py"))["page"]()
    assert (DOCS / "map.md").read_text("utf-8") == page, "run: python docs/map.py"


def test_every_folder_with_code_is_on_the_map():
    folders = {
        file.parent.relative_to(DOCS.parent).as_posix() for file in DOCS.parent.glob("decoders/**/*.py")
    }
    page = (DOCS / "map.md").read_text("utf-8")
    assert len(folders) > 30 and not [folder for folder in folders if f"`{folder}/`" not in page]
