"""Promises in a reply, Chinese and English, that nothing the agent was told bears out.

Two kinds of phrases are known. Those that say what they promise (假一赔十, lifetime warranty) are borne out where the
evidence has the phrase itself; those that promise whatever follows (保证, guaranteed) where it has the words up to the
end of the clause too. Said of what is *not* promised (不能保证, we cannot guarantee), they are no promise.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

_DEED = "退|换|取消|赔|补差|保修|质保|改"

# What is promised stands in the phrase.
SPOKEN_OUT = (
    r"(?:全网|史上|全年|历史)最低价?|最低价(?!格)|价格最低",
    r"假一[赔罚][零一二两三四五六七八九十百千万\d]+",
    r"(?:终身|永久)(?:质保|保修|免费[一-龥]{0,2}|有效|使用|包换)",
    rf"无条件(?:就|都|给|可以|能|包)*(?:{_DEED})[退换款货]?",
    rf"随时(?:都|就)?(?:能|可以|可|给|帮)*(?:{_DEED})[换款货]?",
    r"包(?:退包换|退换?|换|赔|治好?|好|过|真|满意)(?![装容括])",
    r"(?:零|无|没有任何?)(?:风险|副作用)",
    r"药到病除|根治|治愈|稳赚不赔|(?:次日|隔日|当日|当天|明天)必达",
    r"(?:明天|后天|今天|当天|次日)(?:就|一定|肯定|准)能?(?:送)?到",
    r"(?:马上|立刻|立即|秒)(?:就|给[您你])?(?:发货|退款|到账|补发)",
    r"\b(?:the )?lowest price(?: ever| anywhere| on the market)?\b|\bbest price (?:ever|anywhere)\b",
    r"\blifetime (?:warranty|guarantee|refunds?|replacements?|support)\b|\blasts? forever\b",
    r"\b(?:risk[- ]free|no risk|zero risk|no side effects)\b|\bmoney[- ]back\b|\bno questions asked\b",
    r"\bunconditional(?:ly)? (?:refunds?|returns?|exchanges?)\b",
    r"\b(?:refund|return|cancel|exchange)(?:s|ed)?(?: \w+)? (?:any ?time|for any reason)\b",
    r"\b(?:cures?|heals?) (?:your|any|all|the)\b|\bwill cure\b",
    r"\bnever (?:fades?|breaks?|fails?|shrinks?|wears? out|goes? out of stock)\b",
    r"\balways (?:in stock|available|fits?|works?|arrives?|on time)\b",
    r"\b(?:arrives?|delivered|get it) tomorrow\b",
)
# What is promised comes after the phrase.
EMPHATIC = (
    r"保证(?!金|书)|担保(?!金|交易)|确保|(?:我们?|本店|店家|主播|商家)承诺",
    r"(?:百分之?百|百分百)",
    r"100%(?:都|就|能|会|可以|是|保证|有效|安全|正品|满意|退|不|没)",
    r"绝对|肯定(?:能|会|可以|不|是|没|有|给|帮|到|赶)|一定(?:能|会可?|可以|不会|给|帮|是)|必定|绝不|永不|永远(?:不|都)",
    r"\bguarantee(?:d|s)?\b|\b(?:i|we) (?:can |do )?promise\b|\bi assure you\b",
    r"\b100 ?% (?:effective|safe|guaranteed|genuine|authentic|satisfaction|refund|sure|works?)\b",
    r"\b(?:will|can) (?:definitely|certainly|surely|absolutely|always)\b",
    r"\b(?:definitely|certainly|absolutely) (?:will|can|won't|works?|safe|not|fits?)\b",
    r"\bwithout fail\b|\bno matter what\b",
)

_CLAUSE_END = r"[^，。！？；、,.!?;:\n]*"
_KNOWN = re.compile(f"(?P<full>{'|'.join(SPOKEN_OUT)})|(?P<open>(?:{'|'.join(EMPHATIC)}){_CLAUSE_END})")
_PARTICLES = re.compile(r"[哦哈呢啦呀的了吧啊哟噢嘛哒亲~\s]+$")

# Said shortly before, these make it no promise; the words after them deny nothing.
_DENIED = re.compile(
    r"(?:不(?!但|仅|只|管|论|用担心|用急|好意思|满意|合适|喜欢|错|过|同|少)|没(?!问题|关系|事)|无法|并非|未必|难以|勿"
    r"|别(?!担心|急|着急|怕|犹豫)"
    r"|\bnot\b(?! only)|n['’]t\b|\bnever\b|\bcannot\b|\bno\b(?! worries| problem)|\bunable\b)"
    r"(?:[^，。！？；、,.!?;:\n]{0,5}|[^\x80-\U0010ffff,.!?;:\n]{0,30})$"
)
# A line of a prompt with one of these says what not to promise, and states nothing.
_FORBIDS = re.compile(
    r"不要|不得|不许|不准|不能|不可|禁止|严禁|避免|切勿|勿|别说"
    r"|\b(?:do not|don't|never|must not|mustn't|cannot|can't|avoid|no promises?|instead of)\b"
)
_BLANK_BESIDE_CHINESE = re.compile(r"(?<=[^\x00-\x7f]) | (?=[^\x00-\x7f])")


def find_promises(
    text: str, evidence: Iterable[str], phrases: Sequence[str] = (), allow: Sequence[str] = ()
) -> list[str]:
    """The promises of the text, as `compared` writes them, that no text of the evidence has word for word.

    `phrases` are promises too, and what stands in `allow` is none. Each is listed once, in order.
    """
    said = compared(text)
    for allowed in filter(None, map(compared, allow)):
        # A mark that ends a clause, and is part of no phrase.
        said = said.replace(allowed, "\n")
    known = [compared(source) for source in evidence]
    found = [
        promise for promise in _promises(said, phrases) if not any(promise in source for source in known)
    ]
    return list(dict.fromkeys(found))


def statements(prompt: str, heard: Iterable[str]) -> list[str]:
    """The lines of a prompt that state something: not what viewers said, and not what must not be promised."""
    for text in filter(None, heard):
        prompt = prompt.replace(text, "")
    return [line for line in prompt.splitlines() if not _FORBIDS.search(compared(line))]


def compared(text: str) -> str:
    """The text as it is compared: NFKC, lower case, single blanks, and none beside Chinese."""
    lines = unicodedata.normalize("NFKC", text).casefold().replace("’", "'").splitlines()
    return "\n".join(_BLANK_BESIDE_CHINESE.sub("", " ".join(line.split())) for line in lines)


def _promises(said: str, phrases: Sequence[str]) -> Iterator[str]:
    found = [(match.start(), match.group()) for match in _KNOWN.finditer(said)]
    for phrase in filter(None, map(compared, phrases)):
        found += [(match.start(), phrase) for match in re.finditer(re.escape(phrase), said)]
    for at, promise in sorted(found):
        if not _DENIED.search(said[max(0, at - 40) : at]):
            yield _PARTICLES.sub("", promise)
