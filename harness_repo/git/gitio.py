"""The one place that starts git: a bare repository, no hooks, no network, no configuration from outside."""

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import git

from harness_repo.git.errors import HarnessRepoError, RepoBusy, TimedOut, TooLarge

COMMITTER_NAME = "Harness Workbench"
COMMITTER_EMAIL = "workbench@localhost"
# Far more than any command needs on a repository that is well; one that waits for a pipe waits for ever.
LOCAL_SECONDS = 120.0

_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "protocol.allow=never",
    "core.quotePath=false",
    # Another git's lock on a ref lasts milliseconds: wait for it instead of failing at once.
    "core.filesRefLockTimeout=3000",
    "core.packedRefsTimeout=3000",
    "core.fsync=reference,committed",
    "gc.auto=0",
    "maintenance.auto=false",
    "core.fsmonitor=false",
    "advice.graftFileDeprecated=false",
    "diff.noprefix=false",
    "diff.mnemonicPrefix=false",
    "log.showSignature=false",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "i18n.commitEncoding=utf-8",
    "i18n.logOutputEncoding=utf-8",
)


@dataclass(frozen=True)
class GitResult:
    """What a finished git process left; `out` is byte exact."""

    code: int
    out: bytes
    error: str

    @property
    def text(self) -> str:
        """The output as text without its last newline."""
        return self.out.decode("utf-8", "replace").removesuffix("\n")


class GitProcess:
    """A git process that answers questions one by one; its owner closes it."""

    def __init__(self, process: git.Git.AutoInterrupt) -> None:
        self._process = process
        # One that waits for a pipe which somebody has put in the place of a pack would wait for ever.
        self._clock = threading.Timer(LOCAL_SECONDS, process.kill)
        self._clock.daemon = True
        self._clock.start()

    def ask(self, question: bytes) -> bytes:
        """Send a question, and return the first line of the answer; empty when git has ended."""
        self.send(question)
        return self.line()

    def send(self, questions: bytes) -> None:
        """Send questions; that git has ended is seen when the answer is read."""
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(questions)
            self._process.stdin.flush()

    def line(self) -> bytes:
        """The next line of the answer; empty when git has ended, or was killed because it took too long."""
        line: bytes = self._process.stdout.readline()
        return line

    def take(self, size: int) -> bytes:
        """The next so many bytes of the answer; HarnessRepoError when git ended before."""
        data: bytes = self._process.stdout.read(size)
        if len(data) < size:
            raise HarnessRepoError("git ended in the middle of an answer: the repository is damaged")
        return data

    def close(self) -> None:
        """End the process and wait for it."""
        self._clock.cancel()
        self._process.kill()
        self._process.communicate()


class GitRunner:
    """Runs git plumbing on one bare repository; keeps no process and no handle, so it survives a fork."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._git = git.Git(str(path.parent))

    def run(
        self,
        *arguments: str,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        allowed: Sequence[int] = (0,),
        settings: Sequence[str] = (),
        keep_open: Sequence[int] = (),
        seconds: float = LOCAL_SECONDS,
    ) -> GitResult:
        """Run one git command and wait for it; an exit code that is not allowed raises HarnessRepoError.

        `keep_open`: descriptors that the process inherits, and so keeps open for as long as it lives. After
        `seconds`, it and what it started are killed, and TimedOut is raised.
        """
        process = self._start(arguments, env=env, settings=settings, keep_open=keep_open)
        try:
            out, failure = process.communicate(stdin, timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise TimedOut(f"git {arguments[0]} took more than {seconds:g} seconds") from None
        result = GitResult(process.returncode, out, _text(failure))
        if result.code not in allowed:
            raise _error(arguments[0], result)
        return result

    def read(self, *arguments: str, most: int, what: str) -> bytes:
        """What a git command prints. When that is more than so many bytes it is killed, and TooLarge says of what."""
        process = self._start(arguments)
        # Its errors are read after its output: git says little before it fails.
        clock = threading.Timer(LOCAL_SECONDS, process.kill)
        clock.start()
        out: bytes = b""
        try:
            out = process.stdout.read(most + 1)
        finally:
            clock.cancel()
            if len(out) > most:
                process.kill()
            _, failure = process.communicate()
        if len(out) > most:
            raise TooLarge(f"{what} is larger than can be read here")
        if process.returncode:
            raise _error(arguments[0], GitResult(process.returncode, out, _text(failure)))
        return out

    def start(self, *arguments: str, env: Mapping[str, str] | None = None) -> GitProcess:
        """Start a git command that is asked question after question."""
        return GitProcess(self._start(arguments, env=env))

    def _start(
        self,
        arguments: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        settings: Sequence[str] = (),
        keep_open: Sequence[int] = (),
    ) -> git.Git.AutoInterrupt:
        command = [git.Git.GIT_PYTHON_GIT_EXECUTABLE, *_options(settings), *arguments]
        environment = {**self._environment(), **(env or {})}
        return self._git.execute(
            [*_without_inherited(environment), *command],
            istream=subprocess.PIPE,
            as_process=True,
            env=environment,
            pass_fds=tuple(keep_open),
            # Its own group, so that a time-out ends what it started too.
            start_new_session=True,
        )

    def _environment(self) -> dict[str, str]:
        """All that git is told of its surroundings; see also `_without_inherited`."""
        return {
            "GIT_DIR": str(self.path),
            "GIT_OBJECT_DIRECTORY": str(self.path / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": "",
            "GIT_NAMESPACE": "",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_COUNT": "0",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_ALLOW_PROTOCOL": "",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_NO_REPLACE_OBJECTS": "1",
            # The repository's own info/grafts would change what a commit builds on.
            "GIT_GRAFT_FILE": "/dev/null",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_LITERAL_PATHSPECS": "1",
            # What is read and written here without git are SHA-1 objects and refs as files.
            "GIT_DEFAULT_HASH": "sha1",
            "GIT_DEFAULT_REF_FORMAT": "files",
            "GIT_COMMITTER_NAME": COMMITTER_NAME,
            "GIT_COMMITTER_EMAIL": COMMITTER_EMAIL,
        }


def _without_inherited(environment: Mapping[str, str]) -> list[str]:
    """A command that takes away what a surrounding git (a hook, a CI job) has left, which GitPython would pass on."""
    names = [name for name in os.environ if name.startswith("GIT_") and name not in environment]
    return ["env", *(part for name in names for part in ("-u", name))] if names else []


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").strip()


def _options(settings: Sequence[str]) -> list[str]:
    return [part for setting in (*_SETTINGS, *settings) for part in ("-c", setting)]


def _error(command: str, result: GitResult) -> HarnessRepoError:
    message = f"git {command} failed with {result.code}: {result.error}"
    busy = "Unable to create" in result.error and ".lock" in result.error
    return RepoBusy(message) if busy else HarnessRepoError(message)
