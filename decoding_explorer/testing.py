"""`dx.testing.check("my_strategy")`: the laws that every strategy obeys, for tests of your own."""

from decoders.testing import BrokenLaw, check

__all__ = ["BrokenLaw", "check"]
