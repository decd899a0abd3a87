"""The probability that a drafted token is accepted (Leviathan et al., 2023). Knows numbers only."""


def acceptance(p: float, q: float) -> float:
    """min(1, p / q) without a division by zero: accept iff u * q < p (algorithm 1)."""
    if p <= 0.0:
        return 0.0
    return 1.0 if p >= q else p / q
