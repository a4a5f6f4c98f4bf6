"""The demonstration's cases: reads cases/*.yaml and checks each against its room.

A case is written short (see the comment in claims.yaml); what comes out is the full record that the
loop stores. Does not touch the database.
"""

import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evolution.demonstration.rooms import DatasetError, Fixtures, Room, expand_fixtures, load_rooms, read_yaml

# The guard holds what the first version does already and no later one may lose.
SPLITS = frozenset({"dev", "guard", "sealed", "calibration"})
# The name under which the avatar's earlier replies stand in the history.
AVATAR = "主播"
# What a right reply states here is manners, not data of a tool.
SOFT_CATEGORIES = frozenset({"small_talk", "out_of_scope"})
FIELDS = frozenset(
    {
        "key", "split", "lang", "room", "link", "script", "danmaku", "history", "faq", "hits", "facts",
        "forbidden", "fixtures_override",
    }
)  # fmt: skip


@dataclass(frozen=True)
class CaseData:
    """One case of the demonstration, complete."""

    key: str  # "stock-003"
    category: str
    language: str  # "zh" | "en", the viewers' language
    split: str  # "dev" | "guard" | "sealed" | "calibration"
    request: dict[str, Any]  # {"danmaku": [{"user", "text"}], "history": [{"user", "text"}]}, oldest first
    context: dict[str, Any]  # {"room": {...}, "products": [...], "faq": [...]}
    fixtures: Fixtures
    expected: dict[str, Any]  # {"facts": [{"fact", "accept"}], "forbidden": [{"claim", "match"}], "language"}
    # Faults that strike tool calls, see harness_repo.runtime.faults; the demonstration has none.
    faults: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Shared:
    """What cases refer to by name."""

    rooms: Mapping[str, Room]
    facts: Mapping[str, Mapping[str, Any]]
    forbidden: Mapping[str, Mapping[str, Any]]


def read_cases(folder: Path) -> list[CaseData]:
    """Every case under `folder`, by file name and then in written order; DatasetError names the wrong one."""
    claims = read_yaml(folder / "claims.yaml")
    shared = Shared(load_rooms(folder / "rooms.yaml"), claims["facts"], claims["forbidden"])
    cases: dict[str, CaseData] = {}
    for path in sorted((folder / "cases").glob("*.yaml")):
        for case in _read_file(path, shared):
            if case.key in cases:
                raise DatasetError(f"{path.name}: {case.key}: the key occurs twice")
            cases[case.key] = case
    return list(cases.values())


def normalise(text: str) -> str:
    """`text` as facts and claims are compared: NFKC, casefold, no white space."""
    return "".join(unicodedata.normalize("NFKC", text).casefold().split())


def _read_file(path: Path, shared: Shared) -> Iterator[CaseData]:
    for data in read_yaml(path):
        key = data.get("key", "a case without key")
        try:
            yield _build_case(path.stem, data, shared)
        except KeyError as error:
            raise DatasetError(f"{path.name}: {key}: {error} is missing or unknown") from error
        except DatasetError as error:
            raise DatasetError(f"{path.name}: {key}: {error}") from error


def _build_case(category: str, data: Mapping[str, Any], shared: Shared) -> CaseData:
    _check_shape(category, data)
    room = shared.rooms[data["room"]]
    language = data.get("lang", "zh")
    faq = data.get("faq", [])
    case = CaseData(
        key=data["key"],
        category=category,
        language=language,
        split=data["split"],
        request={
            "danmaku": [{"user": user, "text": text} for user, text in data["danmaku"].items()],
            "history": list(_history(data.get("history", []))),
        },
        context={"room": _room_state(room, data), "products": room.shelf(), "faq": room.pick_faq(faq)},
        fixtures=expand_fixtures(room, data.get("hits", faq), data.get("fixtures_override", {})),
        expected={
            "facts": [_statement(fact, shared.facts, "fact", "accept") for fact in data["facts"]],
            "forbidden": [
                _statement(claim, shared.forbidden, "claim", "match") for claim in data.get("forbidden", [])
            ],
            "language": language,
        },
    )
    if category not in SOFT_CATEGORIES:
        soft = {fact["fact"] for fact in shared.facts.values()}
        _check_facts(case, soft)
    return case


def _check_shape(category: str, data: Mapping[str, Any]) -> None:
    unknown = set(data) - FIELDS
    if unknown:
        raise DatasetError(f"unknown field {', '.join(sorted(unknown))}")
    if not data["key"].startswith(f"{category}-"):
        raise DatasetError(f"the key does not start with {category}-")
    if data["split"] not in SPLITS:
        raise DatasetError(f"unknown split {data['split']!r}")
    if data.get("lang", "zh") not in {"zh", "en"}:
        raise DatasetError(f"unknown language {data['lang']!r}")
    if not all(isinstance(text, str) and text for text in data["danmaku"].values()):
        raise DatasetError("every viewer's danmaku must be a text (quote one with a comma)")
    if not 1 <= len(data["facts"]) <= 3 or len(data.get("forbidden", [])) > 3:
        raise DatasetError("a case has 1 to 3 facts and at most 3 forbidden claims")
    if len(data.get("faq", [])) > 3:
        raise DatasetError("at most 3 FAQ entries are retrieved for a request")


def _room_state(room: Room, data: Mapping[str, Any]) -> dict[str, Any]:
    if data["link"] not in room.link_ids:
        raise DatasetError(f"the room has no link {data['link']}")
    return {
        "name": room.name,
        "host": room.host,
        "current_link": data["link"],
        "script": data["script"],
        "started": room.started,
    }


def _history(turns: list[dict[str, str]]) -> Iterator[dict[str, str]]:
    """Earlier lines of the chat, the avatar's own under the name AVATAR."""
    for turn in turns:
        yield {"user": turn["user"], "text": turn["text"]}
        yield {"user": AVATAR, "text": turn["reply"]}


def _statement(
    written: str | Mapping[str, list[str]], named: Mapping[str, Mapping[str, Any]], title: str, texts: str
) -> dict[str, Any]:
    """A fact or claim from its name, or from the short form {title: [texts]}."""
    if isinstance(written, str):
        return {title: named[written][title], texts: list(named[written][texts])}
    ((name, variants),) = written.items()
    if not variants or not all(isinstance(variant, str) for variant in variants):
        raise DatasetError(f"{name}: {texts} must be a list of texts (quote numbers)")
    return {title: name, texts: list(variants)}


def _check_facts(case: CaseData, soft: set[str]) -> None:
    """Refuse a product fact of which no accepted value stands in what the agent can read."""
    evidence = [normalise(text) for text in _texts([case.fixtures, case.context["faq"]])]
    for fact in case.expected["facts"]:
        if fact["fact"] in soft:
            continue
        if not any(normalise(value) in text for value in fact["accept"] for text in evidence):
            raise DatasetError(f"no accepted value of {fact['fact']!r} stands in the fixtures or the FAQ")


def _texts(value: Any) -> Iterator[str]:
    """Every scalar under `value` as text."""
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    else:
        yield str(value)
