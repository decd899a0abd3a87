"""Verifier that ends each round at the end of a syntactic fragment, wherever another verifier stops.

Xu et al. (2025), Speculative Decoding for Verilog: the integrity check.
"""

from dataclasses import replace

from decoders.explain import verifiers
from decoders.speculative.interfaces import Verification, Verifier, VerifierInput
from decoders.trace.reasons import Code, Reason


def whole_fragments(verifier: Verifier, mark: int, greedy: bool) -> Verifier:
    """`verifier`, whose accepted path is cut after the last `mark`, the round's first token included. Without
    a mark, everything stays.

    The target's own token follows the cut. Its random number is that of the position, so it repeats what a
    verifier with `uses_q` off drew there before: cutting does not change the text. greedy: nothing is drawn.
    """

    def verify(inputs: VerifierInput) -> Verification:
        verification = verifier.verify(inputs)
        run = [inputs.draft.root, *verification.path]
        ends = [at for at, node in enumerate(run) if inputs.tokens[node] == mark]
        if not ends or ends[-1] + 1 == len(run) or verification.token is None:
            return verification
        return cut_behind(inputs, verification, run, ends[-1])

    def cut_behind(inputs: VerifierInput, whole: Verification, run: list[int], at: int) -> Verification:
        lost = run[at + 1 :]
        tests = [
            replace(test, reasons=(*test.reasons, Reason(Code.CUT)))
            if test.node in lost and test.accepted
            else test
            for test in whole.tests
        ]
        verification = Verification(tests, whole.path[:at], lost)
        p = inputs.p[run[at]]
        if greedy:
            verification.token, verification.reason = int(p.argmax()), Reason(Code.NEXT_FRAGMENT)
            return verification
        return verification.end(inputs, p, inputs.position + at + 1, Code.NEXT_FRAGMENT)

    name, says = verifiers.whole_fragments(verifier.name, verifier.says)
    return replace(verifier, verify=verify, name=name, says=says)
