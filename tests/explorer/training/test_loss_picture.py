"""Loss pictures: what the cards show is what the curves say."""

import csv
import re
import xml.etree.ElementTree as ElementTree

import pytest

from explorer.training.loop import MODELS
from explorer.training.loss_picture import APART, loss_picture

SVG = "{http://www.w3.org/2000/svg}"
PICTURES = sorted(str(path.relative_to(MODELS)) for path in MODELS.glob("*/loss*.svg"))


@pytest.mark.parametrize("picture", PICTURES)
def test_each_card_shows_the_pictures_of_its_own_curves(picture):
    path = MODELS / picture
    part = path.stem.removeprefix("loss").removeprefix("-")
    title = ElementTree.parse(path).getroot().get("aria-label")
    columns = ["million_tokens", "training_loss", "held_out_loss"]
    if part:  # of several modules in one folder
        columns = ["million_tokens", f"{part}_training_loss", f"{part}_held_out_loss"]
    with (path.parent / "loss.csv").open(newline="", encoding="utf-8") as file:
        curve = [tuple(float(row[column]) for column in columns) for row in csv.DictReader(file)]
    unit = f"loss of {part}" if part else r"nats per \w+"
    assert re.fullmatch(f"{path.parent.name}: {unit}", title)
    assert path.read_text("utf-8") == loss_picture(curve, title)
    assert f"]({path.name})" in (path.parent / "README.md").read_text("utf-8")


@pytest.mark.parametrize(
    "curve",
    [
        [(0.2, 5.0, 4.0), (0.4, 3.0, 3.5), (9.9, 2.0, 2.5)],
        [(0.5, 2.0, 2.0)],
        [(1.0, 3.001, 3.0), (2.0, 2.001, 2.0)],
        [(0.001, 9.0, 0.4), (0.002, 1e-3, 0.4)],
    ],
)
def test_lines_and_words_stay_inside_and_apart(curve):
    """All points lie inside, at places that follow the numbers; the names of the two lines never meet."""
    root = ElementTree.fromstring(loss_picture(curve, "toy"))
    width, height = map(float, root.get("viewBox").split()[2:])
    lines = {line.get("class"): line.get("points") for line in root.iter(f"{SVG}polyline")}
    for column, kind in ((1, "read"), (2, "held")):
        points = [tuple(map(float, p.split(","))) for p in lines[kind].split()]
        assert all(0 < x < width and 0 < y < height for x, y in points)
        for (x, y), (u, v), before, after in zip(points, points[1:], curve, curve[1:], strict=False):
            assert u > x and (v >= y) == (after[column] <= before[column])
    names = [t for t in root.iter(f"{SVG}text") if re.match(r"(training|held out) \d", t.text)]
    assert len(names) == 2
    assert abs(float(names[0].get("y")) - float(names[1].get("y"))) >= APART - 0.1
