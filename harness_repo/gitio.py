"""The one place that starts git: a bare repository, no hooks, no network, no configuration from outside."""

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import git

from harness_repo.errors import HarnessRepoError, RepoBusy

COMMITTER_NAME = "Harness Workbench"
COMMITTER_EMAIL = "workbench@localhost"

_SETTINGS = (
    "core.hooksPath=/dev/null",
    "protocol.allow=never",
    "core.quotePath=false",
    # Another writer's lock on a ref lasts milliseconds: wait for it instead of failing at once.
    "core.filesRefLockTimeout=3000",
    "core.packedRefsTimeout=3000",
    "core.fsync=reference,committed",
    "gc.auto=0",
    "maintenance.auto=false",
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
    ) -> GitResult:
        """Run one git command and wait for it; an exit code that is not allowed raises HarnessRepoError."""
        command = [git.Git.GIT_PYTHON_GIT_EXECUTABLE, *_options(settings), *arguments]
        process = self._git.execute(
            command, istream=subprocess.PIPE, as_process=True, env={**self._environment(), **(env or {})}
        )
        out, failure = process.communicate(stdin)
        result = GitResult(process.returncode, out, failure.decode("utf-8", "replace").strip())
        if result.code not in allowed:
            raise _error(arguments[0], result)
        return result

    def _environment(self) -> dict[str, str]:
        """Overrides whatever a surrounding git (a hook, a CI job) has left in the environment."""
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
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_COMMITTER_NAME": COMMITTER_NAME,
            "GIT_COMMITTER_EMAIL": COMMITTER_EMAIL,
        }


def _options(settings: Sequence[str]) -> list[str]:
    return [part for setting in (*_SETTINGS, *settings) for part in ("-c", setting)]


def _error(command: str, result: GitResult) -> HarnessRepoError:
    message = f"git {command} failed with {result.code}: {result.error}"
    busy = "Unable to create" in result.error and ".lock" in result.error
    return RepoBusy(message) if busy else HarnessRepoError(message)
