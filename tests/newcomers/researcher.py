"""What a researcher asks of the page, the command line and the notebooks: 1920 x 1080, dark."""

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys

from playwright.sync_api import Locator, Page, expect

from tests.browser.test_models import name_model, panel
from tests.browser.test_traces import METRICS, downloaded
from tests.house import ROOT
from tests.newcomers.guest import (
    WRITTEN,
    Guest,
    cut,
    decode,
    filled,
    inspector,
    lane,
    lanes,
    parameter,
    run,
    tab,
    view,
)
from tests.newcomers.tasks import Findings, task

MODELS = ROOT / "assets" / "models"


@task("R1", "load a pair of one's own from folders")
def own_pair(guest: Guest) -> Findings:
    page = guest.opens()
    decode(page, tokens=16)
    for name in ("llama-tiny", "llama-tiny-draft"):
        shutil.copytree(MODELS / name, guest.folder / f"my-{name}")
    found = panel(page)
    name_model(found, "Target model", str(guest.folder / "my-llama-tiny"))
    name_model(found, "Draft model", str(guest.folder / "my-llama-tiny-draft"))
    memory = found.get_by_text(re.compile(r"of KV cache")).first
    expect(memory).to_be_visible()
    yield True, f"before Load: “{memory.inner_text()[:90]} …”"
    found.get_by_role("button", name="Load", exact=True).click()
    expect(page.locator(".lane.stale")).to_have_count(2)
    hint = lane(page, 1).locator(".hint").inner_text()
    yield hint.startswith("Decoded with"), f"lanes of the models before are dimmed: “{hint}”"
    run(page)
    yield (
        page.locator(".lane.stale").count() == 0,
        f"Run decodes with {page.evaluate('decodingExplorer.app.choice.target').rsplit('/', 1)[-1]}",
    )
    press_models(page, "llama-tiny", "llama-tiny-draft-distilled")


def press_models(page: Page, target: str, draft: str) -> None:
    """Puts the shipped pair back."""
    found = panel(page)
    name_model(found, "Target model", target)
    name_model(found, "Draft model", draft)
    found.get_by_role("button", name="Load", exact=True).click()
    expect(found.get_by_label("Target model")).to_be_hidden()


def rejections(page: Page) -> Locator:
    """The table of rejected tokens, with all its rows."""
    microscope = tab(page, "Microscope")
    rows = microscope.locator("#rejected-tokens [role=row]:has([role=gridcell])")
    expect(rows.first).to_be_visible()
    return rows


def column(page: Page, name: str) -> list[str]:
    """The cells of a column of that table."""
    headers = page.locator("#rejected-tokens [role=columnheader]").all_inner_texts()
    place = [header.strip() for header in headers].index(name) + 1
    return page.locator(f"#rejected-tokens [role=gridcell]:nth-child({place})").all_inner_texts()


def sort_by(page: Page, name: str) -> None:
    """Chooses the order of the table."""
    page.get_by_role("combobox", name="Sort by").click()
    page.get_by_role("option", name=name).click()


def long_speculative_run(guest: Guest) -> Page:
    """A run with many rejections: its page."""
    page = guest.opens()
    lanes(page, "Beam search", "Speculative decoding")
    parameter(page, 2, "num_assistant_tokens", "4")
    decode(page, tokens=120)
    return page


@task("R2", "list the rejected tokens and look at the worst")
def list_of_rejections(guest: Guest) -> Findings:
    page = long_speculative_run(guest)
    rows = rejections(page)
    count = rows.count()
    sort_by(page, "q, the largest first")
    page.wait_for_function(SORTED)
    sizes = [float(q) for q in column(page, "q")]
    yield sizes == sorted(sizes, reverse=True) and count > 5, f"{count} rows, sorted by q: {sizes[:3]} …"
    rows.first.click()
    card = page.locator("#rejection-card .title")
    token = column(page, "Token")[0]
    expect(card).to_contain_text(token)
    yield rows.count() == count, f"after a click on the worst, {token}, the table has {rows.count()} rows"
    yield [float(q) for q in column(page, "q")] == sizes, "in the same order"
    before = card.inner_text()
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("n")
    expect(card).not_to_have_text(before)
    second = column(page, "Token")[1]
    yield second in card.inner_text(), f"N walks to its next row: “{card.inner_text()}”"
    page.get_by_role("button", name="Open its round in Decode").click()
    rows = rejections(page)
    yield (
        rows.count() == count and [float(q) for q in column(page, "q")] == sizes,
        "nothing is lost by a visit to Decode",
    )


