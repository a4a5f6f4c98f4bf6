"""The numbers of a text, in digits and in Chinese numerals, for whether a reply's have evidence.

What is written in digits always counts. A Chinese numeral is a claim only with a unit of price, discount, percentage,
time or pieces behind it, ¥ before it, or as 一百二 and its like at the end of what is said: 一下, 一个, 第一, 万一 and
三包 claim nothing. In evidence every numeral counts.
"""

import unicodedata
from collections.abc import Iterable, Iterator
from decimal import Decimal

import regex

Values = frozenset[Decimal]

_DIGITS = "零〇一二两三四五六七八九"
_VALUES = {**{character: max(0, at - 1) for at, character in enumerate("零〇一二三四五六七八九")}, "两": 2}
_UNITS = {"十": 10, "百": 100, "千": 1000}
_SCALES = {**_UNITS, "万": 10_000, "亿": 100_000_000}
_SIMPLE = str.maketrans(
    "兩萬億壹贰貳叁參肆伍陆陸柒捌玖拾佰仟塊張雙條隻個時週鐘錢",
    "两万亿一二二三三四五六六七八九十百千块张双条只个时周钟钱",
)
# Between digits these are no separators of thousands, though NFKC makes commas of them.
_WIDE_COMMAS = str.maketrans("，﹐､、", ";;;;")

_UNSEEN = regex.compile(r"\p{Cf}+")
_NUMBER = regex.compile(
    r"(?P<number>[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?)(?P<scale>[十百千万亿折])?"
)
_NUMERAL = regex.compile(rf"[{_DIGITS}十百千万]+(?:点[{_DIGITS}]+)?")
_UNIT = regex.compile(
    r"元|块(?!儿)|毛钱|角钱|分钱|折|成(?![员套为了对功都本长交就年人])|%|天|日(?!常)|小时|分钟|秒|年|周|星期|个(?:月|小时|星期)"
    r"|[件瓶盒双条支片张份只台枚袋箱罐斤克米升套粒颗盏]|公斤|毫升|毫米|厘米"
)
# 这两天 and 第二件 name something, and do not say how much.
_NO_CLAIM_BEFORE = frozenset("第这那哪近几")
# 一件, 一年 and the like are as good as "a"; what costs 一元 is not.
_PRICED = regex.compile(r"元|块钱|折|%|毛钱|角钱|分钱")
# What is a price though nothing says so.
_HUNDREDS = regex.compile(rf"[{_DIGITS}][百千万]")
_AMOUNT_END = regex.compile(r"\Z|[\s,.!?;~。、哦啦呢哈吧多]|左右|以内|以下|出头|到手|就")
_HALF = regex.compile(r"半价|对折")
# 三五天 and 两三件 are from one to the other.
_SPANS = frozenset({"一两", "一二", "两三", "二三", "三四", "三五", "四五", "五六", "六七", "七八", "八九"})
_PLAIN = regex.compile(rf"(?:[{_DIGITS}]?[十百千])*[{_DIGITS}]?")
# No price, and no number of anything, is longer.
_MOST_DIGITS = 40


def numbers_in(text: str) -> set[Decimal]:
    """All numbers that a text has, as evidence: 1,299 and 1299.0, full-width digits and 一千二百九十九 are the same."""
    plain = _plain(text)
    found = {value for values in _written(plain) for value in values}
    for numeral in _NUMERAL.finditer(plain):
        found.update(value for values in _read_numeral(numeral.group()) for value in values)
    return found | {value for values in _halves(plain) for value in values}


def claims_in(text: str) -> list[Values]:
    """The numbers that a text claims, each as the values of which one needs evidence; what was 1.5万 may be 15000."""
    plain = _plain(text)
    return [*_written(plain), *_spoken(plain), *_halves(plain)]


def without_evidence(text: str, evidence: Iterable[str]) -> list[str]:
    """The claims of a text that have none, sorted."""
    known = {number for source in evidence for number in numbers_in(source)}
    unknown = {min(values) for values in claims_in(text) if not values & known}
    return [f"{number:f}" for number in sorted(unknown)]


