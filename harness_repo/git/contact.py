"""Runs git commands that reach out: to one address, by its protocol, with nothing else of this machine or of that."""

import base64
import shlex
from collections.abc import Sequence

from harness_repo.git.addresses import Address, RemotePolicy
from harness_repo.git.errors import RemoteFailed, TimedOut
from harness_repo.git.gitio import GitResult, GitRunner

_HINT_SHALLOW = (
    "a part of its history is missing; if it is a shallow clone, run `git fetch --unshallow` there. "
)
# A message for people: the end of what git said.
_MAX_MESSAGE = 2000
# Old tools' sloppiness, of which no harm comes; everything else that git fsck knows is refused.
_TOLERATED = (
    "badTimezone", "emptyName", "gitmodulesMissing", "gitmodulesParse", "missingEmail", "missingNameBeforeEmail",
    "missingSpaceBeforeDate", "missingSpaceBeforeEmail", "zeroPaddedDate", "zeroPaddedFilemode",
)  # fmt: skip
_SETTINGS = (
    "fetch.fsckObjects=true",
    *(f"fetch.fsck.{name}=ignore" for name in _TOLERATED),
    "fetch.unpackLimit=1",
    "core.sshCommand=false",
    "core.askPass=",
    "credential.helper=",
    "http.followRedirects=false",
)
# A repository on this machine is served by a git that runs as us, and reads that repository's configuration:
# what names a program in it, or has one run, is overridden.
_SERVED_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.alternateRefsCommand=:",
    "core.fsmonitor=false",
    "core.sshCommand=false",
    "core.attributesFile=/dev/null",
    "receive.denyCurrentBranch=refuse",
    "receive.autogc=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.allow=never",
    # It may be of another user; to read it, an operator has named it.
    "safe.directory=*",
)


def contact(
    git: GitRunner,
    arguments: Sequence[str],
    address: Address,
    policy: RemotePolicy,
    *,
    stdin: bytes = b"",
    keep_open: Sequence[int] = (),
    seconds: float | None = None,
) -> GitResult:
    """Run a git command that may reach out, to this address and by its protocol only; RemoteFailed after the time."""
    try:
        return git.run(
            *arguments,
            stdin=stdin,
            env=_environment(address, policy),
            allowed=range(-64, 256),
            settings=_SETTINGS,
            keep_open=keep_open,
            seconds=policy.seconds if seconds is None else seconds,
        )
    except TimedOut as failure:
        raise RemoteFailed(str(failure)) from None


def served_by(address: Address, service: str) -> tuple[str, ...]:
    """The option that makes git serve a repository of this machine (upload-pack, receive-pack) without its programs."""
    if address.protocol != "file":
        return ()
    settings = " ".join(f"-c {shlex.quote(setting)}" for setting in _SERVED_SETTINGS)
    return (f"--{service}=git {settings} {service}",)


def remote_failure(what: str, result: GitResult, policy: RemotePolicy) -> RemoteFailed:
    """The error for a command that failed, with what git said but no secret."""
    text = result.error or result.text
    for secret in (policy.token, _credentials(policy)) if policy.token else ():
        text = text.replace(secret, "***")
    hint = _HINT_SHALLOW if _is_shallow(text) else ""
    return RemoteFailed(f"git {what} failed: {hint}{text[-_MAX_MESSAGE:]}")


def _is_shallow(text: str) -> bool:
    return "Failed to traverse parents" in text or "shallow" in text


def _environment(address: Address, policy: RemotePolicy) -> dict[str, str]:
    env = {
        "GIT_ALLOW_PROTOCOL": address.protocol,
        "GIT_PROTOCOL_FROM_USER": "0",
        # Empty, so that nobody is asked anything.
        "GIT_ASKPASS": "",
        "SSH_ASKPASS": "",
        "GIT_SSH_VARIANT": "ssh",
        "GIT_SSH_COMMAND": _ssh_command(policy),
    }
    if policy.token:
        # In the environment of this one process, and for this one host: arguments are for everybody to read.
        env |= {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"http.{address.origin}/.extraHeader",
            "GIT_CONFIG_VALUE_0": f"Authorization: Basic {_credentials(policy)}",
        }
    return env


def _ssh_command(policy: RemotePolicy) -> str:
    options = [
        "-oBatchMode=yes",
        "-oStrictHostKeyChecking=yes",
        "-oConnectTimeout=20",
        "-oPermitLocalCommand=no",
    ]
    if policy.ssh_key:
        options += ["-oIdentitiesOnly=yes", "-i", policy.ssh_key]
    if policy.known_hosts:
        options.append(f"-oUserKnownHostsFile={policy.known_hosts}")
    return shlex.join(["ssh", *options])


def _credentials(policy: RemotePolicy) -> str:
    return base64.b64encode(f"{policy.user}:{policy.token}".encode()).decode()