# Whether the rows of the table stand in the order of q.
SORTED = """() => {
  const headers = [...document.querySelectorAll("#rejected-tokens [role=columnheader]")];
  const place = headers.findIndex((one) => one.textContent.trim() === "q") + 1;
  const cells = [...document.querySelectorAll(`#rejected-tokens [role=gridcell]:nth-child(${place})`)];
  return cells.every((one, i) => !i || Number(cells[i - 1].textContent) >= Number(one.textContent));
}"""


@task("R3", "read p, q and u of one rejected token")
def p_q_u(guest: Guest) -> Findings:
    page = guest.opens()
    parameter(page, 2, "temperature", "1")
    decode(page)
    lane(page, 2).locator(".chips-row .is-rejected").last.click()
    card = inspector(page)
    expect(card).to_contain_text("accept if")
    said = card.get_by_text(re.compile(r"The draft gave .* the target")).first.inner_text()
    yield all(word in said for word in ("draft gave", "target", "u =")), f"“{said}”"
    title = card.get_by_role("heading", level=2)
    before = title.inner_text()
    lane(page, 2).locator(".dp-frame").focus()
    page.keyboard.press("Home")
    for _ in range(3):
        page.keyboard.press("n")
    page.wait_for_timeout(600)
    marked = page.evaluate(
        "decodingExplorer.app.lanes[1].scene.marksOf(decodingExplorer.app.lanes[1].scene.kept()).length"
    )
    over = page.evaluate(OVER)
    yield over == [], f"numbers that lie over something in the card: {over}"
    yield title.inner_text() != before, f"three times N move the open card to “{title.inner_text()}”"
    yield marked > 0, f"{marked} mark(s) of it outlined"


# Numbers of the residual that run into the button at their right or out of their row.
OVER = """[...document.querySelectorAll(".inspector .with-left")].filter((row) => {
  const words = row.querySelector(".left > span:last-child").getBoundingClientRect();
  return words.right > row.querySelector("button.branch").getBoundingClientRect().left + 1;
}).map((row) => row.querySelector(".left").textContent)"""


@task("R4", "see which kinds of tokens are rejected")
def by_class(guest: Guest) -> Findings:
    page = long_speculative_run(guest)
    rejections(page)
    microscope = tab(page, "Microscope")
    microscope.get_by_role("radio", name="Kind of token").check()
    groups = page.locator("#rejections-grouped [role=row]:has([role=gridcell])")
    expect(groups.first).to_contain_text(re.compile("word|punctuation|space"))
    kinds = page.locator("#rejections-grouped [role=gridcell]:nth-child(1)").all_inner_texts()
    yield len(kinds) > 1, f"grouped by kind: {', '.join(kinds)}"
    count = page.locator("#rejected-tokens [role=row]:has([role=gridcell])").count()
    groups.first.click()
    rows = page.locator("#rejected-tokens [role=row]:has([role=gridcell])")
    page.wait_for_function(
        "n => document.querySelectorAll('#rejected-tokens [role=row]:has([role=gridcell])').length !== n",
        arg=count,
    )
    kept = page.locator("#rejections-grouped [role=gridcell]:nth-child(1)").all_inner_texts()
    yield kept == kinds, f"a click lists the {rows.count()} of a kind and keeps the groups"
    for name in ("Acceptance by depth", "Is the draft calibrated?"):
        place = microscope.get_by_role("group", name=name).first
        place.scroll_into_view_if_needed()
        expect(place.locator(".main-svg").first).to_be_visible()
        yield True, f"figure “{name}”"


