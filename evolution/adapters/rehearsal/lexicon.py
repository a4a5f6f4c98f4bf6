"""What the model knows of the language: everyday ways to say a thing, in Chinese and English, mapped to what is meant.

It is a thesaurus of shopping talk, applied alike to viewers' words, skill descriptions and tool
documentation. It has no facts and no answers, and knows no product.
"""

import re
from functools import lru_cache

# group -> {meaning: pattern}; a match gives the text the features "#group" and "#group.meaning".
MEANINGS: dict[str, dict[str, str]] = {
    "price": {
        "amount": (
            r"多少钱|几块|几多钱|啥价|什么价|到手|全款|价格|券后|直播价|总价|一共(?:多少|几)|\bprice"
            r"|how much|\bcosts?\b"
        ),
        "discount": (
            r"优惠|便宜|券|折扣|打折|满减|立减|秒杀|叠加|定金|尾款|砍价|少点|discount|coupon|voucher"
            r"|cheaper|\bdeal\b"
        ),
        "claim": r"咋领|怎么领|哪里?领|在哪领|领取|领券|在哪弄|领不|claim",
        "protection": r"降价|价保|差价|退差|补差|money back if|gets cheaper|price protection|drops? in price",
        "until": r"有效期|到几号|用到哪天|截止|过期前|valid until|expire",
    },
    "stock": {
        "left": (
            r"库存|有货|没货|还有没|还有吗|还有不|还剩|现货|货够|够不够|拍不了|拍不到|拍得到|选不上"
            r"|点不动|有码|没了|断了|断码|断货|缺货|售罄|卖完|卖光|抢完|抢光|\bin stock|stock\b"
            r"|sold out|available|do you have it|any left"
        ),
        "restock": r"补货|还补|哪天补|补吗|来货|上架|啥时候能买|啥时候有|几号才有|restock|back yet|back in",
    },
    "delivery": {
        "dispatch": (
            r"发货|啥时候发|什么时候发|几天内发|多久能发|能发出|今天走|今天发|哪天发|dispatch"
            r"|\bships?\b|shipped|shipping time"
        ),
        "arrival": (
            r"几天到|要几天|能到|到货|多久到|到家|送达|赶得上|收到货|arrive"
            r"|deliver(?:y|ed)? (?:time|to)|get here|how long.*(?:to get|delivery)"
        ),
        "carrier": (
            r"快递|物流|哪家发|顺丰|圆通|中通|申通|韵达|京东快递|驿站|courier|carrier|who delivers"
            r"|delivery"
        ),
        "fee": r"包邮|邮费|运费(?!险)|收不收邮|free shipping|shipping fee|postage",
        "region": (
            r"偏远|给发吗|发不发|能寄|寄到|邮不|往.{2,4}[发寄邮]|发到|地区|送货上楼|ship to"
            r"|to [A-Z][a-z]+.* possible"
        ),
        "from": r"发货地|哪里?发|从哪发|哪个仓|ships? from|ship from",
    },
    "after_sales": {
        "return": (
            r"退货|退换|换货|能退|给退|可以退|退得了|退掉|退回|退不|包退|想退|还退|退吗|七天|无理由"
            r"|售后|returns?\b|send (?:it|these|this|them) back|exchange"
        ),
        "shipping": r"退.{0,8}(?:运费|邮费)|运费险|return shipping",
        "warranty": (
            r"质保|保修|保多久|保几年|包换|管换|管吗|质量问题|坏了|摔碎|烂的|还赔|维修|不保"
            r"|warranty|guarantee|covered|cover that|repair"
        ),
        "refund": r"退款|到账|退回.{0,6}钱|refund",
        "opened": r"拆封|拆开|拆包|拆了|试穿|试用|opened",
    },
    "order": {
        "address": (
            r"改地址|收货地址|地址.{0,3}(?:填错|写错|错了|要改)|填错|改电话"
            r"|change (?:the|my) address|wrong address"
        ),
        "cancel": r"取消订单|取消掉|我取消|想取消|不想要了|cancel",
        "change": (
            r"换款式|换颜色|换尺码|换大一号|换小一号|点错|选错|拍错|换成|买小了|帮我换|改订单|订单"
            r"|修改|by mistake|switch it|\borders?\b|wrong (?:size|colou?r)"
        ),
        "invoice": r"发票|专票|抬头|税号|报销|invoice|receipt",
        "merge": r"合并|一块发|一起发|一起寄|一个箱子|一个包裹|同一个快递|两单|merge|combine|ship together|same box",
        "urge": r"催|还没发|怎么还不发|尽快发|urge|not shipped|still waiting",
    },
    "activity": {
        "draw": r"抽奖|福袋|中奖|开奖|抽.{1,8}(?:算|参加)|参加|lucky draw|giveaway|prize",
        "gift": (
            r"赠品|礼品|满赠|送点|送啥|送什么|还送|送吗|送不|带不带赠|活动|gifts?\b|freebie"
            r"|do i (?:also )?get"
        ),
        "next": r"下场|下次直播|几点开播|哪天播|什么时候播|next (?:live|stream|session)|live again",
        "member": r"会员|入会|权益|members?\b|membership",
    },
    "spec": {
        "material": r"材质|面料|真皮|羊毛|含量|纯棉|什么做的|规格|参数|material|fabric|leather|cotton|made of",
        "size": (
            r"尺寸|尺码|大小|多大|多长|多高|腰围|偏大|偏小|套得住|几公分|厘米|码数|\bsizes?\b"
            r"|run small|run large|dimension"
        ),
        "weight": r"重量|多重|几斤|净重|更?沉|更?轻|weigh|heavy|lighter|heavier",
        "capacity": r"容量|几升|毫升|装多少|几碗|几杯|几人份|capacity|litres?|liters?",
        "suits": (
            r"适合|适用|能用|几个月|多大的孩子|岁|孕妇|敏感|承重|能承|会不会塌|suitable|suits?\b"
            r"|safe for|for kids"
        ),
        "ingredients": r"成分|配料|酒精|香精|添加|都有啥|含.{1,6}[不吗]|甜度|ingredient|contain|fragrance",
        "power": r"功率|多少瓦|费电|能充|快充|几口|power\b|watts?\b",
        "battery": r"续航|充一次|用几个小时|充满|battery",
        "colors": r"颜色|色号|什么色|几个色|colou?rs?\b",
        "shelf": r"保质期|放多久|放得久|能放|开封后|过期|shelf life|expiry|keep for",
        "origin": r"产地|哪里产|哪产|made in|origin",
        "notice": (
            r"注意事项|防水|机洗|能洗|缩水|越洗|连得上|支持.{0,6}吗|兼容|飞机|开始吃|waterproof"
            r"|machine wash|compatible|on a plane|notice|cautions"
        ),
    },
    "compare": {
        "which": (
            r"对比|区别|哪个(?:好|更|便宜|放|到|沉|轻)|哪款|哪双|选哪|哪样|谁长|谁先|更适合|差别"
            r"|\bvs\b|versus|compare|difference|which (?:one|is)"
        ),
    },
    "talk": {
        "greet": (
            r"你好|欢迎|晚上好|早上好|下午好|哈喽|打招呼|刚进来|来了|头回|第一次进|新人|\bhi+\b|hello"
            r"|good evening|\bhey\b"
        ),
        "thanks": r"谢谢|感谢|支持|回购了|辛苦|夸|好看|漂亮|喜欢你|thank|helpful|love (?:it|this|you)",
        "bye": r"拜拜|再见|晚安|溜了|不看了|先走|下了|道别|\bbye\b|good night",
        "chat": r"闲聊|生日|下班|夜班|祝福|watching|birthday",
        "identity": r"真人|机器人|数字人|real person|robot|\bbot\b",
        "complain": r"抱怨|投诉|差评|气死|complain",
    },
    "outside": {
        "contact": r"微信|加个?微|私聊|电话给|手机号|personal phone|phone number|whatsapp",
        "health": (
            r"发烧|退烧|高烧|低烧|皮炎|腹泻|过敏了|发炎|吃药|血糖|颈椎病|治病|看病|药|感冒"
            r"|生病|看医生|fever|medicine|cure"
        ),
        "money": (
            r"基金|股票|理财|返现|转账|好评返"
            r"|invest|vote"
        ),
        "other": r"隔壁|别家|战争|天气|电脑|政治|结婚|远程|无关|直播间以外|帮不上|politic|someone else",
    },
}

