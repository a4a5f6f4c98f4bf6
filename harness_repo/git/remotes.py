"""Other repositories: taking one in with its history, fetching from one, pushing to one.

Only addresses that an operator configured are contacted, by the protocols that they allow. What is fetched lands
on `refs/remotes/<name>/*`; no branch of ours moves by it.
"""

import base64
import secrets
import shlex
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from harness_repo.git.addresses import Address, RemotePolicy, check_address
from harness_repo.git.errors import BadRef, HarnessRepoError, MissingRef, RemoteFailed, StaleBase
from harness_repo.git.gitio import GitResult, GitRunner
from harness_repo.git.locks import hold_lock
from harness_repo.git.names import check_new_ref_name, check_ref_name
from harness_repo.git.refs import BRANCHES, TAGS, ZERO, list_refs, read_ref, update_refs
from harness_repo.git.repository import MAIN, HarnessRepository, building_repository, initialise

LOCAL_ONLY = RemotePolicy()
ORIGIN = "origin"
REMOTES = "refs/remotes/"

_FETCH_LOCK = "workbench-fetch.lock"
# Where a fetch lands until it is complete.
_ARRIVING = "refs/fetching/"
# A message for people: the end of what git said.
_MAX_MESSAGE = 2000
# Old tools' sloppiness, of which no harm comes; everything else that git fsck knows is refused.
_TOLERATED = (
    "badTimezone", "emptyName", "gitmodulesMissing", "gitmodulesParse", "missingEmail", "missingNameBeforeEmail",
    "missingSpaceBeforeDate", "missingSpaceBeforeEmail", "zeroPaddedDate", "zeroPaddedFilemode",
)  # fmt: skip
_FETCH_SETTINGS = (
    "fetch.fsckObjects=true",
    *(f"fetch.fsck.{name}=ignore" for name in _TOLERATED),
    "fetch.unpackLimit=1",
    "core.sshCommand=false",
    "core.askPass=",
    "credential.helper=",
    "http.followRedirects=false",
)


@dataclass(frozen=True)
class Remote:
    """A repository elsewhere that an operator has configured."""

    # Names its refs here: refs/remotes/<name>/*.
    name: str
    address: str
    policy: RemotePolicy = field(default_factory=RemotePolicy)


@dataclass(frozen=True)
class FetchResult:
    """What stands on refs/remotes/<name>/ after a fetch."""

    # Branch of the remote -> commit id, by name.
    branches: Mapping[str, str]
    # Branches whose names are refused here.
    skipped: tuple[str, ...] = ()


def import_repository(
    source: str | Path, target: Path | str, *, ref: str | None = None, policy: RemotePolicy = LOCAL_ONLY
) -> HarnessRepository:
    """Make a bare repository at `target` whose main is the source's `ref` (default: its HEAD), with its history.

    `source` is a folder (bare or not) or a URL that the policy allows; `ref` a branch, a tag or a commit id that
    one leads to. Raises RepoExists, BadRemote (not allowed), RemoteFailed (not reachable, no repository, broken
    objects), MissingRef, BadRef; then nothing is left at `target`.
    """
    if ref is not None:
        check_ref_name(ref)
    address = check_address(str(source), policy)
    with building_repository(target) as git:
        initialise(git)
        arriving = _fetch(git, address, policy, ("HEAD", "refs/heads/*", "refs/tags/*"))
        start = _choose(git, arriving, ref)
        branches, _skipped = _usable_branches(list_refs(git, f"{arriving}heads/"))
        moves: dict[str, str | None] = {f"{REMOTES}{ORIGIN}/{name}": sha for name, sha in branches.items()}
        update_refs(git, moves)
        git.run("update-ref", f"{BRANCHES}{MAIN}", start, ZERO)
        _forget_arrivals(git)
    return HarnessRepository(target)


def fetch_remote(repository: HarnessRepository, remote: Remote) -> FetchResult:
    """Bring what the remote's branches have, put it on refs/remotes/<name>/*, and forget branches that are gone.

    All of them move, or none. Raises BadRemote, RemoteFailed, RepoBusy (another fetch is at work).
    """
    address = check_address(remote.address, remote.policy)
    prefix = f"{REMOTES}{check_new_ref_name(remote.name)}/"
    git = GitRunner(repository.path)
    with hold_lock(git.path, _FETCH_LOCK, seconds=1) as descriptor:
        _forget_arrivals(git)
        arriving = _fetch(git, address, remote.policy, ("refs/heads/*",), keep_open=(descriptor,))
        branches, skipped = _usable_branches(list_refs(git, f"{arriving}heads/"))
        moves: dict[str, str | None] = {f"{prefix}{name}": None for name in list_refs(git, prefix)}
        moves |= {f"{prefix}{name}": sha for name, sha in branches.items()}
        update_refs(git, moves)
        _forget_arrivals(git)
    return FetchResult(branches, skipped)


