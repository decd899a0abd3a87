"""xgrammar runs in a process of its own, since a grammar may make it hang or crash.

`python -m decoders.constraints.xgrammar_worker` answers lines of JSON: the first names the vocabulary, then
["compile", kind, text, white space], ["advance", state, token] and ["drop", states]. An answer holds a new
state with what may follow it, or a complaint. Knows texts and tokens, no models.
"""

import base64
import json
import subprocess
import sys
import threading
from queue import Empty, Queue

from decoders.constraints.grammars import choices_of

START_SECONDS = 60.0  # for the process to import xgrammar and to read a vocabulary
SECONDS = 2.0  # for one grammar, or one token
TOO_LONG = f"xgrammar took more than {SECONDS:g} seconds for it"
CRASHED = "xgrammar crashed over it"

SPELLING = {  # between the parts of JSON
    "compact": {"any_whitespace": False, "separators": (",", ":")},
    "spaced": {"any_whitespace": False, "separators": (", ", ": ")},
    "any": {"any_whitespace": True},
}


def compiled(kind: str, typed: str, white_space: str, compiler):
    """What a compiler of xgrammar makes of it. Raises its RuntimeError."""
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
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n"}
    return '"' + "".join(escapes.get(c, c) for c in text) + '"'


class Worker:
    """A process with xgrammar for one vocabulary; it is started again after a hang or a crash."""

    def __init__(self, tokens: list[bytes], ends: list[int]):
        self.first = {"tokens": [token.hex() for token in tokens], "ends": ends}
        self.process: subprocess.Popen | None = None
        self.lives = 0  # how many processes there were: a state belongs to one of them
        self.dropped: list[int] = []
        self.lock = threading.Lock()

    def ask(self, *request) -> dict:
        """The answer to a request; `{"problem": sentence}` if there is none in time."""
        with self.lock:
            if self.process is None:
                self._start()
            if self.dropped:
                dropped, self.dropped = self.dropped, []
                self._ask(["drop", dropped], SECONDS)
            return self._ask(request, SECONDS)

    def _start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "decoders.constraints.xgrammar_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.lives, self.dropped, self.answers = self.lives + 1, [], Queue()
        threading.Thread(target=_listen, args=(self.process, self.answers), daemon=True).start()
        self._ask(self.first, START_SECONDS)

    def _ask(self, request, seconds: float) -> dict:
        if self.process is None:  # it went while something was dropped
            return {"problem": CRASHED}
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            answer = self.answers.get(timeout=seconds)
        except (BrokenPipeError, Empty) as error:
            self.close()
            return {"problem": TOO_LONG if isinstance(error, Empty) else CRASHED}
        if not answer:
            self.close()
            return {"problem": CRASHED}
        return json.loads(answer)

    def close(self) -> None:
        """Ends the process; the next request starts another one."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def _listen(process: subprocess.Popen, answers: Queue) -> None:
    for line in process.stdout:
        answers.put(line)
    answers.put("")  # it is gone


def main() -> None:
    """Answers until the input ends."""
    import xgrammar

    first = json.loads(sys.stdin.readline())
    tokens = [bytes.fromhex(token) for token in first["tokens"]]
    info = xgrammar.TokenizerInfo(
        tokens, vocab_type=xgrammar.VocabType.RAW, vocab_size=len(tokens), stop_token_ids=first["ends"]
    )
    compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
    bits = xgrammar.allocate_token_bitmask(1, len(tokens))
    states: dict[int, xgrammar.GrammarMatcher] = {}
    print(json.dumps({}), flush=True)

    def told(number: int, state) -> dict:
        states[number] = state
        mask = b""  # nothing may follow
        if not state.is_terminated():
            state.fill_next_token_bitmask(bits)
            mask = bits.numpy().tobytes()
        return {"state": number, "mask": base64.b64encode(mask).decode(), "ends": state.is_completed()}

    for number, line in enumerate(sys.stdin):
        answer, (what, *rest) = {}, json.loads(line)
        try:
            if what == "compile":
                answer = told(number, xgrammar.GrammarMatcher(compiled(*rest, compiler)))
            elif what == "drop":
                for dropped in rest[0]:
                    states.pop(dropped, None)
            else:
                below = states[rest[0]].fork()
                answer = told(number, below) if below.accept_token(rest[1]) else {"state": None}
        except (RuntimeError, ValueError, TypeError) as error:
            answer = {"problem": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
