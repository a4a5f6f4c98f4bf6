"""Absolute promises in a reply: words such as 随时, 无条件, anytime or guaranteed together with what they promise.

The words alone say nothing: 随时下单, 全部链接 and "ask me anytime" promise no one anything.
"""

import re
import unicodedata
from collections.abc import Iterator

# What a shop can promise of an order, before or after the absolute word.
_DEED = "退(?!出)|换|取消|改(?!天)|赔|补差|保修|质保"
_QUALITY = "有效|安全|不过敏|不伤|不会|不坏|没有副作用|正品|适合|能用|治|好用|满意|合身|不掉色|不褪色"

# Over squeezed text, in which English has no blanks.
_ABSOLUTE = re.compile(
    "|".join(
        (
            rf"随时(?:都|就)?(?:能|可以|可|给|帮)*[^，。！？；]{{0,3}}?(?:{_DEED})",
            rf"无条件(?:就|都|给|可以|能|包)*(?:{_DEED}|保)",
            rf"(?:百分之?百|100%)(?:都|就|能|会|可以|是)*(?:{_QUALITY}|{_DEED}|保|中)",
            rf"绝对(?:能|会|可以|是|都)*(?:{_QUALITY}|{_DEED}|保|中奖|最低|赶得上|到)",
            rf"全部(?:都|能|会|可以|给|免费)*(?:{_DEED}|保|包邮|包退|有货|现货|有赠品|有效|安全)",
            rf"任何(?:情况|原因|时候|时间|问题|损坏|理由|地方|地区|人|肤质)?(?:都|也|就|能|会|可以|给)*(?:{_DEED}|保|包邮|{_QUALITY})",
            r"(?:return|refund|cancel|change|exchange)\w{0,12}any-?time",
            r"any-?timeyou(?:like|want)?(?:can)?(?:return|refund|cancel|change|exchange)",
            r"(?:return|refund|cancel|exchange)\w{0,12}foranyreason",
            r"always(?:be)?(?:instock|available|free|fits?|works?|refund|arrives?|safe|returnable)",
            r"(?:is|are|be|we|fully|delivery|results?)guaranteed?(?!by)",
            r"guaranteed(?:to|delivery|results?|tomorrow|satisfaction|for)",
            r"100%(?:effective|safe|guaranteed?|works?|authentic|genuine|satisf\w+|refund\w*|sure|cure\w*)",
        )
    )
)
# Said right before it, these make it no promise; 不满意 and 没问题 deny nothing.
DENIED = re.compile(
    r"(?:不(?!满意|合适|喜欢|想要|管|论|限|用担心|用急|好意思|错|仅|但|只)|没(?!问题|关系|事|用)|无法|并非"
    r"|别(?!担心|急|着急|怕|犹豫)|not(?!only)|n['’]t(?!worry)|never|cannot)[^，。,.]{0,6}$",
    re.IGNORECASE,
)


def squeeze(text: str) -> str:
    """The text as it is compared: NFKC, casefold, no white space."""
    return "".join(unicodedata.normalize("NFKC", text).casefold().split())


def claims(text: str, phrase: str) -> bool:
    """Whether the text says the phrase without denying it."""
    said, wanted = squeeze(text), squeeze(phrase)
    at = said.find(wanted)
    while wanted and at >= 0:
        if not DENIED.search(said[:at]):
            return True
        at = said.find(wanted, at + 1)
    return False


def absolute_promises(reply: str, sources: str) -> Iterator[str]:
    """The absolute promises of the reply, squeezed, that the sources do not make in the same words."""
    said = squeeze(reply)
    for match in _ABSOLUTE.finditer(said):
        if not DENIED.search(said[: match.start()]) and not claims(sources, match.group()):
            yield match.group()
