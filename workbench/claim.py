"""One supervisor per installation: who holds it, and what it tells the next one."""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from workbench.embedded.paths import run_directory
from workbench.embedded.shared import make_folder


class AlreadyRunning(RuntimeError):
    """Another supervisor holds the installation; the message says which."""


class Claim:
    """The claim of the one supervisor of an installation, and what it tells the next one."""

    def __init__(self, file: IO[str]) -> None:
        self.file = file
        self.file.seek(0)
        # A clean end empties the file.
        self.unclean = bool(self.file.read())

    def announce(self, url: str) -> None:
        """Say where we are to whoever comes second."""
        self.file.seek(0)
        self.file.truncate()
        json.dump({"pid": os.getpid(), "url": url}, self.file)
        self.file.flush()

    def clear(self) -> None:
        """Leave nothing to say: the end was clean."""
        self.file.truncate(0)


@contextlib.contextmanager
def claim_installation(var: Path) -> Iterator[Claim]:
    """Hold the installation for the length of a block; raises AlreadyRunning with a message for people."""
    run = run_directory(var)
    make_folder(run, 0o711)
    with (run / "up.json").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRunning(describe_other(file)) from None
        claim = Claim(file)
        yield claim
        claim.clear()


def describe_other(file: IO[str]) -> str:
    """Say what already runs, from the file that it holds."""
    file.seek(0)
    try:
        other = json.load(file)
    except ValueError:
        return "Another `up` of this installation is just starting or ending; nothing was changed."
    return f"Already running at {other['url']} (process {other['pid']}); nothing was changed."
