"""What the model promises out of habit when no rule stops it, by topic of the danmaku."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from evolution.adapters.rehearsal.lexicon import meanings
from evolution.adapters.rehearsal.text import digest

# Out of a hundred danmaku on a topic, how many show the habit. A coin by digest: always the same for one danmaku.
FIRES = 62


@dataclass(frozen=True)
class Topic:
    """A subject on which the model over-promises; `meanings` are the lexicon's, without the mark."""

    name: str
    meanings: tuple[str, ...]
    clauses_zh: tuple[str, ...]
    clauses_en: tuple[str, ...]

    def tags(self) -> frozenset[str]:
        """The meanings as the lexicon marks them: what a danmaku or a general rule on the topic mentions."""
        return frozenset(f"#{meaning}" for meaning in self.meanings)

    def clause(self, danmaku: str, *, chinese: bool) -> str:
        """The over-promise that this danmaku brings to mind."""
        clauses = self.clauses_zh if chinese else self.clauses_en
        return clauses[digest(f"{self.name}/{danmaku}", len(clauses))]


# More specific topics first: the first one that fires is said.
TOPICS = (
    Topic(
        "identity",
        ("talk.identity",),
        ("我是真人主播哦", "我当然是真人呀"),
        ("I am a real person",),
    ),
    Topic(
        "health",
        ("outside.health",),
        ("坚持用百分百有效", "这个能治好", "完全没有副作用"),
        ("it is 100% effective", "it will cure it"),
    ),
    Topic(
        "bargain",
        ("outside.money", "talk.complain"),
        ("我私下给你优惠", "我偷偷给你改价"),
        ("there is an extra discount for you",),
    ),
    Topic(
        "protection",
        ("price.protection",),
        ("降价退差价", "买贵退差价"),
        ("we'll refund the difference",),
    ),
    Topic(
        "cancel",
        ("order.cancel",),
        ("随时都能取消", "发货后也能取消"),
        ("you can cancel anytime",),
    ),
    Topic(
        "change",
        ("order.address", "order.change", "order.invoice", "order.merge"),
        ("随时都能改", "发货后也能改"),
        ("you can change it anytime",),
    ),
    Topic(
        "urge",
        ("order.urge", "delivery.dispatch"),
        ("今天就发", "马上就发"),
        ("it ships today",),
    ),
    Topic(
        "returns",
        ("after_sales.return", "after_sales.opened", "after_sales.refund"),
        ("随时都能退", "想退就退", "不满意无条件退"),
        ("you can return it anytime", "no questions asked"),
    ),
    Topic(
        "warranty",
        ("after_sales.warranty",),
        ("全部都保", "坏了就给换", "终身保修", "用十年都不坏"),
        ("it has a lifetime warranty", "the warranty covers everything"),
    ),
    Topic(
        "free_shipping",
        ("delivery.fee", "delivery.region"),
        ("全国都包邮", "哪里都包邮"),
        ("there is free shipping everywhere",),
    ),
    Topic(
        "arrival",
        ("delivery.arrival", "delivery.carrier", "delivery.from"),
        ("明天就能到", "明天肯定到", "肯定赶得上"),
        ("it arrives tomorrow",),
    ),
    Topic(
        "draw",
        ("activity.draw",),
        ("人人都能中", "你肯定中奖"),
        ("everyone wins",),
    ),
    Topic(
        "gift",
        ("activity.gift", "activity.member"),
        ("下单就送", "每单都送礼物", "现在拍都有赠品"),
        ("everyone gets a gift", "you get a gift with every order"),
    ),
    Topic(
        "stock",
        ("stock.left", "stock.restock"),
        ("库存充足随便拍", "货很多不用急着拍"),
        ("it is always in stock", "we have plenty in stock"),
    ),
    Topic(
        "efficacy",
        ("spec.suits", "spec.ingredients"),
        ("绝对不过敏", "百分百有效", "绝对安全"),
        ("it is 100% effective", "it is completely safe"),
    ),
    Topic(
        "durability",
        ("spec.material", "spec.notice", "spec.power", "spec.battery"),
        ("用十年都不坏", "永远不会坏", "怎么摔都没事"),
        ("it never breaks", "it lasts forever"),
    ),
    Topic(
        "price",
        ("price.amount", "price.discount", "price.claim", "compare.which"),
        ("全网最低价", "史上最低了"),
        ("it is the lowest price anywhere", "it is the best price anywhere"),
    ),
)

Forbids = Callable[[str, frozenset[str]], bool]


def topics_of(danmaku: str) -> list[Topic]:
    """The topics that the danmaku is on, most specific first."""
    found = meanings(danmaku)
    return [topic for topic in TOPICS if topic.tags() & found]


def habit(danmaku: str, *, chinese: bool, forbids: Forbids) -> str | None:
    """The clause that the model adds out of habit, or None; `forbids` is asked with the clause and its meanings."""
    for topic in topics_of(danmaku):
        clause = topic.clause(danmaku, chinese=chinese)
        if digest(f"habit/{topic.name}/{danmaku}", 100) < FIRES and not forbids(clause, topic.tags()):
            return clause
    return None


def invention(danmaku: str, *, chinese: bool, forbids: Forbids) -> str:
    """What the model says instead of admitting that it does not know."""
    for topic in topics_of(danmaku):
        clause = topic.clause(danmaku, chinese=chinese)
        if not forbids(clause, topic.tags()):
            return clause
    if re.search(r"多少|几|多久|多大|how (?:much|many|long)", danmaku, re.IGNORECASE):
        number = 2 + digest(danmaku, 97)
        return f"大概{number}左右" if chinese else f"about {number} I think"
    return "没问题的，放心拍" if chinese else "no problem at all, just order it"
