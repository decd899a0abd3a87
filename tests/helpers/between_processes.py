"""A folder that all processes of this run of the tests share; tests/conftest.py sets it."""

from pathlib import Path

folder: Path
