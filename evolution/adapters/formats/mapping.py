"""Our fields by the names that others have for them: what a mapping says, and what usual names in a table mean.

A mapping is {our field: theirs}. Ours is a field of `jsonl`, or a part of one, such as `scores.accuracy`; theirs is a
column, or for JSON a key, a dotted path (`trace.input.0.text`) or a JSON pointer (`/trace/input/0/text`, RFC 6901).
Fields that a mapping does not name are taken where they have our names.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from evolution.adapters.formats.shapes import unpack_json
from evolution.adapters.formats.values import RecordProblem
from evolution.errors import BrokenInput

# `passed` is no field of a record: it says of `failed` the opposite.
FIELDS = (
    "id", "request", "messages", "trajectory", "context", "reply", "symptom", "category", "tags", "failed", "passed",
    "scores", "score", "errors", "checks", "feedback", "findings", "blamed_turn", "happened_at", "session", "source",
    "harness_commit", "tools",
)  # fmt: skip
# Fields that have parts of any name.
_OPEN = frozenset({"scores", "context"})
# What columns are called, without case, spaces and punctuation; the first field that has a column's name takes it.
_USUAL = {
    "id": "id caseid recordid rowid traceid runid 编号 序号 记录编号 记录id 案例编号 工单号 工单编号",
    "request": "request question query input prompt usermessage userinput user message danmaku text utterance"
    " 请求 问题 提问 用户问题 用户提问 用户输入 用户消息 弹幕 弹幕内容 用户弹幕 咨询内容 咨询问题"
    " 问题内容 提问内容 输入",
    "reply": "reply answer response output completion assistant agentreply botreply assistantmessage"
    " 回复 回答 答案 答复 回复内容 回答内容 答复内容 客服回复 客服回答 机器人回复 助手回复 主播回复 输出",
    "messages": "messages conversation dialogue dialog chat chatlog transcript"
    " 对话 会话 对话内容 会话内容 聊天记录 对话记录",
    "symptom": "symptom reason problem issue failurereason error comment remark"
    " 症状 原因 失败原因 问题描述 错误原因 错误描述 扣分原因 备注 问题原因 差评原因 差评内容 不满意原因 投诉原因",
    "category": "category intent topic label class type 类别 分类 意图 类型 主题 问题类型 标注类别",
    "tags": "tags tag labels 标签",
    "failed": "failed isfailed isfailure bad isbad 是否失败 是否错误 失败 不合格",
    "passed": "passed ispassed pass solved issolved resolved isresolved success successful ok"
    " 是否解决 是否成功 是否通过 是否合格 是否满意 解决 通过",
    "happened_at": "happenedat time timestamp datetime date createdat created"
    " 时间 日期 发生时间 创建时间 提问时间 对话时间",
    "session": "session sessionid conversationid dialogueid chatid threadid"
    " 会话id 会话编号 对话id 对话编号 房间 直播间 直播场次",
    "feedback": "feedback userfeedback thumbs 反馈 用户反馈 评价 用户评价",
    "harness_commit": "harnesscommit commit 版本",
    "source": "source 来源 渠道",
    "context": "context 上下文",
}
_SCORES = {
    "accuracy": "accuracy correct correctness 准确率 准确性 准确 正确性",
    "effectiveness": "effectiveness helpfulness 有效性 有用性",
    "reward": "reward 奖励",
    "score": "score rating grade 得分 分数 评分 打分 总分",
}
_NAMES = {name: field for field, names in _USUAL.items() for name in names.split()} | {
    name: f"scores.{score}" for score, names in _SCORES.items() for name in names.split()
}
_PUNCTUATION = re.compile(r"[\W_]+")
_MISSING = object()
_TRUE = frozenset({"true", "yes", "y", "1", "t", "是"})
_FALSE = frozenset({"false", "no", "n", "0", "f", "否"})
# What says how it went, whatever the column asks.
_BAD = frozenset(
    {"失败", "错误", "不合格", "未解决", "不满意", "不通过", "failed", "fail", "bad", "unresolved"}
)
_GOOD = frozenset(
    {"成功", "正确", "合格", "已解决", "满意", "通过", "passed", "pass", "ok", "good", "solved", "resolved"}
)
_JSON_FIELDS = frozenset(
    {
        "messages",
        "trajectory",
        "context",
        "scores",
        "checks",
        "findings",
        "tools",
        "request",
        "feedback",
        "errors",
    }
)
_SEPARATORS = re.compile(r"\s*[,;|，；、]\s*")
_TIME = re.compile(
    r"(\d{4})[-/.年](\d{1,2})[-/.月](\d{1,2})日?(?:[ T]*(\d{1,2})[:：时](\d{1,2})(?:[:：分](\d{1,2}))?(?:分|秒)?)?"
)
_SPEAKERS = {
    "user": "用户 客户 买家 顾客 观众 user customer human client viewer",
    "assistant": "客服 坐席 商家 主播 助手 机器人 智能客服 assistant agent bot ai",
    "system": "系统 system",
}
_ROLES = {name: role for role, names in _SPEAKERS.items() for name in names.split()}
_SPOKEN = re.compile(
    rf"^\s*({'|'.join(sorted(_ROLES, key=len, reverse=True))})\s*[:：]\s*", re.IGNORECASE | re.MULTILINE
)


def parse_mapping(text: str) -> dict[str, str]:
    """Read a mapping from JSON; BrokenInput says what is wrong with it."""
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BrokenInput(_("the mapping is no JSON: %(problem)s") % {"problem": error}) from None
    if not isinstance(given, dict) or not all(isinstance(path, str) for path in given.values()):
        raise BrokenInput(_("a mapping is an object of texts: our field, and theirs"))
    check_mapping(given)
    return given


def check_mapping(mapping: Mapping[str, str]) -> None:
    """Raise BrokenInput for a field that we have not."""
    for ours in mapping:
        name, _dot, part = ours.partition(".")
        if name not in FIELDS or (part and name not in _OPEN):
            what = {"field": ours, "known": ", ".join([*FIELDS, "scores.…", "context.…"])}
            raise BrokenInput(_("there is no field %(field)s to map to; known are %(known)s") % what)


def guess_mapping(columns: Sequence[str]) -> dict[str, str]:
    """What the usual names among some columns, in English and Chinese, mean; each field is taken once."""
    guessed: dict[str, str] = {}
    for column in columns:
        plain = column.strip().lower()
        field = plain if plain in FIELDS else _NAMES.get(_PUNCTUATION.sub("", plain), "")
        if field:
            guessed.setdefault(field, column)
    return guessed


def map_fields(item: Mapping[str, Any], mapping: Mapping[str, str]) -> dict[str, Any]:
    """The item with our fields; raises RecordProblem where a text can't be what the field is."""
    mapped: dict[str, Any] = {name: item[name] for name in FIELDS if name in item and name not in mapping}
    for ours, theirs in mapping.items():
        value = find_value(item, theirs)
        if value is _MISSING or value in (None, ""):
            continue
        name, _dot, part = ours.partition(".")
        if part:
            whole = mapped.get(name)
            mapped[name] = {**(whole if isinstance(whole, dict) else {}), part: value}
        else:
            mapped[name] = value
    fields = {name: read_field(name, value) for name, value in mapped.items()}
    passed = fields.pop("passed", None)
    if isinstance(passed, bool):
        fields.setdefault("failed", not passed)
    return fields


