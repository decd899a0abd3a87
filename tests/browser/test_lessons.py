"""All stops of all lessons in a browser, on the shipped models: what a stop quotes can be read where the
reader looks, what it is about is outlined there, and positions that it names are those of what is outlined.
"""

import re

import pytest

from explorer.lessons import lesson as lessons
from explorer.lessons.facts import Reading
from explorer.lessons.stops import Place
from tests.browser.conftest import BEEN_HERE, WAIT
from tests.helpers.lesson_runs import decoded_once

LESSONS = lessons.lessons()
TRIES = 60  # times that a stop is looked at until all is drawn
SIZES = {"desk": (1400, 900), "phone": (390, 844)}
POSITIONS = ("position", "first", "second")  # values of a place that are positions of what is outlined
# Shows a run that the server has, as the run of a lesson that has just been started.
OPEN = """([lesson, run]) => {
  const { app } = decodingExplorer;
  app.applySetup(JSON.parse(JSON.stringify(lesson.setup)));
  app.guide.open(lesson, null);
  const shown = new ExplorerPage.Run(app, run, "done");
  app.show(shown, lesson.setup.lanes.length);
  shown.follow();
}"""
READY = (
    "decodingExplorer.app.guide.ready() && decodingExplorer.app.lanes.every((lane) => lane.answerState.ended)"
)
# What a reader sees of each lane: the chips of its line and of its text, in reading order, the labels of its
# picture, and the nodes of the marks that are outlined; only what is wholly inside of its frame. Null while
# something is still being drawn.
SEEN = """() => {
  const { app } = decodingExplorer;
  const drawings = app.lanes.flatMap((lane) => [lane.chips, lane.text, lane.scene]);
  const busy = drawings.some((one) => one.waiting && one.root.offsetParent);
  if (busy || app.lanes.some((lane) => !lane.head)) return null;
  const inside = (element, frame) => {
    const a = element.getBoundingClientRect(), b = frame.getBoundingClientRect();
    const across = a.width > 0 && a.left >= b.left - 2 && a.right <= b.right + 2;
    return across && a.top >= b.top - 2 && a.bottom <= b.bottom + 2;
  };
  const chips = (list) => (list.root.offsetParent ? [...list.root.querySelectorAll(".dp-chip")] : [])
    .filter((chip) => inside(chip, list.root)).map((chip) => [chip, list.made.get(chip.dataset.id).mark]);
  return app.lanes.map((lane) => {
    const { scene } = lane, { frame } = scene, there = Boolean(frame.offsetParent);
    const all = (part, kinds) => (there ? [...part.querySelectorAll(kinds)] : []);
    const both = [chips(lane.chips), chips(lane.text)], kept = there ? scene.marksOf(scene.kept()) : [];
    const outlined = both.flat().filter(([chip]) => chip.classList.contains("dp-outlined"));
    const boxes = all(scene.overlay, "rect, path").filter((box) => inside(box, frame));
    const marked = boxes.length === kept.length ? kept : [];
    const labels = all(scene.texts, "text").filter((label) => inside(label, frame));
    return {
      texts: both.map((row) => row.map(([, mark]) => [mark.text, mark.state])),
      labels: labels.map((label) => label.textContent),
      nodes: [...outlined.map(([, mark]) => mark), ...marked].map((mark) => mark.node),
    };
  });
}"""


@pytest.fixture(scope="module")
def shipped():
    """traces(setup): the lanes of a setup, decoded by the shipped models."""
    return decoded_once()


@pytest.fixture(scope="module", params=SIZES)
def classroom(request, app, chromium):
    """One page for all lessons, as its scripts and its models are there once."""
    width, height = SIZES[request.param]
    context, errors = chromium.new_context(viewport={"width": width, "height": height}), []
    context.add_init_script(BEEN_HERE)
    page = context.new_page()
    page.set_default_timeout(WAIT)
    page.on("pageerror", lambda error: errors.append(str(error.stack)))
    page.goto(app.address, wait_until="domcontentloaded")
    page.wait_for_function("window.decodingExplorer && decodingExplorer.app.models.state === 'ready'")
    yield page
    context.close()
    assert not errors