@task("R5", "ask what another K or a tree would have brought")
def another_shape(guest: Guest) -> Findings:
    page = long_speculative_run(guest)
    microscope = tab(page, "Microscope")
    microscope.get_by_role("navigation", name="Sections of this tab").get_by_role(
        "button", name="Another shape"
    ).click()
    widths = microscope.get_by_label("Children, level by level")
    widths.fill("2 2 1")
    widths.press("Enter")
    rows = (
        microscope.locator(".block").filter(has=page.get_by_role("gridcell", name="2 2 1", exact=True)).last
    )
    expect(rows).to_be_visible()
    table = [re.split(r"\s*\t\s*|\n+", row) for row in rows.get_by_role("row").all_inner_texts()]
    yield len(table) > 4, f"{len(table) - 1} shapes, such as “{' | '.join(table[1])}”"
    whole = rows.inner_text()
    named = re.findall(r"[^\n\t]*\(fastest[^)]*\)", whole)
    yield len(named) <= 1, f"named fastest: {named or 'none, as intervals overlap'}"
    yield "(fastest)" not in whole or certain(table), "no shape is called fastest where intervals overlap"


def certain(table: list[list[str]]) -> bool:
    """Whether the interval of the shape that is called fastest lies above those of all others."""
    span = [
        (row[0], [float(one) for one in re.findall(r"\d+\.\d+", " ".join(row[1:]))[:2]]) for row in table[1:]
    ]
    best = [numbers for name, numbers in span if "(fastest)" in name]
    others = [numbers for name, numbers in span if "(fastest)" not in name and numbers]
    return bool(best) and min(best[0]) >= max(max(numbers) for numbers in others)


@task("R6", "try six drafters")
def six_drafters(guest: Guest) -> Findings:
    page = guest.opens()
    told = []
    for titles in (
        ("Medusa", "EAGLE", "EAGLE-2", "EAGLE-3"),
        ("Hydra", "Sequoia", "Speculative tree", "Lookahead"),
    ):
        lanes(page, *titles)
        decode(page, tokens=24)
        told += page.evaluate(
            "decodingExplorer.lanes.map((one, i) => [decodingExplorer.app.lanes[i].title(), one.count])"
        )
    yield (
        all(0 < count < 24 for _, count in told),
        "rounds for 24 tokens: " + ", ".join(f"{t} {c}" for t, c in told),
    )
    yield (
        page.get_by_role("button", name="+ Lane (at most 4)").is_visible(),
        "with four lanes it says “at most 4”",
    )


@task("R7", "compare when two lanes work")
def timelines(guest: Guest) -> Findings:
    page = guest.opens()
    lanes(page, "Speculative decoding", "Medusa")
    decode(page, tokens=24)
    for number in (1, 2):
        view(page, number, "Timeline")
    page.wait_for_timeout(800)
    windows = page.evaluate(
        "decodingExplorer.app.lanes.map(({ scene }) => scene.view)"
        ".map(({ lo, columns, unit }) => [lo * unit, columns * unit])"
    )
    yield windows[0] == windows[1], f"both show {windows[0][0]:g} to {windows[0][1]:.1f} ms"
    totals = page.locator(".dp-texts text").filter(has_text=re.compile(r"^[\d.,]+ m?s$")).count()
    yield totals >= 2, f"{totals} totals stand at the right"


@task("R8", "read the counters of a vLLM server")
def vllm_metrics(guest: Guest) -> Findings:
    page = guest.opens()
    panel_ = tab(page, "Traces")
    file = {"name": "metrics.txt", "mimeType": "text/plain", "buffer": METRICS}
    panel_.get_by_test_id("Open a file-upload-button").set_input_files(file)
    card = page.locator("#imported-counts")
    expect(card).to_contain_text("100 rounds drafted 300 tokens and 150 were accepted: 2.50 tokens per round")
    yield True, "a card says: 100 rounds drafted 300 tokens and 150 were accepted: 2.50 tokens per round"
    kept = page.evaluate("decodingExplorer.lanes.map((one) => one.count)")
    yield min(kept) > 0, "the lanes stay"


