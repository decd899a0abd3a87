"""`python -m explorer open`: checks and describes what another program wrote, or writes it as a page or a
trace.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decoders.refusal import Refusal, said_by
from explorer.text_file import MOST_BYTES

if TYPE_CHECKING:
    from decoders.trace.imports.records import Row
    from decoders.trace.trace import Trace
    from explorer.export.opened_files import Opened

LISTED = 40  # records that are printed as text
WIDE = 60  # characters of the last column
TOO_LARGE = f"is larger than {MOST_BYTES >> 20} MiB; name a shorter file."
SECONDS = 20  # that an address may take to answer


def command(options: argparse.Namespace) -> None:
    """Opens the source and prints what is in it, or writes it. Raises Refusal with one sentence."""
    found = opened_source(options.source)
    run = found.run
    if run is None and options.record is not None:
        run = found.lane(options.record)
    elif run is None and len(found.records) == 1 and not found.counts:
        run = found.lane(1)
    if run is not None:
        show_run(options, *run)
        return
    if options.out:
        raise Refusal("--out writes one lane; name its record with --record.")
    show_table(options, found)


def opened_source(source: str) -> "Opened":
    """What is in a file, a folder, an address or standard input (-). Raises Refusal with one sentence."""
    from explorer.export import opened_files

    path = Path(source)
    if not is_address(source) and source != "-" and path.is_dir():
        return opened_files.opened_many(files_in(path))
    return opened_files.opened(bytes_of(source), source)


def is_address(source: str) -> bool:
    """Whether a source is an address that is fetched."""
    return source.startswith(("http://", "https://"))


def bytes_of(source: str) -> bytes:
    """The bytes of a file, of standard input, or of what an address answers, up to MOST_BYTES. Raises Refusal
    with one sentence.
    """
    if is_address(source):
        return fetched(source)
    if "://" in source:
        raise Refusal("only http and https addresses are fetched.")
    if source == "-":
        data = sys.stdin.buffer.read(MOST_BYTES + 1)
    else:
        with Path(source).open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise Refusal(f"{'what was read' if source == '-' else source} {TOO_LARGE}")
    return data


def fetched(address: str) -> bytes:
    """What an address answers to GET. Raises Refusal with one sentence."""
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import HTTPRedirectHandler, build_opener

    class SameKind(HTTPRedirectHandler):
        """Follows to http and https only."""

        def redirect_request(self, *given: Any) -> Any:
            if not is_address(given[-1]):
                raise Refusal("the address leads to one that is neither http nor https.")
            return super().redirect_request(*given)

    try:
        with build_opener(SameKind).open(address, timeout=SECONDS) as answer:
            data = answer.read(MOST_BYTES + 1)
    except HTTPError as error:
        raise Refusal(f"the address answers {error.code} {said_by(error.reason)}.") from error
    except (OSError, HTTPException) as error:
        raise Refusal(f"the address does not answer: {said_by(getattr(error, 'reason', error))}.") from error
    if len(data) > MOST_BYTES:
        raise Refusal(f"what the address answers {TOO_LARGE}")
    return data


def files_in(folder: Path) -> Iterator[tuple[str, bytes]]:
    """(path within the folder, bytes) of every file that is not hidden, in order."""
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in inside.parts):
            yield str(inside), bytes_of(str(path))


def show_run(options: argparse.Namespace, setup: dict, traces: "list[Trace]") -> None:
    """Prints the lanes with the reports on them, or one JSON object, and writes what is to be written."""
    from explorer.export import saving
    from explorer.runs.run_summary import summary

    if options.out:
        saving.save(options.out, setup, traces)
    if options.json:
        lanes = [summary(trace) for trace in traces]
        print(json.dumps(lanes[0] if len(lanes) == 1 else {"prompt": setup["prompt"], "lanes": lanes}))
        return
    for trace in traces:
        print("\n".join(said(trace)))


def said(trace: "Trace") -> list[str]:
    """A lane in lines of text."""
    from decoders.explain import trust as words
    from decoders.trace.events import Note
    from decoders.trace.trust import Trust
    from visualizers.analysis.cost_summary import in_words

    lines = [trace.title, trace.text(), ""]
    if trace.trust:
        lines += words.report(Trust.from_json(trace.trust))
    lines += [note.text for step in trace.steps[:1] for note in step.of(Note)]
    return [*lines, in_words(trace.costs)]


def show_table(options: argparse.Namespace, found: "Opened") -> None:
    """Prints the table of records, and the counts, or one JSON object."""
    from explorer.export.opened_files import row_json
    from visualizers.analysis.speculation_report import counted

    rows = found.rows()
    if options.json:
        counts = [{"name": name, **counted(one), "counts": one} for name, one in found.counts]
        unknown = [{"name": name, "problem": why} for name, why in found.unknown]
        print(json.dumps({"records": [row_json(row) for row in rows], "counts": counts, "unknown": unknown}))
        return
    for name, one in found.counts:
        report = counted(one)
        print(f"{name}: {report['sentence']}" if len(found.counts) > 1 else report["sentence"])
        for metric in report["metrics"]:
            print(f"  {metric['name']:32} {metric['value']}")
    if rows:
        print_rows(rows)
    if found.unknown:
        names = ", ".join(name for name, _ in found.unknown[:5])
        more = f" and {len(found.unknown) - 5:,} more" if len(found.unknown) > 5 else ""
        print(f"Not recognised: {names}{more}.")


def print_rows(rows: "list[Row]") -> None:
    """Prints rows in columns, the first LISTED ones."""
    from explorer.export.opened_files import HEADERS, cells

    shown = [list(HEADERS), *map(cells, rows[:LISTED])]
    used = [at for at in range(len(HEADERS)) if any(row[at] for row in shown[1:])]
    widths = [min(WIDE, max(len(row[at]) for row in shown)) for at in used]
    for row in shown:
        print("  ".join(row[at].ljust(width) for at, width in zip(used, widths, strict=True)).rstrip())
    if len(rows) > LISTED:
        print(f"… and {len(rows) - LISTED:,} more; --json lists all.")
    print("Worst first; --record N opens one.")
