"""Flags addresses that the base does not have: hosts, URLs of known hosts, e-mail addresses and telephone numbers."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from evolution.loop.flags.changes import FileChange
from evolution.loop.flags.flag import Flag, FlagKind
from evolution.loop.flags.scripts import looks_as
from harness_repo.format.textfile import MAX_FILE_BYTES

_END = r"\s<>\"'`|\\^，。；：！？、）】」』》”’"
_URL = re.compile(
    rf"\b(?:[a-z][a-z0-9+.-]{{1,15}}|hxxps?)://[^{_END}]+|\b(?:data|javascript):[^{_END}]{{8,}}",
    re.IGNORECASE,
)
_EMAIL = re.compile(r"[\w.+-]{1,64}@(?:[\w-]{1,63}\.)+[a-z]{2,12}\b", re.IGNORECASE)
# Without a scheme: only endings that are no file's, and no field's after a dot.
_BARE = re.compile(
    r"(?<![\w@./-])(?:www\.[\w.-]+\.[a-z]{2,12}|(?:[\w-]{1,63}\.)+"
    r"(?:com|net|org|io|cn|xyz|top|ru|cc|biz|info(?=/)|ai(?=/)|dev(?=/)|app(?=/)|me(?=/)|example(?=/)|site|online|link(?=/)))"
    rf"(?![\w-])(?:/[^{_END}]*)?",
    re.IGNORECASE,
)
_IP = re.compile(
    r"(?<![\w.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\w.]*\d)(?::\d{2,5})?"
)
_PHONE = re.compile(r"(?<![\w.])(?:\+\d{1,3}[- ]?)?1[3-9]\d[- ]?\d{4}[- ]?\d{4}(?!\w)|\+\d{7,15}\b")
_PUNCTUATION = ".,;:!?)]}*_~"


@dataclass
class Known:
    """What addresses a version has."""

    hosts: set[str] = field(default_factory=set)
    urls: set[str] = field(default_factory=set)
    contacts: set[str] = field(default_factory=set)
    # form -> the host of that form
    forms: dict[str, str] = field(default_factory=dict)


def read_addresses(files: Mapping[str, bytes]) -> Known:
    """All addresses of the files."""
    known = Known()
    for data in files.values():
        if len(data) > MAX_FILE_BYTES or b"\0" in data:
            continue
        text = data.decode("utf-8", "replace")
        for url in find_urls(text):
            known.urls.add(url)
            known.hosts.add(host_of(url))
        known.contacts.update(find_contacts(text))
    known.forms = {looks_as(host): host for host in known.hosts if host}
    return known


def flag_addresses(change: FileChange, known: Known) -> Iterator[Flag]:
    """The flags of the lines that a change adds."""
    for line in change.added:
        for kind, detail in _look_at(line.text, known):
            yield Flag(change.new_path, "new", line.number, kind, detail)


def _look_at(text: str, known: Known) -> Iterator[tuple[FlagKind, str]]:
    for url in dict.fromkeys(find_urls(text)):
        host = host_of(url)
        if url in known.urls:
            continue
        twin = known.forms.get(looks_as(host), "")
        if host not in known.hosts and (twin or host.startswith("xn--") or ".xn--" in host):
            yield FlagKind.LOOK_ALIKE, f"{host} → {twin or _decode(host)}"
        yield (FlagKind.NEW_URL if host in known.hosts else FlagKind.NEW_HOST), url
    for contact in dict.fromkeys(find_contacts(text)):
        if contact not in known.contacts:
            yield FlagKind.NEW_CONTACT, contact


def find_urls(text: str) -> Iterator[str]:
    """The addresses of a text, as they stand there; those without a scheme too."""
    rest = text
    for pattern in (_URL, _EMAIL, _BARE, _IP):
        found = pattern.findall(rest)
        rest = pattern.sub(" ", rest)
        if pattern is not _EMAIL:
            yield from (url.rstrip(_PUNCTUATION) for url in found)


def find_contacts(text: str) -> Iterator[str]:
    """The e-mail addresses and telephone numbers of a text."""
    rest = _URL.sub(" ", text)
    yield from (found.lower() for found in _EMAIL.findall(rest))
    yield from (re.sub(r"[- ]", "", found) for found in _PHONE.findall(rest))


def host_of(url: str) -> str:
    """The host of an address in small letters; "" where it has none, as with data:."""
    if url.lower().startswith(("data:", "javascript:")):
        return url.partition(":")[0].lower() + ":"
    try:
        host = urlsplit(url if "://" in url else f"//{url}").hostname
    except ValueError:
        host = url
    return (host or "").rstrip(".").removeprefix("www.")


def _decode(host: str) -> str:
    try:
        return host.encode("ascii").decode("idna")
    except UnicodeError:
        return host
