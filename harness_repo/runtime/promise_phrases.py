"""The phrases by which promises, and their denials, are known: a list, of what live rooms say in Chinese and English.

All are written as `promises.compared` writes texts: simplified, in lower case, without blanks beside Chinese.
"""

import regex

_DEED = "退|换|取消|赔|补差|保修|质保|改"

# What is promised stands in the phrase.
SPOKEN_OUT = (
    r"(?:全网|史上|全年|历史)最低价?|最低价(?!格)|价格最低",
    r"假一[赔罚][零一二两三四五六七八九十百千万\d]+",
    r"(?:终身|永久)(?:质保|保修|保固|免费[一-龥]{0,2}|有效|使用|包换)",
    rf"无条件(?:就|都|给|可以|能|包){{0,4}}(?:{_DEED})[退换款货]?",
    rf"随时(?:都|就)?(?:能|可以|可|给|帮){{0,3}}(?:{_DEED})[换款货]?",
    r"包(?:退包换|退换?|换|赔|治好?|好|过|真|[您你]?满意)(?![装容括])",
    r"必须(?:给|帮)[您你](?:退|换|赔|补)[款货偿差]?",
    r"(?:零|无|没有任何?)(?:风险|副作用)",
    r"药到病除|根治|治愈|稳赚不赔|(?:次日|隔日|当日|当天|明天)必达",
    r"(?:明天|后天|今天|当天|次日)(?:就|一定|肯定|准)能?(?:送)?到",
    r"(?:马上|立刻|立即|秒)(?:就|给[您你])?(?:发货|退款|到账|补发)",
    r"\b(?:the )?lowest price(?: ever| anywhere| on the market)?\b(?! is (?:shown|listed|displayed|written|on)\b)",
    r"\bbest price (?:ever|anywhere)\b",
    r"\blifetime (?:warranty|guarantee|refunds?|replacements?|support)\b|\blasts? forever\b",
    r"\b(?:risk[- ]free|no risk|zero risk|no side effects)\b|\bmoney[- ]back\b|\bno questions asked\b",
    r"\bunconditional(?:ly)? (?:refunds?|returns?|exchanges?)\b",
    r"\b(?:refund|return|cancel|exchange)(?:s|ed)?(?: \w{1,20}){0,2} (?:any ?time|whenever|for any reason)\b",
    r"\b(?:cures?|heals?) (?:your|any|all|the)\b|\bwill cure\b",
    r"\bnever (?:fades?|breaks?|fails?|shrinks?|wears? out|goes? out of stock)\b",
    r"\balways (?:in stock|available|fits?|works?|arrives?|on time)\b",
    r"\b(?:arrives?|delivered|get it) tomorrow\b",
)
# What is promised comes after the phrase, or when nothing does, stands before it.
EMPHATIC = (
    r"保证(?!金|书)|担保(?!金|交易|书)|确保|承诺(?!书|函|的)|打(?:包票|保票)",
    r"(?:百分之?百|百分百)",
    r"100%(?:都|就|能|会|可以|是|保证|有效|安全|正品|满意|退|不|没)",
    r"绝对|肯定(?:能|会|可以|不|是|没|有|给|帮|到|赶)|一定(?:能|会可?|可以|不会|给|帮|有|是(?:正品|真|最|有))|必定",
    r"绝不(?!敢?(?:保证|承诺|说))|永不|永远(?:不|都)",
    r"\bguarantee(?:d|s|ing)?\b(?! (?:period|cards?|terms?|pages?|forms?|certificates?|numbers?)\b)",
    r"\b(?:i|we)(?: can| do|'ll| will)?(?: hereby)? (?:promise|pledge|vow|swear)\b|\bi assure you\b",
    r"\b100 ?(?:%|percent) (?:effective|safe|guaranteed|genuine|authentic|satisfaction|refund|sure|works?)\b",
    r"\b(?:will|can) (?:definitely|certainly|surely|absolutely|always)\b",
    r"\b(?:definitely|certainly|absolutely) (?:will|can|won't|works?|safe|not|fits?)\b",
    r"\bwithout fail\b|\bno matter what\b",
)

