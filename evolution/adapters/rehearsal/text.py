"""Words and likeness of short Chinese and English texts, by characters, words and a small thesaurus."""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from evolution.adapters.rehearsal.lexicon import meaning_features, meanings

HAN = re.compile(r"[\u4e00-\u9fff]+")
WORD = re.compile(r"[a-z][a-z']+")
NUMBER = re.compile(r"\d+(?:\.\d+)?")
SENTENCE_END = re.compile(r"(?<=[。！？!?；;])|(?<=\.)\s+")

BRACKETS = {"「": "」", "（": "）", "(": ")", "“": "”", "『": "』", "[": "]"}

# A single character says little in Chinese; it only breaks ties between bigrams.
UNIGRAM_WEIGHT = 0.05

# Words that every question has, so that they never decide anything.
STOP_WORDS = frozenset(
    {
        "the", "a", "an", "is", "are", "it", "this", "that", "to", "of", "in", "on", "for", "and", "or", "do",
        "does", "you", "your", "i", "my", "me", "we", "be", "can", "will", "with", "have", "has", "what",
        "how", "there", "if", "at", "from", "as", "by", "any", "one", "about", "so", "not", "no", "need",
        "get", "got", "please", "link", "number", "just", "hi", "hello", "there's",
    }
)  # fmt: skip
STOP_GRAMS = frozenset(
    {
        "这个", "那个", "什么", "怎么", "可以", "一下", "我们", "你们", "主播", "观众", "链接", "问到", "如果",
        "一个", "这款", "那款", "有没", "没有", "请问", "是不", "不是", "还是", "时使", "使用", "观问", "的时",
        "号链", "直播", "播间",
    }
)  # fmt: skip


def is_chinese(text: str) -> bool:
    """Whether a text is Chinese rather than English: names and numbers do not make it so."""
    han = sum(len(run) for run in HAN.findall(text))
    return han > 0 and han * 2 >= sum(len(word) for word in WORD.findall(text.lower())) / 2


def bigrams(text: str) -> set[str]:
    """The Chinese character bigrams of a text without those that every question has."""
    return {run[i : i + 2] for run in HAN.findall(text) for i in range(len(run) - 1)} - STOP_GRAMS


def words(text: str) -> set[str]:
    """The English words of a text, lower-cased, without stop words."""
    return {word for word in WORD.findall(text.lower()) if word not in STOP_WORDS}


def features(text: str) -> dict[str, float]:
    """Meanings, bigrams and words with their weights, single characters with a low one."""
    found = dict.fromkeys(bigrams(text) | words(text), 1.0)
    found.update(dict.fromkeys("".join(HAN.findall(text)), UNIGRAM_WEIGHT))
    return {**found, **meaning_features(text)}


def shared(left: str, right: str) -> set[str]:
    """Bigrams and words that both texts have."""
    return (bigrams(left) | words(left)) & (bigrams(right) | words(right))


def overlaps(condition: str, text: str) -> bool:
    """Whether a condition's words, or what they mean, appear in the text."""
    return bool(shared(condition, text) or meanings(condition) & meanings(text))


def is_about(condition: str, text: str) -> bool:
    """Whether a text is about what a condition names, be it only the same group of meanings."""
    groups = {tag.partition(".")[0] for tag in meanings(condition)}
    return overlaps(condition, text) or any(tag.partition(".")[0] in groups for tag in meanings(text))


def digest(text: str, limit: int) -> int:
    """A number in [0, limit) that depends on the text only: the model's coin."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") % limit


def clip(text: str, limit: int) -> str:
    """The text as one line; a longer one up to a clause or word, before any bracket left open, and an ellipsis."""
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    head = line[:limit]
    while (start := _open_bracket(head)) is not None:
        head = head[:start]
    if line[len(head) : len(head) + 1].isascii() and " " in head.strip():
        head = head.rsplit(" ", 1)[0]
    return head.rstrip(" ，、；：,;:") + "…" if head.strip() else "…"


def _open_bracket(text: str) -> int | None:
    """Where the last bracket that is not closed stands."""
    stack: list[int] = []
    for i, character in enumerate(text):
        if character in BRACKETS:
            stack.append(i)
        elif stack and character == BRACKETS[text[stack[-1]]]:
            stack.pop()
    return stack[-1] if stack else None


def sentences(text: str) -> list[str]:
    """The sentences of a text with their punctuation, blanks removed."""
    return [part.strip() for part in SENTENCE_END.split(text) if part and part.strip()]


@dataclass(frozen=True)
class Index:
    """Texts to choose the closest from: BM25 over `features`, so that common words decide nothing."""

    documents: Sequence[Mapping[str, float]]
    frequency: Counter[str] = field(default_factory=Counter)
    mean_length: float = 1.0

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Index":
        """Build the index; the order of the texts is the order of `scores`."""
        documents = [features(text) for text in texts]
        frequency = Counter(term for document in documents for term in document)
        lengths = [sum(document.values()) for document in documents]
        return cls(documents, frequency, max(1.0, sum(lengths) / max(1, len(lengths))))

    def scores(self, query: str) -> list[float]:
        """The likeness of each text with the query, 0 and up; a bigram that one text alone has counts about 1."""
        asked = features(query)
        return [self._score(asked, document) for document in self.documents]

    def _score(self, asked: Mapping[str, float], document: Mapping[str, float]) -> float:
        # b = 0.15: a longer description is hardly punished; models read to the end.
        length = 0.85 + 0.15 * sum(document.values()) / self.mean_length
        common = asked.keys() & document.keys()
        return sum(document[term] * self._idf(term) for term in sorted(common)) / length

    def _idf(self, term: str) -> float:
        count = len(self.documents)
        return math.log((count + 1) / (self.frequency[term] + 0.5)) / math.log((count + 1) / 1.5 + 1e-9)
