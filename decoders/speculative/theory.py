"""What speculation should gain: the formulas of Leviathan et al. (2023).

alpha: probability that a drafted token is accepted given that its parent was; gamma: drafted tokens per
round; cost: one draft forward in units of one target forward. All assume independent acceptances.
"""


def expected_tokens(alpha: float, gamma: int) -> float:
    """Tokens gained by one round, the target's own included: (1 - alpha^(gamma + 1)) / (1 - alpha)."""
    return gamma + 1.0 if alpha == 1.0 else (1 - alpha ** (gamma + 1)) / (1 - alpha)


def speedup(alpha: float, gamma: int, cost: float) -> float:
    """Speed-up over one token per target forward: expected tokens over the round's cost, gamma cost + 1."""
    return expected_tokens(alpha, gamma) / (gamma * cost + 1)


def best_length(alpha: float, cost: float, max_length: int = 32) -> int:
    """The number of drafted tokens, up to `max_length`, with the largest speedup; 0 if speculation does not
    pay.
    """
    return max(range(max_length + 1), key=lambda gamma: speedup(alpha, gamma, cost))
