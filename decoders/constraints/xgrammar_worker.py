"""xgrammar runs in a process of its own, since a grammar may make it hang or crash.

`python -m decoders.constraints.xgrammar_worker` answers lines of JSON: the first names the vocabulary, then
["compile", kind, text, white space], ["advance", state, token] and ["drop", states]. An answer holds a new
state with what may follow it, or a complaint; that of a compiled text also has xgrammar's warnings. Limits
are in CPU time, so a busy machine does not shorten them.
"""

import base64
import json
import os
import re
import sys
import tempfile
from typing import Any

from decoders import packages
from decoders.constraints.engine_process import EngineProcess, limit_computing
from decoders.constraints.matchers import choices_of

START_SECONDS = 60.0  # of computing, to import xgrammar and to read a vocabulary
SECONDS = 2.0  # of computing, for one grammar, or one token
CLOCK = 10  # times as many seconds on the clock; more only if the machine is very busy
TOO_LONG = f"xgrammar took more than {SECONDS:g} seconds for it"
SLOW_START = f"xgrammar took more than {START_SECONDS:g} seconds to start"
WARNING = re.compile(r"^\[[^]]*\] \S+: Warning: (.+)$", re.MULTILINE)

SPELLING = {  # between the parts of JSON
    "compact": {"any_whitespace": False, "separators": (",", ":")},
    "spaced": {"any_whitespace": False, "separators": (", ", ": ")},
    "any": {"any_whitespace": True},
}


def compiled(kind: str, typed: str, white_space: str, compiler) -> Any:
    """The grammar that xgrammar's compiler makes of the typed text. Raises its RuntimeError."""
    match kind:
        case "json_schema":
            return compiler.compile_json_schema(typed, strict_mode=False, **SPELLING[white_space])
        case "regex":
            return compiler.compile_regex(typed)
        case "gbnf":
            return compiler.compile_grammar(typed)
    return compiler.compile_grammar("root ::= " + " | ".join(map(quoted, choices_of(typed))))


def quoted(text: str) -> str:
    """A text as a GBNF grammar spells it."""
    escapes = {'"': '\\"', "\\": "\\\\"} | {chr(code): f"\\u{code:04x}" for code in range(32)}
    return '"' + "".join(escapes.get(c, c) for c in text) + '"'


class Worker(EngineProcess):
    """A process with xgrammar for one vocabulary. States are lost when it ends: each belongs to one of its
    `lives`.
    """

    def __init__(self, tokens: list[bytes], ends: list[int]):
        module = packages.full("decoders.constraints.xgrammar_worker")
        super().__init__(module, "xgrammar", CLOCK * SECONDS, TOO_LONG)
        self.first = {"tokens": [token.hex() for token in tokens], "ends": ends}
        self.dropped: list[int] = []

    def start(self) -> dict:
        super().start()
        self.dropped = []
        return self.send(self.first, CLOCK * START_SECONDS, SLOW_START)

    def send(self, request: Any, seconds: float, too_long: str = "") -> dict:
        """First tells the process which states are no longer needed."""
        if self.dropped:
            dropped, self.dropped = self.dropped, []
            super().send(["drop", dropped], self.seconds)
        return super().send(request, seconds, too_long)


def warnings_in(log) -> list[str]:
    """The warnings in xgrammar's log, each once; empties the log."""
    log.seek(0)
    said = log.read().decode("utf-8", "replace")
    log.seek(0)
    log.truncate()
    return list(dict.fromkeys(WARNING.findall(said)))


def main() -> None:
    """Answers until the input ends."""
    limit_computing(START_SECONDS)
    log = tempfile.TemporaryFile()  # noqa: SIM115 (xgrammar writes its warnings to the standard error alone)
    os.dup2(log.fileno(), 2)
    import xgrammar

    first = json.loads(sys.stdin.readline())
    tokens = [bytes.fromhex(token) for token in first["tokens"]]
    info = xgrammar.TokenizerInfo(
        tokens, vocab_type=xgrammar.VocabType.RAW, vocab_size=len(tokens), stop_token_ids=first["ends"]
    )
    compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
    bits = xgrammar.allocate_token_bitmask(1, len(tokens))
    states: dict[int, xgrammar.GrammarMatcher] = {}
    limit_computing(0)
    print(json.dumps({}), flush=True)

    def described(number: int, state) -> dict:
        states[number] = state
        mask = b""  # nothing may follow
        if not state.is_terminated():
            state.fill_next_token_bitmask(bits)
            mask = bits.numpy().tobytes()
        return {"state": number, "mask": base64.b64encode(mask).decode(), "ends": state.is_completed()}

    for number, line in enumerate(sys.stdin):
        answer, (what, *rest) = {}, json.loads(line)
        limit_computing(SECONDS)
        try:
            if what == "compile":
                answer = described(number, xgrammar.GrammarMatcher(compiled(*rest, compiler)))
                answer["warnings"] = warnings_in(log)
            elif what == "drop":
                for dropped in rest[0]:
                    states.pop(dropped, None)
            else:
                below = states[rest[0]].fork()
                answer = described(number, below) if below.accept_token(rest[1]) else {"state": None}
        except (RuntimeError, ValueError, TypeError) as error:
            answer = {"problem": str(error)}
        limit_computing(0)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