# These have a negation in them and deny nothing of what follows.
NO_DENIAL = regex.compile(
    r"不得不|不[仅但只止光]|不[管论]|不用(?:担心|怕|急|愁)|不必担心|不好意思|不满意|不合适|不喜欢|不错|不过|不同|不少|不断"
    r"|没(?:错|问题|关系|事|毛病)|别(?:家|人|处|的|担心|急|着急|怕|犹豫)|毫不犹豫|毫无疑问|没有疑问|无疑|不得了|差不多"
    r"|(?P<verb>[一-龥])不(?P=verb)|\bnot (?:only|just|to (?:worry|mention))\b|\bno (?:doubt|worries|problem|delay)\b"
)
_BETWEEN = (
    "代表我们|等于我们|意味着我们|办法|人|能|敢|会|可能|可以|要|想|说过?|曾|过|得|做|给|跟|向|对|[您你]|再|也|都|来|去"
    "|随便|轻易|任何|百分之?百|100%|完全|打|有|提供|支持|是|所谓|这种|这个|什么|[“”\"'「」]|保证|承诺|一定|绝对"
)
_BETWEEN_ENGLISH = (
    "be|able|to|really|currently|yet|ever|even|always|actually|can|will|would|could|is|are|have|has|had|make|give|offers?"
    "|provide|do|does|any|an?|the|our|such|kind|sort|of|as|you|us|say|claim|state|tell|mean|promise|guarantee"
    "|(?:say|claim|state|mean|promise|tell you|think)(?: that)? (?:we|it|i|they|this|there)(?:'ll|'s|'re)?"
)
_NEGATIONS = r"n't|\bnot|\bcannot|\bnever|\bunable|\bnobody|\bno one|\bnone|\bneither|\bwithout|\bhardly"
# Right before the promise these deny it; what may stand between them says nothing else.
DENIED_BEFORE = (
    rf"(?:不|没有?|没法|无法|难以|很难|并非|未必|勿|别|哪能|谁能|没人|没谁)(?:{_BETWEEN}){{0,8}}",
    r"无(?:任何)?",
    rf"(?:{_NEGATIONS})(?: (?:{_BETWEEN_ENGLISH})){{0,8}} ?[\"']?",
    r"\bno (?:such |kind of |sort of |formal |official |other )?[\"']?",
)
# To the end of the clause, these say that what was named is not there.
_OWN = r"(?:我们?|咱们?|本店|店里|小店|这边|目前|暂时|现在|都|也|还|是|可|真的?|确实|这个|这种|这项)"
_THING = r"(?:的)?(?:说法|政策|服务|活动|承诺|保障|保证|事情?|话)?"
_TAIL = r"(?:这个|这种|这项|任何)?(?:说法|政策|服务|活动|承诺|保障)?(?:的|哦|哈|呢|啦|呀|了|吧|啊|哟|噢|嘛|哒|亲|~|\s)*"
_NOT_SO = r"不了|不来|不到的?|说不准|不好说|不敢(?:说|保证|承诺)|做不到|办不到|是?不太?(?:可能|现实)"
_NOT_THERE = r"(?:没有|不支持|不提供|不承诺|不保证|不存在|没法|无法|谈不上)(?:保证|承诺|提供|支持)?"
_OFFERED = (
    r"offer(?:ed)?|provided?|have|support(?:ed)?|includ(?:e|ed)|promised?|guaranteed?|given?|sell|do|available|possible"
    r"|applicable|true|something"
)
DENIED_AFTER = regex.compile(
    rf"(?:[^都也]{{0,12}}(?:{_NOT_SO})|{_THING}{_OWN}{{0,4}}{_NOT_THERE}){_TAIL}\Z"
    rf"|.{{0,60}}(?:n't|\bnot|\bcannot|\bnever|\bno longer)(?: \w{{1,12}}){{0,2}}? (?:{_OFFERED})"
    r"(?: (?:it|that|this|here|any ?more|at all|yet|now|to you))?[ .\"']*\Z"
)
# Whoever is asked to make sure promises nothing.
ASKED_BEFORE = regex.compile(
    r"(?:(?<!邀)请|麻烦|劳烦|记得|(?<![给向跟帮为对和让替与])(?:[您你]|大家|亲们?))"
    r"(?:[您你]|亲们?|大家|各位|宝宝们?|家人们|先|务必|一定|要|得|需要?|一下|再|自己|自行|注意|也|都|可以){0,6}\Z"
)
ASKED = regex.compile(r"(?:确保|保证)")
# A clause that asks.
ASKING = regex.compile(
    r"(?:吗|么|呢|是不是|对吧)\Z|\A[^a-z]*(?:is|are|was|do|does|did|can|could|will|would|should|has|have|what|how|which"
    r"|when|where|who|why|if)\b"
)

# A line of a prompt with one of these says what not to promise, and states nothing.
FORBIDS = regex.compile(
    r"不要|不得|不许|不准|不能|不可|禁止|严禁|避免|切勿|勿|别说"
    r"|\b(?:do not|don't|never|must not|mustn't|cannot|can't|avoid|no promises?|instead of)\b"
)

# Of the words above, what is written otherwise in traditional Chinese.
TRADITIONAL = str.maketrans(
    "證額終質賠無條換對絕絶遠擔確諾網價歷隨時滿險藥穩賺達馬發貨賬帳後當給還沒別難會們補費萬兩塊個說話請這嗎麼為並實來買賣癒單內裝運郵過誰須勞煩邊暫現種項動務關係問題錯僅論點號從則",
    "证额终质赔无条换对绝绝远担确诺网价历随时满险药稳赚达马发货账账后当给还没别难会们补费万两块个说话请这吗么为并实来买卖愈单内装运邮过谁须劳烦边暂现种项动务关系问题错仅论点号从则",
)
