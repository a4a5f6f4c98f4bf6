"""The repository elsewhere that the installation's settings give a harness; see HARNESS_REMOTES."""

import os
from collections.abc import Mapping

from django.conf import settings
from django.utils.translation import gettext as _

from evolution.errors import LoopError
from evolution.models import Harness
from harness_repo.git.addresses import PROTOCOLS, RemotePolicy, check_address
from harness_repo.git.errors import HarnessRepoError
from harness_repo.git.names import check_new_ref_name
from harness_repo.git.remotes import ORIGIN, Remote

_FORM = (
    '{"HARNESS": {"url": "...", "name": "origin", "branch": "main", "protocols": ["https"], "token_env": "VARIABLE", '
    '"user": "...", "ssh_key": "FILE", "known_hosts": "FILE", "seconds": 300}}'
)
_KNOWN = {"url", "name", "branch", "protocols", "token_env", "user", "ssh_key", "known_hosts", "seconds"}
# A day; JSON as Python reads it has infinity too.
_MOST_SECONDS = 86400.0
_TEXTS = ("user", "ssh_key", "known_hosts")


def read_remote(harness: Harness) -> Remote:
    """The remote of a harness. LoopError when it has none, or when the setting cannot be used, and why."""
    entry = (
        settings.HARNESS_REMOTES.get(harness.name) if isinstance(settings.HARNESS_REMOTES, Mapping) else None
    )
    if entry is None:
        text = _("%(harness)s has no remote; an operator sets one in HARNESS_REMOTES: %(form)s")
        raise LoopError(text % {"harness": harness.name, "form": _FORM})
    try:
        return _read_entry(entry)
    except (ValueError, HarnessRepoError) as failure:
        text = _("HARNESS_REMOTES can't be used for %(harness)s: %(reason)s")
        raise LoopError(text % {"harness": harness.name, "reason": failure}) from None


def _read_entry(entry: object) -> Remote:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("url"), str) or not entry.keys() <= _KNOWN:
        raise ValueError(f"write {_FORM}")
    name, branch, seconds = entry.get("name", ORIGIN), entry.get("branch", ""), entry.get("seconds", 300)
    texts = {key: entry[key] for key in _TEXTS if key in entry}
    if not all(isinstance(value, str) for value in (name, branch, *texts.values())) or not _is_positive(
        seconds
    ):
        raise ValueError(f"write {_FORM}")
    everything = RemotePolicy(protocols=PROTOCOLS[:3])
    allowed = _protocols(entry) or (check_address(entry["url"], everything).protocol,)
    policy = RemotePolicy(protocols=allowed, token=_token(entry), seconds=float(seconds), **texts)
    check_address(entry["url"], policy)
    return Remote(
        check_new_ref_name(name), entry["url"], policy, check_new_ref_name(branch) if branch else ""
    )


def _protocols(entry: Mapping[str, object]) -> tuple[str, ...]:
    found = entry.get("protocols", [])
    if not isinstance(found, list) or not all(isinstance(protocol, str) for protocol in found):
        raise ValueError("protocols is a list of names")
    return tuple(found)


def _is_positive(seconds: object) -> bool:
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        return False
    return 0 < seconds <= _MOST_SECONDS


def _token(entry: Mapping[str, object]) -> str:
    """The token that the named variable holds; a setting names it, so that the setting itself is no secret."""
    variable = entry.get("token_env", "")
    if not isinstance(variable, str):
        raise ValueError("token_env is the name of a variable")
    if not variable:
        return ""
    token = os.environ.get(variable, "")
    if not token:
        raise ValueError(f"the variable {variable} is not set")
    return token
