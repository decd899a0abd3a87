"""What the app logs and prints during a test."""

import contextlib
import io
import logging
import time


class Heard(logging.Handler):
    """The content of the log, and the printed output."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.records: list[logging.LogRecord] = []
        self.printed = io.StringIO()

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def bad(self) -> list[str]:
        """Errors and tracebacks."""
        errors = [r.getMessage() for r in self.records if r.levelno >= logging.ERROR or r.exc_info]
        return errors + self.printed.getvalue().split("Traceback")[1:]

    @contextlib.contextmanager
    def listening(self):
        loggers = [logging.getLogger(name) for name in (None, "uvicorn", "asyncio")]
        for one in loggers:
            one.addHandler(self)
        with contextlib.redirect_stderr(self.printed), contextlib.redirect_stdout(self.printed):
            yield self
            time.sleep(0.3)  # jobs that wait in a queue
        for one in loggers:
            one.removeHandler(self)
