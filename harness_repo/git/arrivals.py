"""Brings refs of another repository, and what they lead to: all at once, or those that can be brought at all."""

import secrets
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness_repo.git.addresses import Address, RemotePolicy
from harness_repo.git.contact import contact, remote_failure, served_by
from harness_repo.git.errors import BadRef, RemoteFailed
from harness_repo.git.gitio import GitResult, GitRunner
from harness_repo.git.names import check_ref_name
from harness_repo.git.refs import list_refs, update_refs

# Where a fetch lands until it is complete.
_ARRIVING = "refs/fetching/"
_OPTIONS = (
    "--quiet",
    "--no-tags",
    "--no-write-fetch-head",
    "--no-auto-maintenance",
    "--refmap=",
    "--no-recurse-submodules",
)
# Refs that are tried one by one at last; each takes a connection.
_MOST_REFUSED = 50
_POINTER = "ref: refs/heads/"
_NOT_A_NAME = "not a name that can be taken here"


@dataclass
class Arrival:
    """What came, by the full names that the other repository has for it."""

    # Ref -> id of the commit that it leads to, as a tag too.
    commits: dict[str, str] = field(default_factory=dict)
    # Ref that could not be brought -> why.
    refused: dict[str, str] = field(default_factory=dict)


def fetch_refs(
    git: GitRunner,
    address: Address,
    policy: RemotePolicy,
    wanted: Sequence[str],
    keep_open: Sequence[int] = (),
) -> Arrival:
    """Bring "HEAD" and refs below prefixes ("refs/heads/"), as far as they can be; RemoteFailed when none can.

    They stand under refs/fetching/ until `forget_arrivals`.
    """
    return _Fetch(git, address, policy, keep_open).bring(wanted)


def find_default_branch(git: GitRunner, address: Address, policy: RemotePolicy) -> str | None:
    """The branch that the other repository's HEAD stands for; None when it does not say so. RemoteFailed."""
    served = served_by(address, "upload-pack")
    result = contact(
        git, ("ls-remote", "--quiet", "--symref", *served, "--", address.text, "HEAD"), address, policy
    )
    if result.code:
        raise remote_failure("fetch", result, policy)
    for line in result.out.decode("utf-8", "surrogateescape").split("\n"):
        target, _, name = line.partition("\t")
        if name == "HEAD" and target.startswith(_POINTER):
            return target.removeprefix(_POINTER)
    return None


def forget_arrivals(git: GitRunner) -> None:
    """Remove what this fetch, or one that was killed, has landed."""
    update_refs(git, dict.fromkeys((f"{_ARRIVING}{name}" for name in list_refs(git, _ARRIVING)), None))
    shutil.rmtree(git.path / _ARRIVING, ignore_errors=True)


class _Fetch:
    def __init__(
        self, git: GitRunner, address: Address, policy: RemotePolicy, keep_open: Sequence[int]
    ) -> None:
        self._git = git
        self._address = address
        self._policy = policy
        self._keep_open = keep_open
        self._prefix = f"{_ARRIVING}{secrets.token_hex(8)}/"
        self._deadline = time.monotonic() + policy.seconds

    def bring(self, wanted: Sequence[str]) -> Arrival:
        """First all in one go; when that fails, find out which ones are in the way."""
        specs = [
            f"+{ref}*:{self._prefix}{ref}*" if ref.endswith("/") else f"+{ref}:{self._prefix}{ref}"
            for ref in wanted
        ]
        result = self._fetch(specs)
        if not result.code:
            return Arrival(list_refs(self._git, self._prefix))
        names = self._list_remote(wanted)
        arrival = Arrival(refused={name: _NOT_A_NAME for name in names if not _is_ref(name)})
        failure = self._bring_some([name for name in names if name not in arrival.refused], arrival)
        if failure is not None and not arrival.commits:
            raise remote_failure("fetch", failure, self._policy)
        return arrival

    def _bring_some(self, names: Sequence[str], arrival: Arrival) -> GitResult | None:
        """Bring what can be brought of these, by halves; the last failure, if there was one."""
        if not names:
            return None
        # Under numbers: their names may be too long for a file here, or in each other's way.
        places = {name: f"{self._prefix}{secrets.token_hex(8)}" for name in names}
        result = self._fetch([f"+{name}:{place}" for name, place in places.items()])
        if not result.code:
            there = list_refs(self._git, self._prefix)
            arrived = {name: there.get(place.removeprefix(self._prefix)) for name, place in places.items()}
            arrival.commits |= {name: sha for name, sha in arrived.items() if sha}
            return None
        if len(names) == 1:
            arrival.refused[names[0]] = _reason(result)
            if len(arrival.refused) > _MOST_REFUSED:
                raise remote_failure("fetch", result, self._policy)
            return result
        middle = len(names) // 2
        first, second = self._bring_some(names[:middle], arrival), self._bring_some(names[middle:], arrival)
        return second or first

    def _fetch(self, specs: Sequence[str]) -> GitResult:
        served = served_by(self._address, "upload-pack")
        arguments = ("fetch", *_OPTIONS, *served, "--stdin", "--", self._address.text)
        stdin = "".join(f"{spec}\n" for spec in specs).encode("utf-8", "surrogateescape")
        return self._contact(arguments, stdin)

    def _list_remote(self, wanted: Sequence[str]) -> list[str]:
        """The names that the other repository has."""
        arguments = (
            "ls-remote",
            "--quiet",
            *served_by(self._address, "upload-pack"),
            "--",
            self._address.text,
        )
        result = self._contact(arguments)
        if result.code:
            raise remote_failure("fetch", result, self._policy)
        lines = result.out.decode("utf-8", "surrogateescape").split("\n")
        names = [line.partition("\t")[2] for line in lines]
        return [
            name
            for name in names
            if not name.endswith("^{}")
            and any(name.startswith(ref) if ref.endswith("/") else name == ref for ref in wanted)
        ]

    def _contact(self, arguments: Sequence[str], stdin: bytes = b"") -> GitResult:
        seconds = self._deadline - time.monotonic()
        if seconds <= 0:
            raise RemoteFailed(f"git {arguments[0]} took more than {self._policy.seconds:g} seconds")
        return contact(
            self._git, arguments, self._address, self._policy,
            stdin=stdin, keep_open=self._keep_open, seconds=seconds,
        )  # fmt: skip


def _is_ref(name: str) -> bool:
    try:
        check_ref_name(name)
    except BadRef:
        return False
    return True


def _reason(result: GitResult) -> str:
    lines = [line for line in result.error.split("\n") if line]
    return lines[0] if lines else f"git failed with {result.code}"