def find_value(item: Any, path: str) -> Any:
    """What stands at a key, a dotted path or a JSON pointer."""
    if isinstance(item, Mapping) and path in item:
        return item[path]
    if path.startswith("/"):
        parts = [part.replace("~1", "/").replace("~0", "~") for part in path[1:].split("/")]
    else:
        parts = path.split(".")
    for part in parts:
        item = _step(unpack_json(item), part)
    return item


def _step(value: Any, part: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(part, _MISSING)
    if isinstance(value, list) and part.lstrip("-").isdigit() and -len(value) <= int(part) < len(value):
        return value[int(part)]
    return _MISSING


def read_field(name: str, value: Any) -> Any:
    """A text as what the field is; other values stay."""
    if not isinstance(value, str):
        return value if name != "messages" or not isinstance(value, dict) else [value]
    text = value.strip()
    if name in _JSON_FIELDS and text[:1] in {"{", "["}:
        return unpack_json(text)
    reader = _READERS.get(name)
    return reader(text) if reader else value


def _read_failed(text: str) -> bool | None:
    return _read_flag("failed", text, _TRUE | _BAD, _FALSE | _GOOD)


def _read_passed(text: str) -> bool | None:
    return _read_flag("passed", text, _TRUE | _GOOD, _FALSE | _BAD)


def _read_flag(name: str, text: str, yes: frozenset[str], no: frozenset[str]) -> bool | None:
    if not text:
        return None
    if text.lower() in yes | no:
        return text.lower() in yes
    what = {"name": name, "value": text[:100]}
    raise RecordProblem(_("`%(name)s` is neither yes nor no: %(value)s") % what)


def _read_turn(text: str) -> int | None:
    if not text:
        return None
    if not text.isdecimal():
        raise RecordProblem(_("`%(name)s` counts from 1") % {"name": "blamed_turn"})
    return int(text)


def _read_time(text: str) -> str:
    """ISO 8601 of the ways in which dates stand in tables; anything else as it is."""
    found = _TIME.fullmatch(text)
    if not found:
        return text
    year, month, day, *time = (int(part or 0) for part in found.groups())
    return f"{year:04}-{month:02}-{day:02}T{time[0]:02}:{time[1]:02}:{time[2]:02}"


def _read_tags(text: str) -> list[str]:
    return [tag for tag in _SEPARATORS.split(text) if tag]


def _read_messages(text: str) -> list[dict[str, str]]:
    """A transcript, `用户：…` and `客服：…` by turns; without names of speakers, it is what the user said."""
    starts = list(_SPOKEN.finditer(text))
    if not starts:
        return [{"role": "user", "content": text}] if text else []
    ends = [*(found.start() for found in starts[1:]), len(text)]
    return [
        {"role": _ROLES[found.group(1).lower()], "content": text[found.end() : end].strip()}
        for found, end in zip(starts, ends, strict=True)
    ]


def _read_list(text: str) -> list[str]:
    return [text] if text else []


_READERS = {
    "failed": _read_failed, "passed": _read_passed, "blamed_turn": _read_turn, "happened_at": _read_time,
    "tags": _read_tags, "messages": _read_messages, "errors": _read_list,
}  # fmt: skip
