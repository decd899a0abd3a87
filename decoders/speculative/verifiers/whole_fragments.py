"""Verifier that ends each round at the end of a syntactic fragment, wherever another verifier stops.

Xu et al. (2025), Speculative Decoding for Verilog: the integrity check. Knows the token that marks the end of
a fragment; not what a fragment is.
"""

from dataclasses import replace

from decoders.speculative.interfaces import Verification, Verifier, VerifierInput

CUT = "{} Cut: the fragment that it belongs to is not complete."
NEXT = "The draft was cut after the last whole fragment; with this token the target begins the next one."


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
            replace(test, reason=CUT.format(test.reason)) if test.node in lost and test.accepted else test
            for test in whole.tests
        ]
        verification = Verification(tests, whole.path[:at], lost)
        p = inputs.p[run[at]]
        if greedy:
            verification.token, verification.reason = int(p.argmax()), NEXT
            return verification
        verification.end(inputs, p, inputs.position + at + 1, None)
        verification.reason = NEXT
        return verification

    says = f"{verifier.says} Accepted tokens after the last end of a fragment are cut."
    return replace(verifier, verify=verify, name=f"{verifier.name}, whole fragments", says=says)