GROUP_WEIGHT = 1.2
MEANING_WEIGHT = 1.0

_PATTERNS = {
    (group, meaning): re.compile(pattern, re.IGNORECASE)
    for group, meanings in MEANINGS.items()
    for meaning, pattern in meanings.items()
}


@lru_cache(maxsize=20_000)
def meanings(text: str) -> frozenset[str]:
    """The meanings that a text mentions, as "#group.meaning"."""
    return frozenset(
        f"#{group}.{name}" for (group, name), pattern in _PATTERNS.items() if pattern.search(text)
    )


def mentioned(text: str) -> list[str]:
    """The passages of a text that carry a meaning, longest first, those inside another left out."""
    found = [match.group(0).strip() for pattern in _PATTERNS.values() if (match := pattern.search(text))]
    ranked = sorted(dict.fromkeys(found), key=lambda passage: (-len(passage), passage))
    return [
        passage for i, passage in enumerate(ranked) if not any(passage in longer for longer in ranked[:i])
    ]


def meaning_features(text: str) -> dict[str, float]:
    """Meanings and their groups with their weights."""
    found = meanings(text)
    groups = {tag.partition(".")[0] for tag in found}
    return {**dict.fromkeys(found, MEANING_WEIGHT), **dict.fromkeys(groups, GROUP_WEIGHT)}