def _plain(text: str) -> str:
    """Digits and numerals in one way of writing, without characters that are not seen."""
    wide = unicodedata.normalize("NFKC", text.translate(_WIDE_COMMAS)).translate(_SIMPLE)
    return _UNSEEN.sub("", wide)


def _written(plain: str) -> Iterator[Values]:
    for found in _NUMBER.finditer(plain):
        digits = found["number"].replace(",", "")
        if len(digits) > _MOST_DIGITS:
            digits = digits[:_MOST_DIGITS]
        value = Decimal(digits).normalize()
        values = frozenset({value, value * _SCALES.get(found["scale"] or "", 1)})
        yield _scaled(values) if found["scale"] == "折" else values


def _spoken(plain: str) -> Iterator[Values]:
    for percent in regex.finditer(rf"百分之([{_DIGITS}十百点]+)", plain):
        yield from _read_numeral(percent.group(1))
    for found in _NUMERAL.finditer(plain):
        numeral, before = found.group(), plain[max(0, found.start() - 1) : found.start()]
        unit = _UNIT.match(plain, found.end())
        if before in "¥$" and before:
            yield from _read_numeral(numeral)
        if unit is None:
            # 只要一百二
            if _HUNDREDS.match(numeral) and _AMOUNT_END.match(plain, found.end()):
                yield from _read_numeral(numeral)
        elif before not in _NO_CLAIM_BEFORE and (numeral != "一" or _PRICED.match(plain, found.end())):
            for values in _read_numeral(numeral):
                # 九五折 is 95折, 9.5折 and 95% of the price.
                yield _scaled(values) if unit.group() in ("折", "成") else values


def _halves(plain: str) -> Iterator[Values]:
    if _HALF.search(plain):
        yield frozenset({Decimal("0.5"), Decimal(5), Decimal(50)})


def _scaled(values: Values) -> Values:
    return frozenset(value * scale for value in values for scale in (Decimal("0.1"), 1, 10))


def _read_numeral(text: str) -> Iterator[Values]:
    """The value of a numeral up to 9999万, two of them for 三五, none for what is no number, such as 千万."""
    if text in _SPANS:
        yield from (frozenset({Decimal(_VALUES[digit])}) for digit in text)
        return
    whole, point, fraction = text[:_MOST_DIGITS].partition("点")
    value = _read_whole(whole)
    if value is not None:
        digits = "".join(str(_VALUES[digit]) for digit in fraction)
        yield frozenset({Decimal(f"{value}.{digits}") if point and digits else Decimal(value)})


def _read_whole(text: str) -> int | None:
    if text and all(character in _VALUES for character in text):
        return int("".join(str(_VALUES[character]) for character in text))
    myriads, mark, rest = text.partition("万")
    if not mark:
        return _read_thousands(text)
    high = _read_thousands(myriads)
    if high is None:
        return None
    if len(rest) == 1 and rest in _VALUES:
        # 三万五 is 35000.
        return high * 10_000 + _VALUES[rest] * 1000
    low = _read_thousands(rest) if rest else 0
    return None if low is None else high * 10_000 + low


def _read_thousands(text: str) -> int | None:
    """一千二百三十四; 一百二 is 120, 一百零二 is 102, 十二 is 12. None for 百 and 千 alone, and for no number."""
    plain = text.replace("〇", "零")
    if not plain or plain[0] in "百千" or not _PLAIN.fullmatch(plain.replace("零", "")):
        return None
    total, unit, digit = 0, 1, None
    for character in plain:
        if character in _UNITS:
            unit = _UNITS[character]
            total += (1 if digit is None else digit) * unit
            digit = None
        elif character == "零":
            unit = 1
        else:
            digit = _VALUES[character]
    if digit is None:
        return total
    return total + digit * (unit // 10 if unit > 10 else 1)
