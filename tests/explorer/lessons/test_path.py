"""The path through the lessons: it holds each once, takes new ones as they come, and has their pictures."""

import json
import re
from html.parser import HTMLParser

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from explorer.lessons import lesson as lessons
from explorer.lessons import path
from explorer.lessons.publish_pictures import picture
from explorer.lessons.stop_cards import pages
from explorer.page.tabs import lessons as tab
from explorer.page.tabs.method_rows import PICTURES

LESSONS = lessons.lessons()
NUMBER = re.compile(r"-?\d+\.?\d*")


class Tags(HTMLParser):
    """The tags of some HTML, and its text."""

    def __init__(self, html: str):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data


@pytest.fixture
def another(tmp_path, monkeypatch):
    """another(**fields): the chapters with one more lesson, in whose file these fields are others."""
    monkeypatch.setattr(path, "FOLDER", tmp_path)
    for file in (lessons.ASSETS / "lessons").glob("*.json"):
        (tmp_path / file.name).write_text(file.read_text("utf-8"), "utf-8")

    def chapters(**fields) -> list[dict]:
        plain = json.loads((tmp_path / "13-draft-trees.json").read_text("utf-8")) | fields
        plain = {key: value for key, value in plain.items() if value is not None}
        (tmp_path / "99-another.json").write_text(json.dumps(plain), "utf-8")
        return path.chapters.__wrapped__()

    return chapters


def test_the_path_begins_with_what_a_teacher_wants_and_holds_every_lesson_once():
    names = [lesson["name"] for chapter in path.chapters() for lesson in chapter["lessons"]]
    assert names[:2] == ["greedy-or-sampling", "speculative-acceptance"] and names == list(LESSONS)
    files = {json.loads(file.read_text("utf-8"))["name"] for file in path.FOLDER.glob("*.json")}
    assert len(names) == len(set(names)) and set(names) == files
    assert [lesson["number"] for lesson in LESSONS.values()] == list(range(1, len(LESSONS) + 1))


def test_a_lesson_that_the_path_does_not_name_comes_at_its_end_in_a_chapter_of_its_group(another):
    last = another(name="another", group="Loops", learns=None)[-1]
    (lesson,) = last["lessons"]
    assert last["title"] == "Loops" and lesson["name"] == "another"
    assert lesson["number"] == len(LESSONS) + 1 or lesson["number"] > 22
    assert lesson["learns"] == "A chain of drafted tokens breaks at its first rejection."


def test_minutes_grow_with_words_and_with_stops():
    plain = {"about": "a " * 200, "stops": []}
    stop = {"text": "", "question": "", "answer": "", "choices": []}
    assert path.minutes(plain) == 1
    assert path.minutes(plain | {"stops": [stop] * 4}) == 4
    assert all(3 <= lesson["minutes"] <= 8 for lesson in LESSONS.values())


def test_the_end_of_a_lesson_names_the_next_one_and_the_last_leads_to_the_list():
    first, second = list(LESSONS.values())[:2]
    assert lessons.following(first["name"]) is second
    end = lessons.with_pages(first)["pages"][-1]
    assert end["next"] == "Next lesson" and f"2. {second['title']}" in end["card"]
    assert second["learns"] in end["card"]
    last = lessons.with_pages(list(LESSONS.values())[-1])["pages"][-1]
    assert last["next"] == "All lessons" and "last lesson of the path" in last["card"]
    assert "<b>1. &lt;i&gt;" in pages(first, after=first | {"title": "<i>"})[-1]["card"]


def test_the_tab_shows_each_lesson_with_its_picture_its_length_and_a_button():
    made = Tags(tab.lesson_path(tab.button, tab.picture))
    starts = [given["data-start"] for tag, given in made.tags if tag == "button"]
    assert starts == list(LESSONS)
    assert sum(tag == "section" for tag, _ in made.tags) == len(path.chapters())
    for lesson in LESSONS.values():
        assert f"{lesson['number']}. {lesson['title']}" in made.text and lesson["learns"] in made.text
    assert "6 min · 1 lane · 5 stops" in made.text
    assert sum(tag == "img" for tag, _ in made.tags) == 2 * len(LESSONS)


def test_pictures_are_served_and_nothing_else():
    asked = TestClient(Starlette(routes=tab.routes()))
    found = asked.get(f"/{PICTURES}/lesson/draft-trees/dark")
    assert found.headers["content-type"].startswith("image/svg+xml") and found.text.startswith("<svg")
    for name in ("magic/dark", "draft-trees/red", "..%2fdraft-trees/dark"):
        assert asked.get(f"/{PICTURES}/lesson/{name}").status_code == 404


@pytest.mark.parametrize("name", LESSONS)
def test_a_stored_picture_is_that_of_its_stop(name, shipped):
    """If it is not: python -m explorer.lessons.publish_pictures NAME. Other processors round otherwise."""
    drawn = picture(LESSONS[name], shipped(LESSONS[name]["setup"]), "light")
    stored = path.picture_file(name, "light").read_text("utf-8")
    assert NUMBER.sub("", drawn) == NUMBER.sub("", stored)
    pairs = zip(NUMBER.findall(drawn), NUMBER.findall(stored), strict=True)
    assert all(abs(float(a) - float(b)) < 2 for a, b in pairs)
