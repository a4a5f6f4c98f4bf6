"""Other repositories: taking one in with its history, fetching from one, pushing to one.

Only addresses that an operator configured are contacted, by the protocols that they allow. What is fetched lands
on `refs/remotes/<name>/*`; no branch of ours moves by it.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from harness_repo.git.addresses import RemotePolicy, check_address
from harness_repo.git.arrivals import Arrival, fetch_refs, find_default_branch, forget_arrivals
from harness_repo.git.building import building_repository, initialise
from harness_repo.git.contact import contact, remote_failure, served_by
from harness_repo.git.errors import BadRef, HarnessRepoError, MissingRef, RemoteFailed, StaleBase
from harness_repo.git.gitio import GitRunner
from harness_repo.git.locks import hold_lock
from harness_repo.git.names import check_new_ref_name, check_ref_name
from harness_repo.git.refs import (
    BRANCHES,
    REMOTES,
    SOURCE_TAGS,
    TAGS,
    ZERO,
    list_refs,
    point_ref,
    read_pointer,
    read_ref,
    update_refs,
)
from harness_repo.git.repository import MAIN, HarnessRepository
from harness_repo.git.snapshots import check_size

LOCAL_ONLY = RemotePolicy()
NOTHING_EXPECTED: Mapping[str, str] = MappingProxyType({})
ORIGIN = "origin"
# A remote's HEAD, beside its branches: one may be called HEAD/x.
_HEADS = "refs/remote-heads/"
_FETCH_LOCK = "workbench-fetch.lock"
# How long what was pushed waits for a fetch that is at work, to be noted as what the remote has.
_NOTE_SECONDS = 30.0


@dataclass(frozen=True)
class Remote:
    """A repository elsewhere that an operator has configured."""

    # Names its refs here: refs/remotes/<name>/*.
    name: str
    address: str
    policy: RemotePolicy = field(default_factory=RemotePolicy)
    # The branch there that is our main; "" for the one that its HEAD stands for.
    branch: str = ""


@dataclass(frozen=True)
class FetchResult:
    """What stands on refs/remotes/<name>/ after a fetch."""

    # Branch of the remote -> commit id, by name.
    branches: Mapping[str, str]
    # Branch of the remote that was not taken -> why.
    skipped: Mapping[str, str] = field(default_factory=dict)


def import_repository(
    source: str | Path, target: Path | str, *, ref: str | None = None, policy: RemotePolicy = LOCAL_ONLY
) -> HarnessRepository:
    """Make a bare repository at `target` whose main is the source's `ref` (default: its HEAD), with its history.

    `source` is a folder (bare or not) or a URL that the policy allows; `ref` a branch, a tag or a commit id that
    one leads to. The source's branches stand on refs/remotes/origin/*, its tags on refs/source-tags/*, all but those
    whose name or objects are refused here. Raises RepoExists, BadRemote (not allowed), RemoteFailed (not reachable,
    no repository, a shallow one, broken objects), TooLarge, MissingRef, BadRef; then nothing is left at `target`.
    """
    if ref is not None:
        check_ref_name(ref)
    address = check_address(str(source), policy)
    with building_repository(target) as git:
        initialise(git)
        arrival = fetch_refs(git, address, policy, ("HEAD", BRANCHES, TAGS))
        start = _choose(git, arrival, ref)
        check_size(git, start)
        moves = {f"{REMOTES}{ORIGIN}/{name}": sha for name, sha in _usable(arrival, BRANCHES).items()}
        moves |= {f"{SOURCE_TAGS}{name}": sha for name, sha in _usable(arrival, TAGS).items()}
        update_refs(git, moves)
        git.run("update-ref", f"{BRANCHES}{MAIN}", start, ZERO)
        forget_arrivals(git)
    return HarnessRepository(target)


def fetch_remote(repository: HarnessRepository, remote: Remote) -> FetchResult:
    """Bring what the remote's branches have, put it on refs/remotes/<name>/*, and forget branches that are gone.

    A branch whose name or objects are refused here is skipped; of all others all move, or none. Raises BadRemote,
    RemoteFailed, RepoBusy (another fetch is at work).
    """
    address = check_address(remote.address, remote.policy)
    prefix = f"{REMOTES}{check_new_ref_name(remote.name)}/"
    git = GitRunner(repository.path)
    with hold_lock(git.path, _FETCH_LOCK, seconds=1) as descriptor:
        forget_arrivals(git)
        arrival = fetch_refs(git, address, remote.policy, (BRANCHES,), keep_open=(descriptor,))
        branches = _usable(arrival, BRANCHES)
        # What could not be brought this time is still there.
        kept = {name.removeprefix(BRANCHES) for name in arrival.refused}
        gone = list_refs(git, prefix).keys() - branches.keys() - kept
        moves: dict[str, str | None] = {f"{prefix}{name}": None for name in gone}
        moves |= {f"{prefix}{name}": sha for name, sha in branches.items()}
        update_refs(git, moves)
        forget_arrivals(git)
    # All has come by now; what its HEAD is can wait for the next time.
    with suppress(RemoteFailed):
        _learn_branch(repository, remote)
    return FetchResult(branches, _skipped(arrival, branches))


def push_remote(
    repository: HarnessRepository,
    remote: Remote,
    refs: Sequence[str],
    *,
    expected: Mapping[str, str] = NOTHING_EXPECTED,
) -> list[str]:
    """Put branches and tags of ours on the remote: all or none, never over what it has there.

    Each is `SOURCE[:DESTINATION]`; without a destination it keeps its name, but main goes where remote_branch says,
    which is asked for if nobody knows. Returns them as SOURCE, or SOURCE:DESTINATION where the names differ. What
    went to branches stands on refs/remotes/<name>/* then, as after a fetch. Raises StaleBase when the remote has other
    work there, or a ref of ours is not at the commit that is `expected` of it; BadRemote, RemoteFailed, MissingRef,
    BadRef.
    """
    address = check_address(remote.address, remote.policy)
    git = GitRunner(repository.path)
    found = [_find_ref(git.path, *_split_spec(ref)) for ref in refs]
    for push in found:
        if expected.get(push.source, push.sha) != push.sha:
            raise StaleBase(f"{push.source} has moved on: look at it, and decide again")
    if any(push.source == MAIN and not push.target for push in found) and not _known_branch(
        repository, remote
    ):
        _learn_branch(repository, remote)
    main = remote_branch(repository, remote)
    pushes = [
        push if push.target else push.to(main if push.source == MAIN else push.source) for push in found
    ]
    if not pushes:
        return []
    arguments = ("push", "--quiet", "--porcelain", "--no-verify", "--atomic", "--recurse-submodules=no")
    extra = served_by(address, "receive-pack")
    pairs = [f"{push.sha}:{push.kind}{push.target}" for push in pushes]
    result = contact(git, (*arguments, *extra, "--", address.text, *pairs), address, remote.policy)
    told = result.text + result.error
    if "[rejected]" in told or "non-fast-forward" in told or "fetch first" in told:
        raise StaleBase(f"{remote.name} has moved on: fetch, and decide again")
    if result.code:
        raise remote_failure("push", result, remote.policy)
    _note_pushed(git, remote, pushes)
    return [push.text for push in pushes]


def fetched_branches(repository: HarnessRepository, remote: str, prefix: str = "") -> dict[str, str]:
    """The remote's branches whose names begin so (a whole part: "proposal/"), as they were fetched or pushed last."""
    found = list_refs(GitRunner(repository.path), f"{REMOTES}{check_new_ref_name(remote)}/{prefix}")
    return {f"{prefix}{name}": sha for name, sha in found.items()}


def remote_branch(repository: HarnessRepository, remote: Remote) -> str:
    """The remote's branch that is our main: as configured, else its HEAD's when a fetch has seen it, else main."""
    return _known_branch(repository, remote) or MAIN


def fetched_commit(repository: HarnessRepository, remote: Remote) -> str:
    """What was fetched of the remote's branch that is our main; MissingRef with the branches that there are."""
    branch = remote_branch(repository, remote)
    prefix = f"{REMOTES}{check_new_ref_name(remote.name)}/"
    try:
        return repository.resolve(f"{prefix}{check_ref_name(branch)}")
    except MissingRef:
        names = ", ".join(list_refs(GitRunner(repository.path), prefix)) or "none"
        text = f"of {remote.name} no branch {branch!r} was fetched; there are: {names}"
        raise MissingRef(text) from None


def list_taken(repository: HarnessRepository) -> tuple[list[str], list[str]]:
    """The branches of remotes (`origin/x`) and the tags of the imported repository that stand here, by name."""
    git = GitRunner(repository.path)
    return list(list_refs(git, REMOTES)), list(list_refs(git, SOURCE_TAGS))


def advance_to_remote(repository: HarnessRepository, remote: Remote) -> str:
    """Move main to what was fetched of the remote's branch, and return that commit; nothing happens if it is there.

    StaleBase when main has commits that the remote does not have; MissingRef when nothing was fetched.
    """
    old = repository.resolve(MAIN)
    new = fetched_commit(repository, remote)
    if new != old:
        repository.advance_main(new, expected=old)
    return new


@dataclass(frozen=True)
class _Push:
    """One ref of ours, and where it goes on the remote: among the same kind."""

    kind: str
    source: str
    sha: str
    target: str

    def to(self, target: str) -> "_Push":
        return replace(self, target=target)

    @property
    def text(self) -> str:
        return self.source if self.source == self.target else f"{self.source}:{self.target}"


def _note_pushed(git: GitRunner, remote: Remote, pushes: Sequence[_Push]) -> None:
    """Keep what the remote has now; a fetch that came earlier, and knows less, is waited for."""
    prefix = f"{REMOTES}{check_new_ref_name(remote.name)}/"
    moves: dict[str, str | None] = {
        f"{prefix}{push.target}": push.sha for push in pushes if push.kind == BRANCHES
    }
    # It is on the remote all the same, and the next fetch tells.
    with suppress(HarnessRepoError), hold_lock(git.path, _FETCH_LOCK, seconds=_NOTE_SECONDS):
        update_refs(git, moves)


def _split_spec(spec: str) -> tuple[str, str]:
    """The checked names of `SOURCE[:DESTINATION]`; a missing destination is ""."""
    source, colon, target = spec.partition(":")
    return check_new_ref_name(source), check_new_ref_name(target) if colon else ""


def _known_branch(repository: HarnessRepository, remote: Remote) -> str:
    if remote.branch:
        return check_new_ref_name(remote.branch)
    pointer = read_pointer(repository.path, _head_ref(remote)) or ""
    return pointer.removeprefix(f"{REMOTES}{remote.name}/")


def _learn_branch(repository: HarnessRepository, remote: Remote) -> None:
    """Keep which branch the remote's HEAD stands for, unless one is configured; a HEAD of no use changes nothing."""
    if remote.branch:
        return
    address = check_address(remote.address, remote.policy)
    git = GitRunner(repository.path)
    with suppress(BadRef):
        branch = find_default_branch(git, address, remote.policy)
        target = f"{REMOTES}{remote.name}/{check_new_ref_name(branch)}" if branch else None
        if target and target != read_pointer(git.path, _head_ref(remote)):
            point_ref(git, _head_ref(remote), target)


def _head_ref(remote: Remote) -> str:
    return f"{_HEADS}{check_new_ref_name(remote.name)}/HEAD"


def _choose(git: GitRunner, arrival: Arrival, ref: str | None) -> str:
    """The commit of what was fetched that is to be main."""
    repository = HarnessRepository(git.path)
    wanted = [BRANCHES + ref, TAGS + ref] if ref else ["HEAD"]
    for name in wanted:
        if name in arrival.refused:
            raise RemoteFailed(f"{name} cannot be taken: {arrival.refused[name]}")
    found = [arrival.commits[name] for name in wanted if name in arrival.commits]
    for name in found or ([ref] if ref else []):
        with suppress(MissingRef):
            return repository.resolve(name)
    raise MissingRef(f"the source has no branch, tag or commit {ref or 'HEAD'!r}")


def _usable(arrival: Arrival, prefix: str) -> dict[str, str]:
    """The branches, or tags, that arrived and whose names we take, by name."""
    usable: dict[str, str] = {}
    for full in sorted(name for name in arrival.commits if name.startswith(prefix)):
        name = full.removeprefix(prefix)
        with suppress(BadRef):
            check_new_ref_name(name)
            # A server can say that it has `a` and `a/b`; here one stands in the other's way.
            if not usable.keys() & set(_folders(name)):
                usable[name] = arrival.commits[full]
    return usable


def _folders(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:number]) for number in range(1, len(parts))]


def _skipped(arrival: Arrival, usable: Mapping[str, str]) -> dict[str, str]:
    """The branches that are not there after the fetch, and why."""
    arrived = {name.removeprefix(BRANCHES) for name in arrival.commits if name.startswith(BRANCHES)}
    skipped = dict.fromkeys(arrived - usable.keys(), "not a name that can be taken here")
    skipped |= {name.removeprefix(BRANCHES): reason for name, reason in arrival.refused.items()}
    return dict(sorted(skipped.items()))


def _find_ref(path: Path, name: str, target: str) -> _Push:
    """A branch or tag of ours."""
    for kind in (BRANCHES, TAGS):
        sha = read_ref(path, kind + name)
        if sha:
            return _Push(kind, name, sha, target)
    raise MissingRef(f"no branch or tag {name!r}")
