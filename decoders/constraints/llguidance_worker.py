"""llguidance first compiles a typed text in a separate process, since some texts make it hang or overflow its
stack, which would end the whole program. Texts that pass are compiled again in the program's own process.

`python -m decoders.constraints.llguidance_worker` answers lines of JSON: ["try", number of a vocabulary,
kind, text, white space]. If it answers that it does not know the vocabulary, the request is ["vocabulary",
number, tokens, special tokens, ends of text, kind, text, white space]. It makes the matcher and reads a few
tokens, with a quarter of the stack that the program's threads have.
"""

import hashlib
import json
import random
import sys
import threading
from collections import OrderedDict
from contextlib import suppress

import numpy as np

from decoders import packages
from decoders.constraints.engine_process import EngineProcess, limit_computing
from decoders.constraints.matchers import Vocabulary, constraint_problem, matcher_of
from decoders.constraints.problem import ConstraintProblem

SECONDS = 1.0  # of computing, for one text: the program takes as long for it again
CLOCK = 20.0  # seconds on the clock, also for the process to start; more only if the machine is very busy
STACK = 2 << 20  # bytes
MEMORY = 4 << 30  # bytes, of addresses
TOKENS = 12  # read at most
VOCABULARIES = 8  # kept
KNOWN = 256  # texts that a vocabulary remembers to have passed

NO_PROCESS = "A grammar is tried in a process of its own first, and this system starts none."

_process = EngineProcess(
    packages.full("decoders.constraints.llguidance_worker"),
    "llguidance",
    CLOCK,
    f"llguidance took more than {SECONDS:g} second for it",
)


def tried(kind: str, typed: str, vocabulary: Vocabulary, white_space: str) -> None:
    """Raises ConstraintProblem with one sentence if llguidance hangs or crashes over a text. A text that it
    refuses with an error passes here.
    """
    passed = vocabulary.made.setdefault("passed", OrderedDict())
    key = hashlib.sha256(json.dumps([kind, typed, white_space]).encode()).digest()
    if key in passed:
        return
    request = ("try", vocabulary.number, kind, typed, white_space)
    try:
        answer = _process.ask(*request)
        if "unknown" in answer:
            tokens = [token.hex() for token in vocabulary.tokens]
            named = ("vocabulary", vocabulary.number, tokens, vocabulary.special, vocabulary.ends)
            answer = _process.ask(*named, *request[2:])
    except OSError:
        raise ConstraintProblem(NO_PROCESS) from None
    if "problem" in answer:
        raise constraint_problem(kind, answer["problem"])
    passed[key] = True
    if len(passed) > KNOWN:
        passed.popitem(last=False)


def read_random_tokens(kind: str, typed: str, vocabulary: Vocabulary, white_space: str) -> None:
    """Makes a matcher and reads random tokens that it allows, none that ends a text."""
    matcher, draw = matcher_of(kind, typed, vocabulary, white_space), random.Random(0)
    for _ in range(TOKENS):
        if matcher.is_error() or matcher.is_stopped():
            return
        bits = np.unpackbits(np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8), bitorder="little")
        allowed = [token for token in bits.nonzero()[0].tolist() if token not in vocabulary.ends]
        matcher.compute_ff_tokens()
        if not allowed or not matcher.consume_token(draw.choice(allowed)):
            return


def answer_all() -> None:
    """Answers until the input ends."""
    vocabularies: OrderedDict[int, Vocabulary] = OrderedDict()
    for line in sys.stdin:
        what, number, *rest = json.loads(line)
        if what == "vocabulary":
            tokens, special, ends, *rest = rest
            spelt = [bytes.fromhex(token) for token in tokens]
            vocabularies[number] = Vocabulary(spelt, ends, special, lambda text: [])
            matcher_of("regex", "a", vocabularies[number], "compact")  # what takes long is done once
            if len(vocabularies) > VOCABULARIES:
                vocabularies.popitem(last=False)
        answer = {}
        if number not in vocabularies:
            answer = {"unknown": True}
        else:
            limit_computing(SECONDS)
            with suppress(ConstraintProblem):  # the program meets it too, and says it
                kind, typed, white_space = rest
                read_random_tokens(kind, typed, vocabularies[number], white_space)
            limit_computing(0)
        print(json.dumps(answer), flush=True)


def main() -> None:
    """Answers in a thread of a small stack; an error ends the process, as a crash does."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    except (ImportError, ValueError, OSError):
        pass  # this system has no such limit
    threading.stack_size(STACK)
    thread = threading.Thread(target=answer_all)
    thread.start()
    thread.join()


if __name__ == "__main__":
    main()
