"""`decoding-explorer`, or `python -m decoding_explorer`: opens the page, or runs one of the commands."""

import sys

from decoders.packages import module


def main(given: list[str] | None = None) -> int:
    """Without a command, what `python app.py` does, with its options; else a command of `python -m explorer`.
    Returns the exit status.
    """
    given = sys.argv[1:] if given is None else given
    if given and not given[0].startswith("-"):
        from explorer.cli import main as command

        command(given, "decoding-explorer")
        return 0
    return module("app").main(given)


if __name__ == "__main__":
    sys.exit(main())
