import io
from typing import Any

import pytest

from evolution.adapters.formats.detect import look_at_table, open_stream
from evolution.ports import Feedback, Record, Rejected


def read(content: str | bytes, name: str = "cases.csv", **options: Any) -> list[Any]:
    data = content if isinstance(content, bytes) else content.encode()
    (opened,) = open_stream(io.BytesIO(data), name, **options)
    assert opened.format == "csv"
    return list(opened.records)


def text(record: Record) -> str:
    return str(record.request["danmaku"][0]["text"])


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("name", ["cases.csv", "export.txt"])
def test_any_delimiter_is_seen(delimiter: str, name: str) -> None:
    rows = [["id", "question", "answer"], ["1", "how much, really; now", "59"], ["2", "when", "today"]]
    quoted = "\n".join(delimiter.join(f'"{field}"' for field in row) for row in rows)
    plain = quoted.replace('"', "") if delimiter not in ",;" else quoted
    for content in (quoted, plain):
        first, second = read(content, name)
        assert (first.source_id, text(first), first.reply) == ("1", "how much, really; now", "59")
        assert (second.source_id, second.line) == ("2", 3)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "gb18030"])
def test_chinese_tables_of_any_spreadsheet_are_read(encoding: str) -> None:
    content = "编号,用户问题,回复,失败原因,得分,时间\r\n7,3号链接多少钱？,59元哈,券后价说错了,0.5,2024/6/1 20:03\r\n"
    (record,) = read(content.encode(encoding))
    assert (record.source_id, text(record), record.reply) == ("7", "3号链接多少钱？", "59元哈")
    assert (record.symptom, record.scores, record.failed) == ("券后价说错了", {"score": 0.5}, True)
    assert record.happened_at.isoformat() == "2024-06-01T20:03:00+00:00"


def test_quoted_fields_run_over_lines_and_lines_stay_physical() -> None:
    content = 'question,answer\n"how\nmuch\r\nis ""it""?",59\n\nwhen,today\n'
    first, second = read(content)
    assert (text(first), first.line) == ('how\nmuch\r\nis "it"?', 2)
    assert (text(second), second.line) == ("when", 6)


def test_a_quote_inside_a_field_is_a_quote() -> None:
    records = read('question,answer\na 5" pipe,yes\nand a 6" one,no\n')
    assert [text(record) for record in records] == ['a 5" pipe', 'and a 6" one']


@pytest.mark.parametrize(
    ("row", "line"),
    [("a", 3), ("a,b,c", 3), ('"a"b,c', 3), ('"never closed,b', 3), ('"a\nb",c,d', 3)],
)
def test_a_wrong_row_costs_only_itself(row: str, line: int) -> None:
    records = read(f"question,answer\nfirst,1\n{row}\nlast,2\nvery last,3\n")
    bad = [record for record in records if isinstance(record, Rejected)]
    assert [item.line for item in bad] == [line]
    assert [text(item) for item in records if isinstance(item, Record)] == ["first", "last", "very last"]


def test_bytes_that_are_no_text_cost_only_their_row() -> None:
    good = "".join(f"问题{number},答\n" for number in range(30))
    records = read(b"question,answer\n" + b"\xff\xfe\xfa,x\n" + good.encode())
    assert [type(record) for record in records[:2]] == [Rejected, Record]
    assert (len(records), records[0].line) == (31, 2)


def test_rows_without_any_text_are_no_records() -> None:
    assert [text(record) for record in read("question,answer\n,\n ,\na,b\n\n")] == ["a"]


def test_empty_fields_behind_the_last_column_do_no_harm() -> None:
    assert [text(record) for record in read("question,answer\na,b,,\n")] == ["a"]


def test_columns_that_are_nothing_of_ours_go_into_the_context() -> None:
    (record,) = read("question,link,link,,session id\nhi,3,4,5,s1\n")
    assert record.context == {"link": "3", "link (3)": "4", "column 4": "5", "session": "s1"}


def test_a_mapping_goes_before_the_names() -> None:
    mapping = {"request": "c", "reply": "question", "scores.quality": "q"}
    (record,) = read("question,c,q\nhello,hi,0.25\n", mapping=mapping)
    assert (text(record), record.reply, record.scores) == ("hi", "hello", {"quality": 0.25})


def test_without_a_request_every_row_says_what_is_missing() -> None:
    records = read("a,b\n1,2\n3,4\n")
    assert [type(record) for record in records] == [Rejected, Rejected]
    assert "columns are a, b" in records[0].reason


def test_fields_are_what_ours_are() -> None:
    content = (
        "question,是否失败,tags,feedback,accuracy,context\n"
        'hi,是,"双十一,直播",down,1,"{""room"": {""n"": 9007199254740993}}"\n'
        "hi,否,,,,\n"
        "hi,也许,,,,\n"
    )
    first, second, third = read(content)
    assert (first.failed, first.tags, first.scores) == (True, ("双十一", "直播"), {"accuracy": 1.0})
    assert first.feedback == (Feedback("", "down"),)
    assert first.context == {"room": {"n": 9007199254740993}}
    assert (second.failed, second.tags, second.scores, second.feedback) == (False, (), {}, ())
    assert isinstance(third, Rejected)


def test_a_transcript_is_a_conversation() -> None:
    content = '对话记录,备注\n"用户：3号多少钱？\n客服：59元\n用户: 券后呢\n客服：49元",错\n'
    (record,) = read(content)
    assert [(m["role"], m["content"]) for m in record.trajectory["messages"]] == [
        ("user", "3号多少钱？"),
        ("assistant", "59元"),
        ("user", "券后呢"),
        ("assistant", "49元"),
    ]
    assert (text(record), record.reply) == ("3号多少钱？", "49元")


def test_a_conversation_in_json_is_a_conversation() -> None:
    (record,) = read('messages\n"[{""role"": ""user"", ""content"": ""hi""}]"\n', "x.csv")
    assert text(record) == "hi"


def test_the_preview_says_what_columns_seem_to_be() -> None:
    table = look_at_table(io.BytesIO("sep=;\r\n问题;列二\r\na;b\r\nc;\r\n".encode("gb18030")), "x.csv")
    assert table
    assert (table.columns, table.delimiter, table.encoding) == (["问题", "列二"], ";", "gb18030")
    assert (table.guess, table.samples) == ({"request": "问题"}, [("问题", ["a", "c"]), ("列二", ["b", ""])])
    assert look_at_table(io.BytesIO(b'{"request": "x"}'), "x.csv") is None
    assert look_at_table(io.BytesIO(b"some text\nand more"), "x.txt") is None


def test_a_name_alone_makes_no_table_of_json() -> None:
    (opened,) = open_stream(io.BytesIO(b'{"request": "x"}\n'), "x.csv")
    assert opened.format == "jsonl"


def test_flat_objects_are_rows() -> None:
    content = b'{"question": "hi", "answer": "hello", "label": "greeting", "n": 5}\n{"question": {}}\n'
    (opened,) = open_stream(io.BytesIO(content), "x.jsonl")
    first, second = opened.records
    assert isinstance(first, Record)
    assert opened.format == first.source == "rows"
    assert (text(first), first.reply, first.category, first.context) == ("hi", "hello", "greeting", {"n": 5})
    assert isinstance(second, Rejected)
