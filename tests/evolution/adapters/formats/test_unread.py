import json
from pathlib import Path
from typing import Any

import pytest

from evolution.adapters.formats.detect import open_records
from evolution.ports import Found, Record, Unread, read_found

OURS = {"id": "7", "request": "how much", "reply": "89", "symptom": "wrong"}
CHAT = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]}
SHARED = {"conversations": [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "hello"}]}


def open_unread(path: Path, text: str) -> list[Found]:
    path.write_text(text)
    (file,) = open_records(path)
    return list(file.unread)


@pytest.mark.parametrize("item", [OURS, CHAT, SHARED, {**OURS, "source": "room"}, {**OURS, "id": 7}])
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("count", [0, 2])
def test_a_record_is_named_as_it_is_read(
    tmp_path: Path, item: dict[str, Any], indent: int | None, count: int
) -> None:
    text = json.dumps([item] * count if count else item, indent=indent)
    for unread in open_unread(tmp_path / "a.json", text):
        assert isinstance(unread, Unread)
        record = unread.read()
        assert isinstance(record, Record)
        assert (unread.source, unread.source_id, unread.line) == (
            record.source,
            record.source_id,
            record.line,
        )


def test_the_digest_is_that_of_the_text(tmp_path: Path) -> None:
    first, second, other = open_unread(
        tmp_path / "a.jsonl", "\n".join(json.dumps(item) for item in (OURS, OURS, {**OURS, "reply": "88"}))
    )
    (again,) = open_unread(tmp_path / "other name.jsonl", json.dumps(OURS))
    digests = [item.digest for item in (first, second, other, again) if isinstance(item, Unread)]
    assert digests[0] == digests[1] == digests[3] != digests[2]


def test_what_a_mapping_reads_is_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"q": "how much"}))
    (file,) = open_records(path, mapping={"request": "q"})
    assert [type(item) for item in file.unread] == [Record]


def test_records_are_read_for_whoever_asks_for_them(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(f"{json.dumps(OURS)}\nbroken\n{json.dumps({**OURS, 'scores': 5})}\n")
    (unread,), (read,) = list(open_records(path)), list(open_records(path))
    assert [read_found(item) for item in unread.unread] == list(read.records)