def push_remote(repository: HarnessRepository, remote: Remote, refs: Sequence[str]) -> None:
    """Put branches and tags of ours on the remote under their names: all or none, never over what it has there.

    Raises StaleBase when the remote has moved on, BadRemote, RemoteFailed, MissingRef, BadRef.
    """
    address = check_address(remote.address, remote.policy)
    git = GitRunner(repository.path)
    pairs = [f"{sha}:{name}" for name, sha in (_find_ref(git.path, ref) for ref in refs)]
    if not pairs:
        return
    arguments = ("push", "--quiet", "--porcelain", "--no-verify", "--atomic", "--recurse-submodules=no")
    # A repository on this machine would run its hooks as us.
    quiet = ("--receive-pack=git -c core.hooksPath=/dev/null receive-pack",)
    extra = quiet if address.protocol == "file" else ()
    result = _contact(git, (*arguments, *extra, "--", address.text, *pairs), address, remote.policy)
    told = result.text + result.error
    if "[rejected]" in told or "non-fast-forward" in told or "fetch first" in told:
        raise StaleBase(f"{remote.name} has moved on: fetch, and decide again")
    if result.code:
        raise _failure("push", result, remote.policy)


def remote_ref(remote: Remote, branch: str) -> str:
    """Where a branch of the remote stands here after a fetch."""
    return f"{REMOTES}{check_new_ref_name(remote.name)}/{check_ref_name(branch)}"


def advance_to_remote(repository: HarnessRepository, remote: Remote, branch: str = MAIN) -> str:
    """Move main to what was fetched of the remote's branch, and return that commit; nothing happens if it is there.

    StaleBase when main has commits that the remote does not have; MissingRef when nothing was fetched.
    """
    old = repository.resolve(MAIN)
    new = repository.resolve(remote_ref(remote, branch))
    if new != old:
        repository.advance_main(new, expected=old)
    return new


def _fetch(
    git: GitRunner,
    address: Address,
    policy: RemotePolicy,
    refs: Sequence[str],
    keep_open: Sequence[int] = (),
) -> str:
    """Bring refs and all that they lead to; return the prefix that they stand under."""
    arriving = f"{_ARRIVING}{secrets.token_hex(8)}/"
    options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--refmap=")
    wanted = [f"+{ref}:{arriving}{ref.removeprefix('refs/')}" for ref in refs]
    arguments = ("fetch", *options, "--no-recurse-submodules", "--", address.text, *wanted)
    result = _contact(git, arguments, address, policy, keep_open)
    if result.code:
        raise _failure("fetch", result, policy)
    return arriving


def _contact(
    git: GitRunner,
    arguments: Sequence[str],
    address: Address,
    policy: RemotePolicy,
    keep_open: Sequence[int] = (),
) -> GitResult:
    """Run a git command that may reach out, to this address and by its protocol only."""
    return git.run(
        *arguments,
        env=_network_environment(address, policy),
        allowed=range(-64, 256),
        settings=_FETCH_SETTINGS,
        keep_open=keep_open,
        seconds=policy.seconds,
    )


def _network_environment(address: Address, policy: RemotePolicy) -> dict[str, str]:
    env = {
        "GIT_ALLOW_PROTOCOL": address.protocol,
        "GIT_PROTOCOL_FROM_USER": "0",
        "GIT_NO_LAZY_FETCH": "1",
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


def _failure(what: str, result: GitResult, policy: RemotePolicy) -> HarnessRepoError:
    text = result.error or result.text
    for secret in (policy.token, _credentials(policy)) if policy.token else ():
        text = text.replace(secret, "***")
    return RemoteFailed(f"git {what} failed: {text[-_MAX_MESSAGE:]}")


def _choose(git: GitRunner, arriving: str, ref: str | None) -> str:
    """The commit of what was fetched that is to be main."""
    repository = HarnessRepository(git.path)
    names = [f"{arriving}heads/{ref}", f"{arriving}tags/{ref}", ref or ""]
    for name in names if ref else [f"{arriving}HEAD"]:
        with suppress(MissingRef):
            return repository.resolve(name)
    raise MissingRef(f"the source has no branch, tag or commit {ref or 'HEAD'!r}")


def _usable_branches(branches: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The branches whose names we take, and the names of the others."""
    usable: dict[str, str] = {}
    for name, sha in branches.items():
        with suppress(BadRef):
            usable[check_new_ref_name(name)] = sha
    return usable, tuple(sorted(branches.keys() - usable.keys()))


def _forget_arrivals(git: GitRunner) -> None:
    """Remove what this fetch, or one that was killed, has landed."""
    update_refs(git, dict.fromkeys((f"{_ARRIVING}{name}" for name in list_refs(git, _ARRIVING)), None))
    shutil.rmtree(git.path / _ARRIVING, ignore_errors=True)


def _find_ref(path: Path, name: str) -> tuple[str, str]:
    """The full name of a branch or tag of ours, and its object."""
    check_new_ref_name(name)
    for full in (BRANCHES + name, TAGS + name):
        sha = read_ref(path, full)
        if sha:
            return full, sha
    raise MissingRef(f"no branch or tag {name!r}")
