"""What is in files that a person opens, one or many: lanes, records, each of which can be opened as a lane,
and counts. The page and the command `open` show it.
"""

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass, field

from decoders.explain import trust as words
from decoders.refusal import Refusal
from decoders.trace.imports.records import MAX_RECORDS, Record, Row, records_of, table
from decoders.trace.json_file import MAX_TRACE_BYTES, read_json
from decoders.trace.trace import Trace
from explorer.export import run_file

BUNDLE = "decoding-explorer-files"  # what the page makes of several files, or of a folder, that are dropped
HEADERS = ("#", "record", "from", "tokens", "score", "mean log p", "largest KL", "trust")
MAX_FILES = 2000


@dataclass
class Opened:
    """What was found. Either a run, or records and counts; `unknown`: names of files that are not recognised,
    and why.
    """

    run: tuple[dict, list[Trace]] | None = None
    records: list[Record] = field(default_factory=list)
    counts: list[tuple[str, dict]] = field(default_factory=list)
    unknown: list[tuple[str, str]] = field(default_factory=list)

    def lane(self, number: int) -> tuple[dict, list[Trace]]:
        """The settings and the trace of a record, counted from 1. Raises Refusal with one sentence."""
        if not 1 <= number <= len(self.records):
            raise Refusal(f"There is no record {number:,}; choose one of 1 to {len(self.records):,}.")
        return run_file.unpack_record(self.records[number - 1])

    def rows(self) -> list[Row]:
        """The table of all records, worst first."""
        return table(self.records)


def opened(data: bytes, name: str = "") -> Opened:
    """What is in a file. Raises Refusal with one sentence if it is not recognised."""
    if data.lstrip()[:1] == b"{" and BUNDLE.encode() in data[:100]:
        return opened_many(unbundled(data))
    if counts := run_file.counts(data):
        return Opened(counts=[(name, counts)])
    records = None if run_file.is_page(data) else records_of(data)
    if records and len(records) > 1:
        return Opened(records=records)
    return Opened(run=run_file.unpack(data))


def opened_many(files: Iterable[tuple[str, bytes]]) -> Opened:
    """What is in several files. Raises Refusal with one sentence if there are too many, or none can
    be read.
    """
    found, size = Opened(), 0
    for at, (name, data) in enumerate(files, 1):
        size += len(data)
        if at > MAX_FILES or size > MAX_TRACE_BYTES:
            raise Refusal(
                f"At most {MAX_FILES:,} files with {MAX_TRACE_BYTES >> 20} MiB together can be opened; "
                "choose fewer."
            )
        try:
            if counts := run_file.counts(data):
                found.counts.append((name, counts))
            else:
                found.records += records_of(data, name) or single(data, name)
        except Refusal as error:
            found.unknown.append((name, str(error)))
    if len(found.records) > MAX_RECORDS:
        raise Refusal(
            f"These files hold {len(found.records):,} records, and at most {MAX_RECORDS:,} are listed; "
            "choose fewer."
        )
    if not found.records and not found.counts:
        raise Refusal(
            found.unknown[0][1] if len(found.unknown) == 1 else "None of these files is recognised."
        )
    return found


def single(data: bytes, name: str) -> list[Record]:
    """The records of a file with one value: its traces, or its answer. Raises Refusal with one sentence."""
    _, traces = run_file.unpack(data)
    if any(trace.trust for trace in traces):
        return [Record(name, read_json(data))]
    numbered = len(traces) > 1
    return [
        Record(f"{name} lane {at}" if numbered else name, trace.to_json())
        for at, trace in enumerate(traces, 1)
    ]


def unbundled(data: bytes) -> list[tuple[str, bytes]]:
    """The files of a bundle. Raises Refusal with one sentence if it is damaged."""
    record = read_json(data)
    try:
        return [
            (str(one["name"])[:200], base64.b64decode(one["data"], validate=True)) for one in record["files"]
        ]
    except (KeyError, TypeError, binascii.Error) as error:
        raise Refusal("These files arrived damaged; drop them again.") from error


def cells(row: Row) -> list[str]:
    """The cells of a row, see HEADERS."""

    def number(value: float | None) -> str:
        return "" if value is None else f"{value:.3g}"

    trust = row.problem or ""
    if row.trust is not None:
        trust = "nothing fails" if row.trust.trusted else words.verdict(row.trust)
    return [
        str(row.place + 1),
        row.name,
        row.dialect,
        str(row.tokens) if row.tokens else "",
        number(row.score),
        number(row.logprob),
        number(row.divergence),
        trust,
    ]


def row_json(row: Row) -> dict:
    """A row as plain data."""
    return {
        "record": row.place + 1,
        "name": row.name,
        "dialect": row.dialect,
        "tokens": row.tokens,
        "score": row.score,
        "mean_logprob": row.logprob,
        "largest_divergence": row.divergence,
        "trust": row.trust.to_json() if row.trust else None,
        "problem": row.problem,
    }
