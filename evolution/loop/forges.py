"""Where well-known forges compare two branches, so that a link begins a pull request. Nothing is contacted."""

import re
from collections.abc import Callable
from urllib.parse import quote, urlencode

# Host and path of the repository, from an address as git takes it; only a host that reads as one.
_HTTPS = re.compile(r"https://(?P<host>[A-Za-z0-9.-]+)(?::[0-9]+)?/(?P<path>[^?#@\s]+)")
_SSH = re.compile(r"ssh://(?:[\w.-]+@)?(?P<host>[A-Za-z0-9.-]+)(?::[0-9]+)?/(?P<path>[^?#@\s]+)")
_SHORT = re.compile(r"(?:[\w.-]+@)?(?P<host>[A-Za-z0-9.-]+):(?P<path>[^/?#@\s][^?#@\s]*)")


def _github(target: str, branch: str) -> str:
    return f"/compare/{quote(target)}...{quote(branch)}?expand=1"


def _gitea(target: str, branch: str) -> str:
    return f"/compare/{quote(target)}...{quote(branch)}"


def _gitlab(target: str, branch: str) -> str:
    names = {"merge_request[source_branch]": branch, "merge_request[target_branch]": target}
    return f"/-/merge_requests/new?{urlencode(names)}"


def _bitbucket(target: str, branch: str) -> str:
    return f"/pull-requests/new?{urlencode({'source': branch, 'dest': target})}"


# By a part of the host's name, which is that of the product where people host it themselves.
FORGES: dict[str, Callable[[str, str], str]] = {
    "github": _github,
    "gitlab": _gitlab,
    "bitbucket": _bitbucket,
    "codeberg": _gitea,
    "gitea": _gitea,
    "forgejo": _gitea,
    "gitee": _github,
}


def compare_link(address: str, target: str, branch: str) -> str:
    """The page on which `branch` is proposed for `target`; empty when the address is of no forge that is known."""
    found = _HTTPS.fullmatch(address) or _SSH.fullmatch(address) or _SHORT.fullmatch(address)
    if found is None:
        return ""
    labels = found["host"].lower().split(".")
    for name, page in FORGES.items():
        if name in labels:
            path = found["path"].strip("/").removesuffix(".git")
            return f"https://{found['host'].lower()}/{quote(path)}{page(target, branch)}"
    return ""