def plain(text: str) -> str:
    """A token or a text as it is read: no marks for spaces, no line breaks."""
    return " ".join(text.replace("␣", " ").replace("↵", " ").replace("⇥", " ").split())


def reads(chips: list, quoted: str) -> bool:
    """Whether consecutive chips, with or without those of rejected tokens, read as what is quoted."""
    rows = (chips, [chip for chip in chips if chip[1] != "rejected"])
    return any(
        plain("".join(text for text, _ in row[start:end])) == quoted
        for row in rows
        for start in range(len(row))
        for end in range(start + 1, min(len(row), start + 14) + 1)
    )


def lacking(
    stop: dict, message: dict, place: Place, lanes: dict[int, Reading], seen: list[dict]
) -> list[str]:
    """What a reader of the stop looks for in vain."""
    looked = [seen[look["lane"] - 1] for look in stop["look"]]
    words = [message[key] for key in ("text", "question", "answer")]
    quotes = re.findall("“([^”]*)”", " ".join([*words, *(choice["text"] for choice in message["choices"])]))
    missing = [
        f"“{quoted}” cannot be read" for quoted in quotes if not any(shows(lane, quoted) for lane in looked)
    ]
    outlined = {number: set(nodes) & set(seen[number - 1]["nodes"]) for number, nodes in place.nodes.items()}
    for number, nodes in place.nodes.items():
        if outlined[number] != set(nodes):
            missing.append(f"lane {number} outlines {sorted(outlined[number])} of {sorted(set(nodes))}")
    here = lanes[place.lane]
    spelt = {here.position(node): here.text_of(node) for node in outlined.get(place.lane, ())}
    sentences = "".join(stop[key] for key in ("text", "question", "answer"))
    named = [place.values[name] for name in POSITIONS if f"{{{name}}}" in sentences]
    missing += [f"no outline at position {at}" for at in named if isinstance(at, int) and at not in spelt]
    if place.nodes and isinstance(token := place.values.get("token"), str) and token not in spelt.values():
        missing.append(f"“{token}” is not outlined")
    return missing


def shows(lane: dict, quoted: str) -> bool:
    """Whether a lane shows what is quoted: a token, or a few of them in a row."""
    asked = quoted.removesuffix(" …").strip("␣ ")
    tokens = [*lane["labels"], *(text for row in lane["texts"] for text, _ in row)]
    return any(asked == token.strip("␣ ") for token in tokens) or any(
        reads(row, plain(asked)) for row in lane["texts"]
    )


def seen_at(page, stop: dict) -> list[dict] | None:
    """What the lanes of a stop show; on a phone one after the other, by their buttons."""
    found = page.evaluate(SEEN)
    if found is None or page.viewport_size["width"] > 760:
        return found
    for look in reversed(stop["look"]):  # the first is the one that the stop brings
        page.evaluate("lane => decodingExplorer.app.front(lane)", look["lane"] - 1)
        page.wait_for_timeout(60)
        now = page.evaluate(SEEN)
        if now is None:
            return None
        found[look["lane"] - 1] = now[look["lane"] - 1]
    return found


@pytest.mark.parametrize("name", LESSONS)
def test_what_every_stop_speaks_of_is_seen(classroom, app, shipped, name):
    page, lesson = classroom, LESSONS[name]
    traces = shipped(lesson["setup"])
    run = app.runs.show(traces, page.evaluate("decodingExplorer.app.session"))
    page.evaluate(OPEN, [lessons.with_pages(lesson), run.id])
    page.wait_for_function(READY)
    lanes = {number: Reading(trace) for number, trace in enumerate(traces, 1)}
    messages = page.evaluate("decodingExplorer.app.guide.message.stops")
    problems = {}
    for index, (stop, message) in enumerate(zip(lesson["stops"], messages, strict=True)):
        page.evaluate("index => decodingExplorer.app.guide.go(index)", index)
        place, missing = lessons.find_place(stop["find"], lanes), ["nothing is drawn"]
        for _ in range(TRIES):
            page.wait_for_timeout(50)
            seen = seen_at(page, stop)
            missing = missing if seen is None else lacking(stop, message, place, lanes, seen)
            if not missing:
                break
        if missing:
            problems[index + 1] = missing
    assert not problems
