"""Fills a tool's arguments from the danmaku and the room, by the names, types and texts of its JSON schema."""

import itertools
import re
from collections import Counter
from typing import Any

from evolution.adapters.rehearsal.reading import Situation, ToolDoc
from evolution.adapters.rehearsal.text import Index, bigrams, words

LINK = re.compile(
    r"(\d{1,3})\s*号\s*链接|链接\s*(\d{1,3})|\blinks?\s*#?(\d{1,3})|#(\d{1,3})|\b(?:number|no\.?|item)\s*(\d{1,3})"
    r"|(?:\blinks?\s*#?\d{1,3}\s*(?:and|or|vs\.?|,)\s*#?)(\d{1,3})",
    re.IGNORECASE,
)
# 号 without 链接 may be a date: only numbers on the shelf count.
BARE_LINK = re.compile(
    r"(?<!\d)([1-9]\d?)\s*号(?!色|码)|(?<!\d)([1-9]\d?)\s*(?:和|跟|与|、|还是|or|and)\s*\d{1,3}\s*号"
)
CHINESE_LINK = re.compile(r"([一二三四五六七八九十])号(?:链接)?")
NUMERALS = "一二三四五六七八九十"

MAX_LINKS = 3
SEVERAL = re.compile(r"[和跟与、]|还是|哪个|哪款|哪样|谁|\bvs\b|\bor\b|\band\b|compared|which", re.IGNORECASE)

# Places that a viewer in China names; general knowledge, not the shop's.
PLACES = (
    "北京", "上海", "天津", "重庆", "河北", "山西", "辽宁", "吉林", "黑龙江", "江苏", "浙江", "安徽", "福建",
    "江西", "山东", "河南", "湖北", "湖南", "广东", "海南", "四川", "贵州", "云南", "陕西", "甘肃", "青海",
    "台湾", "内蒙古", "广西", "西藏", "宁夏", "新疆", "香港", "澳门", "广州", "深圳", "杭州", "南京", "苏州",
    "成都", "武汉", "西安", "郑州", "长沙", "青岛", "大连", "沈阳", "哈尔滨", "长春", "昆明", "贵阳", "南宁",
    "厦门", "福州", "合肥", "济南", "石家庄", "太原", "兰州", "乌鲁木齐", "拉萨", "呼和浩特", "银川", "西宁",
    "海口", "三亚", "宁波", "东莞", "佛山", "温州", "无锡", "珠海", "Beijing", "Shanghai", "Tianjin",
    "Chongqing", "Guangzhou", "Shenzhen", "Hangzhou", "Nanjing", "Chengdu", "Wuhan", "Xinjiang", "Tibet",
    "Hainan", "Yunnan", "Sichuan", "Guangdong", "Harbin", "Kunming", "Qingdao", "Xiamen",
)  # fmt: skip
AFTER_TO = re.compile(
    r"(?:发到|寄到|送到|发往|寄往|到|寄|ship(?:ping|ped)? to |deliver(?:y|ed)? to )([\u4e00-\u9fff]{2,3}|[A-Z][a-z]+)"
)


def links_of(danmaku: str, situation: Situation) -> list[int]:
    """The links that the danmaku is about: named by number, else by product name, else the current one."""
    named = [int(text) for groups in LINK.findall(danmaku) for text in groups if text]
    named += [
        n
        for groups in BARE_LINK.findall(danmaku)
        for n in map(int, filter(None, groups))
        if n in situation.shelf
    ]
    named += [NUMERALS.index(numeral) + 1 for numeral in CHINESE_LINK.findall(danmaku)]
    found = list(dict.fromkeys(named)) or _by_name(danmaku, situation.shelf)
    if not found and situation.link is not None:
        found = [situation.link]
    return found[:MAX_LINKS]


def _by_name(danmaku: str, shelf: dict[int, str]) -> list[int]:
    """Products whose name has words of the danmaku that few others have: the closest, or all when it names several."""
    asked = bigrams(danmaku) | words(danmaku)
    names = {link: bigrams(name) | words(name) for link, name in shelf.items()}
    common = Counter(term for terms in names.values() for term in terms & asked)
    weight = {link: sum(1 / common[term] for term in sorted(terms & asked)) for link, terms in names.items()}
    named = [link for link in shelf if weight[link] > 0]
    best = max(weight.values(), default=0.0)
    if SEVERAL.search(danmaku):
        return [link for link in named if weight[link] >= 0.5]
    return [link for link in named if weight[link] == best]


def tool_calls_for(tool: ToolDoc, danmaku: str, situation: Situation) -> list[dict[str, Any]]:
    """The argument objects to call the tool with: one per link when it takes a link."""
    properties: dict[str, Any] = tool.parameters.get("properties") or {}
    required = tool.parameters.get("required") or []
    choices: list[list[tuple[str, Any]]] = []
    for name, schema in properties.items():
        values = _values(name, schema, danmaku, situation, needed=name in required)
        if values:
            choices.append([(name, value) for value in values])
    return [dict(combination) for combination in itertools.product(*choices)]


def _values(
    name: str, schema: dict[str, Any], danmaku: str, situation: Situation, *, needed: bool
) -> list[Any]:
    text = f"{name} {schema.get('description', '')}"
    if schema.get("enum"):
        return [_closest_option(schema, danmaku)]
    if schema.get("type") in {"integer", "number"}:
        return _number(text, danmaku, situation, needed=needed)
    if re.search(r"region|city|province|address|地区|城市|省", text):
        place = place_in(danmaku)
        return [place] if place else ([""] if needed else [])
    if needed or re.search(r"query|question|keyword|问题", text):
        return [danmaku]
    return []


def _number(text: str, danmaku: str, situation: Situation, *, needed: bool) -> list[Any]:
    if re.search(r"link|链接", text):
        return list(links_of(danmaku, situation))
    return [1] if needed else []


def place_in(danmaku: str) -> str | None:
    """The place that the danmaku names, if any."""
    known = next((place for place in PLACES if place in danmaku), None)
    if known:
        return known
    match = AFTER_TO.search(danmaku)
    return match.group(1) if match and not re.search(r"[货了吗多几]|底", match.group(1)) else None


def _closest_option(schema: dict[str, Any], danmaku: str) -> Any:
    """The enum value whose passage of the description is closest to the danmaku; the first if none is."""
    options = list(schema["enum"])
    passages = re.split(r"[;；\n]", str(schema.get("description", "")))
    texts = [
        next((p for p in passages if re.search(rf"\b{re.escape(str(o))}\b", p)), str(o)) for o in options
    ]
    scores = Index.of(texts).scores(danmaku)
    return options[max(range(len(options)), key=lambda i: (scores[i], -i))]
