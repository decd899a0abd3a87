"""The one channel for sentences to people: what was asked cannot be done, and what to do instead."""


class Refusal(ValueError):
    """One sentence that is shown as it is. Any other ValueError is a fault of the program: it is logged, and
    the person reads that, never its text.
    """