@task("R9", "take the drafted tokens home as CSV")
def as_csv(guest: Guest) -> Findings:
    page = guest.opens()
    decode(page)
    panel_ = tab(page, "Traces")
    panel_.get_by_role("radio", name="Drafted tokens (CSV)").check()
    expect(panel_.get_by_role("combobox", name="Of", exact=True)).to_have_value("Lane 2")  # which has drafted
    name, data = downloaded(page, lambda: panel_.get_by_role("button", name="Save", exact=True).click())
    rows = list(csv.DictReader(io.StringIO(data.decode())))
    yield len(rows) > 20 and "cause" in rows[0], f"{name}: {len(rows)} rows of {len(rows[0])} columns"
    yield next(iter(rows[0])).isidentifier(), f"the first column is called {next(iter(rows[0]))!r}"
    causes = {row["cause"] for row in rows if row["cause"]}
    tab(page, "Microscope")
    words = set(column(page, "Cause")) if rejections(page).count() else set()
    yield words <= causes, f"its causes are the table's: {', '.join(sorted(causes))}"


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a program of the project."""
    where = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT, env=where, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


@task("R10", "decode on the command line")
def command_line(guest: Guest) -> Findings:
    out = guest.folder / "trace.json"
    told = command(
        "-m", "explorer", "run", "--strategy", "speculative", "--prompt", "Once upon a time",
        "--max-new-tokens", "24", "--device", "cpu", "--out", str(out), "--json",
    )  # fmt: skip
    answer = json.loads(told.stdout) if told.returncode == 0 else {}
    totals = answer.get("totals", {})
    yield (
        answer.get("output_tokens") is not None,
        f"{totals.get('target_forwards')} target forwards, “{answer.get('text', '')[:30]} …”",
    )
    yield (
        out.exists() and json.loads(out.read_text("utf-8"))["strategy"] == "speculative",
        "its trace is a file",
    )
    wrong = command("-m", "explorer", "run", "--strategy", "beem", "--prompt", "a")
    lines = wrong.stderr.strip().splitlines()
    yield (
        wrong.returncode == 2 and "Traceback" not in wrong.stderr,
        f"a misspelt strategy: “{lines[-1][:120]}”",
    )


@task("R11", "compare two strategies and send the page")
def compare_page(guest: Guest) -> Findings:
    out = guest.folder / "page.html"
    told = command(
        "-m", "explorer", "compare", "--prompt", "Once upon a time", "--strategy", "beam",
        "--set", "num_beams=4", "--strategy", "speculative", "--max-new-tokens", "24", "--device", "cpu",
        "--out", str(out),
    )  # fmt: skip
    yield (
        told.returncode == 0 and out.exists(),
        f"a page of {out.stat().st_size / 1e6:.1f} MB" if out.exists() else told.stderr[-200:],
    )
    yield "token" in told.stdout, f"it ends with “{told.stdout.strip().splitlines()[-1][:140]}”"
    page = guest.browser.new_context(viewport={"width": 1920, "height": 1080}, offline=True).new_page()
    guest.contexts.append(page.context)
    guest.page = page
    page.on("pageerror", lambda error: guest.errors.append(str(error)))
    page.goto(out.as_uri())
    page.wait_for_function("window.decodingExplorer && decodingExplorer.drawn")
    yield page.get_by_role("slider", name="Step position").is_visible(), "it replays without a network"


@task("R12", "use it in a notebook")
def notebook(guest: Guest) -> Findings:
    copied = guest.folder / "notebooks"
    shutil.copytree(ROOT / "notebooks", copied)
    name = "2_rejected_drafts.ipynb"
    told = command(str(copied / "run.py"), name)
    cells = [
        one for one in json.loads((copied / name).read_text("utf-8"))["cells"] if one["cell_type"] == "code"
    ]
    made = sum(bool(one.get("outputs")) for one in cells)
    yield (
        told.returncode == 0,
        f"{name}: {made} of {len(cells)} cells show something"
        if told.returncode == 0
        else told.stderr[-200:],
    )


@task("R13", "look at a draft tree of 64 nodes")
def tree_of_64(guest: Guest) -> Findings:
    page = guest.opens()
    lanes(page, "Sequoia")
    parameter(page, 1, "budget", "64")
    decode(page, tokens=24)
    view(page, 1, "One round")
    page.wait_for_timeout(800)
    drafted = page.evaluate(
        "decodingExplorer.app.lanes[0].scene.drawn.filter((m) => m.kind === 'node').length"
    )
    yield drafted > 20, f"{drafted} nodes drawn"
    wide, high = filled(page, 1)
    yield min(wide, high) > 0.5, f"they fill {wide:.0%} x {high:.0%} of the picture"
    beyond = page.evaluate(BEYOND)
    yield (
        beyond["out"] == 0 or beyond["said"],
        f"{beyond['out']} nodes out of sight; it says so: {beyond['said']}",
    )


# Nodes below or above the picture, and whether its words say that there are more.
BEYOND = """() => {
  const { scene } = decodingExplorer.app.lanes[0], { view } = scene;
  const nodes = scene.drawn.filter((mark) => mark.kind === "node" && mark.drawn !== false);
  const out = nodes.filter((mark) => {
    const y = view.py(mark.y, mark), panel = view.panelOf(mark);
    return y < panel.topPx - 1 || y > panel.topPx + panel.heightPx + 1;
  }).length;
  return { out, said: /out of sight|more|below|above/.test(scene.root.textContent) };
}"""


@task("R14", "decode four lanes of 512 tokens")
def four_long_lanes(guest: Guest) -> Findings:
    page = guest.opens()
    yield from long_run(page, "Once upon a time", 512)


def long_run(page: Page, prompt: str, tokens: int) -> Findings:
    """What four long lanes show at their end."""
    page.set_default_timeout(240_000)
    lanes(page, "Beam search", "Speculative decoding", "Greedy", "Sampling")
    decode(page, prompt, tokens)
    written, ends = page.evaluate(WRITTEN), page.locator(".lane .ended").all_inner_texts()
    yield max(written) > 100 and all(ends), f"{written} tokens; {' '.join(sorted(set(ends)))}"
    page.wait_for_timeout(500)
    windows = page.evaluate("decodingExplorer.app.lanes.map(({ scene: { view } }) => view.columns)")
    yield min(windows) >= 10, f"columns in sight: {windows}"
    strips = page.locator(".lane .costs").all_inner_texts()
    yield not any("—" in strip for strip in strips), "no dash in the costs"
    shortened = cut(page, ".bar.status *:not(:has(*))")
    yield shortened == [], f"sentences cut in the status line: {shortened}"


@task("R15", "see that it is lossless, live")
def lossless(guest: Guest) -> Findings:
    page = guest.opens()
    decode(page, tokens=16)
    microscope = tab(page, "Microscope")
    microscope.get_by_role("navigation", name="Sections of this tab").get_by_role(
        "button", name="Losslessness"
    ).click()
    microscope.get_by_role("button", name="Start the test").click()
    says = page.locator("#losslessness-says")
    expect(says.get_by_role("listitem").first).to_be_visible()
    page.wait_for_function(
        "/of 1,000 seeds|1,000 seeds/.test(document.querySelector('#losslessness-says').textContent)"
    )
    expect(says.get_by_text("✓").first).to_be_visible(timeout=90_000)
    expect(says.get_by_text("✕").first).to_be_visible(timeout=90_000)
    lines = [line.strip() for line in says.inner_text().splitlines() if "✓" in line or "✕" in line]
    yield len(lines) >= 2, " / ".join(line[:110] for line in lines)
    stop = microscope.get_by_role("button", name="Stop", exact=True)
    if stop.is_visible():
        stop.click()
