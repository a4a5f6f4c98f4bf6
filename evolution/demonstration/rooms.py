"""The demonstration's live rooms: reads rooms.yaml and expands a room into the fixtures of the live tools.

Decides nothing about cases: who asks what is in cases/, read by `casefile`.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

# Tool name by the key of a product in rooms.yaml.
LINK_TOOLS = {
    "info": "get_product_info_by_link_id",
    "coupon": "get_coupon_info",
    "spec": "get_product_spec",
    "stock": "get_stock",
    "delivery": "get_delivery_info",
    "after_sales": "get_after_sales_policy",
}
# These tools' results start with the product's name.
NAMED = frozenset({"info", "coupon", "spec", "stock"})

Fixtures = dict[str, list[dict[str, Any]]]


class DatasetError(ValueError):
    """The demonstration's files contradict themselves; the message names the file and the key."""


@dataclass(frozen=True)
class Room:
    """One live room with everything its tools know."""

    name: str
    host: str
    started: str  # "19:00"
    products: Sequence[Mapping[str, Any]]
    orders: Mapping[str, Mapping[str, Any]]  # by topic of get_order_policy
    activity: Mapping[str, Any]
    faq: Mapping[str, Mapping[str, str]]  # by the id that cases name

    @property
    def link_ids(self) -> list[int]:
        """The link numbers on sale, in the order of the shelf."""
        return [product["link_id"] for product in self.products]

    def shelf(self) -> list[dict[str, Any]]:
        """What the avatar sees of the products without asking a tool."""
        return [{"link_id": product["link_id"], "name": product["name"]} for product in self.products]

    def pick_faq(self, ids: Sequence[str]) -> list[dict[str, str]]:
        """The entries of these ids; KeyError for an unknown one."""
        return [dict(self.faq[entry]) for entry in ids]


def read_yaml(path: Path) -> Any:
    """The document in `path`, read by libyaml's safe loader."""
    with path.open("rb") as file:
        # CSafeLoader builds plain values only, like safe_load, ten times as fast.
        return yaml.load(file, Loader=yaml.CSafeLoader)


def load_rooms(path: Path) -> dict[str, Room]:
    """All rooms by id; DatasetError when one lacks a field or repeats a link."""
    rooms = {}
    for key, data in read_yaml(path).items():
        try:
            room = Room(**data)
        except TypeError as error:
            raise DatasetError(f"{path.name}: room {key}: {error}") from error
        if len(set(room.link_ids)) != len(room.link_ids):
            raise DatasetError(f"{path.name}: room {key}: a link number occurs twice")
        _check_values(f"{path.name}: room {key}", data)
        rooms[key] = room
    return rooms


def _check_values(where: str, value: Any) -> None:
    """Refuse a field without a value: in a YAML flow mapping that is a text with an unquoted comma."""
    if value is None:
        raise DatasetError(f"{where} has no value (quote a text with a comma)")
    if isinstance(value, Mapping):
        for key, item in value.items():
            _check_values(f"{where}: {key}", item)
    elif isinstance(value, list):
        for item in value:
            _check_values(where, item)


def expand_fixtures(room: Room, hits: Sequence[str], override: Mapping[str, Any]) -> Fixtures:
    """The sandbox's answers for a room, with a case's override applied.

    `override` maps a tool to None (the tool answers nothing) or to changes: field -> value for
    get_live_activity, argument -> (None | field -> value) for the others. A None field is left out.
    """
    fixtures: Fixtures = {}
    for part, tool in LINK_TOOLS.items():
        fixtures[tool] = [
            {"arguments": {"link_id": product["link_id"]}, "result": _result(product, part)}
            for product in room.products
        ]
    fixtures["get_order_policy"] = [
        {"arguments": {"topic": topic}, "result": deepcopy(dict(answer))}
        for topic, answer in room.orders.items()
    ]
    fixtures["get_live_activity"] = [{"arguments": {}, "result": deepcopy(dict(room.activity))}]
    fixtures["search_faq"] = [{"arguments": {}, "result": {"hits": room.pick_faq(hits)}}]
    for tool, change in override.items():
        _override_tool(fixtures, tool, change)
    return fixtures


def _result(product: Mapping[str, Any], part: str) -> dict[str, Any]:
    result: dict[str, Any] = {"name": product["name"]} if part in NAMED else {}
    result.update(deepcopy(product[part]))
    return result


def _override_tool(fixtures: Fixtures, tool: str, change: Mapping[Any, Any] | None) -> None:
    """Apply one tool's override in place; KeyError for an unknown tool or argument."""
    if change is None:
        del fixtures[tool]
        return
    if tool == "get_live_activity":
        _change_fields(fixtures[tool][0]["result"], change)
        return
    by_argument = {next(iter(entry["arguments"].values())): entry for entry in fixtures[tool]}
    for argument, fields in change.items():
        entry = by_argument[argument]
        if fields is None:
            fixtures[tool].remove(entry)
        else:
            _change_fields(entry["result"], fields)


def _change_fields(result: dict[str, Any], fields: Mapping[str, Any]) -> None:
    for field, value in fields.items():
        if value is None:
            result.pop(field)
        else:
            result[field] = value
