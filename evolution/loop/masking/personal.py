"""Rules for personal data: numbers and addresses of people, in China and elsewhere."""

from django.utils.translation import gettext_noop as _

from evolution.loop.masking.rule import END, IS, START, Rule

_EMAIL = (
    r"(?<![A-Za-z0-9._%+-])(?!git@)[A-Za-z0-9._%+-]{1,64}(?:@|%40|&#64;)"
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9-])"
)

_PROVINCE = r"(?:1[1-5]|2[1-3]|3[1-7]|4[1-6]|5[0-4]|6[1-5]|71|8[123])"
_MONTH_DAY = r"(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"
_ID_CARD = (
    rf"{START}(?:(?P<cn_id>{_PROVINCE}\d{{4}}[ -]?(?:18|19|20)\d{{2}}{_MONTH_DAY}[ -]?\d{{3}}[\dXx])|"
    rf"{_PROVINCE}\d{{4}}\d{{2}}{_MONTH_DAY}\d{{3}}){END}(?!\.\d)|"
    rf"(?:身份证|证件|id[ _-]?card)(?:号码?|[ _-]?(?:no|number|num))?{IS}(?P<secret>\d{{17}}[\dXx]|\d{{15}}){END}"
)

_MOBILE = (
    rf"(?:{START}|(?<=(?i:tel|phone|mobile|wechat|wx|vx|qq)))(?<!\d\.)(?:[+＋]?(?:86|0086)[)）]?[ -]?)?"
    r"(?:1[3-9]\d(?:\d{8}|([ \u00a0\u3000.-])\d{4}\1\d{4}|-\d{8})|[(（]1[3-9]\d[)）][ -]?\d{4}[ -]?\d{4})"
    rf"{END}(?!\.\d)|"
    # In words, as it is said where numbers are forbidden.
    r"(?<![〇零一二三四五六七八九十百千万])[一幺][三四五六七八九][〇零一二三四五六七八九幺]{9}(?![〇零一二三四五六七八九十百千万])"
)
_LANDLINE = (
    rf"{START}(?<![\d./-])(?:(?:[+]?86[ -]?)?[(（]?0(?:10|2\d|[3-9]\d{{2}})[)）-][ ]?[2-8]\d{{2,3}}[ -]?\d{{4}}|"
    rf"(?<=(?:电话|座机|固话)(?:号码?)?[:：是 ]{{0,3}})0(?:10|2\d|[3-9]\d{{2}})[ ]?[2-8]\d{{6,7}})"
    rf"(?:(?:-|转| ?ext\.? ?)\d{{1,6}})?{END}(?!-\d)"
)
# Not the numbers that shops are called by for nothing.
_NOT_TOLL_FREE = r"(?!400|8(?:00|33|44|55|66|77|88))"
_ABROAD = (
    rf"(?<![\w+])[+](?!86)[1-9]\d{{0,2}}[ .-]?(?:[(]\d{{1,4}}[)][ .-]?)?\d{{2,4}}(?:[ .-]?\d{{2,4}}){{1,4}}{END}|"
    rf"{START}(?<![\d.+-])(?:1[ .-])?{_NOT_TOLL_FREE}(?:[(][2-9]\d{{2}}[)] ?|[2-9]\d{{2}}[.-])"
    rf"[2-9]\d{{2}}[.-]\d{{4}}{END}(?![.-]\d)"
)

# Visa, Mastercard, JCB, Discover, UnionPay; American Express.
_BANK_CARD = (
    rf"{START}(?<!\d[.-])(?P<luhn>(?:4\d{{3}}|5[1-5]\d{{2}}|2[2-7]\d{{2}}|35\d{{2}}|6(?:011|2\d{{2}}|5\d{{2}}))"
    r"(?:\d{12}(?:\d{1,3})?|(?:([ -])\d{4})(?:\2\d{4}){2}(?:\2?\d{1,3})?)|"
    rf"3[47]\d{{2}}[ -]?\d{{6}}[ -]?\d{{5}}){END}(?!\.\d)"
)

_ORDER = (
    r"(?:(?:订单|运单|快递单|物流单|交易|退款单?|售后单?)(?:编?号码?)?|单号|"
    r"(?i:(?<![a-z])(?:order|tracking|shipment|waybill|trade)"
    r"(?:[\\\"']{1,8}:\s?\{\s?[\\\"']{1,8}|[ _-])?(?:no\.?|numbers?|num|ids?|sn|code|#)))"
    rf"(?:{IS}|[\s\\\"'：:，,#\[(（]{{0,6}})#?(?P<secret>[A-Za-z]{{0,4}}\d(?:[\d-]{{6,34}})\d){END}|"
    rf"{START}(?<!\d-)(?P<secret>\d{{3}}-\d{{7}}-\d{{7}}|2\d{{5}}-\d{{15}}){END}(?!-\d)"
)

# A character of a Chinese name of a place; those left out belong to the sentence around it.
_HAN = r"(?:(?![我你您他她它们的了在寄送给往把被址为请改吗呢吧啊呀和与跟从去到住])[\u4e00-\u9fff])"
_NUMBER = r"[\d０-９一二三四五六七八九十百甲乙丙A-Za-z]"
_REGION = (
    rf"(?:{_HAN}{{2,7}}(?:省|自治区|特别行政区))?(?:{_HAN}{{2,7}}(?:市|自治州|盟))?"
    rf"(?:{_HAN}{{1,7}}(?:区|县|旗))?(?:{_HAN}{{1,7}}(?:街道|镇|乡|开发区))?"
)
# What follows where a live room numbers links, goods and days, and no houses.
_OTHER_THAN_HOUSES = r"(?!楼|链|线|款|商品|宝贝|产品|主播|直播|口红|色|货|[前后]|[上下]午|[早晚]|到|发|之)"
_ON_A_STREET = (
    rf"{_HAN}{{2,8}}(?<![思套线网电出半一这哪])(?:大道|大街|路|街|巷|胡同)[东西南北中]?[ ]?"
    rf"[\d０-９]{{1,5}}(?:-\d{{1,4}})?(?:号院?|弄|巷){_OTHER_THAN_HOUSES}"
)
_IN_AN_ESTATE = (
    rf"{_HAN}{{2,10}}(?:小区|花园|苑|公寓|大厦|广场|家园|村|城|府|院|湾|里|园|校区|大学)[ ,，]?"
    rf"{_NUMBER}{{1,4}}(?:号楼|栋|幢|座|单元|室)"
)
_UNIT = (
    rf"(?:[ ,，]?(?:{_HAN}{{0,8}}?{_NUMBER}{{1,5}}(?:-\d{{1,4}})?(?:号楼|号|栋|幢|座|单元|室|楼|层|户|门))|"
    r"[ -]?\d{3,4}(?!\d|[元块件个年月]))"
)
_ADDRESS = rf"{_REGION}(?:{_ON_A_STREET}|{_IN_AN_ESTATE}){_UNIT}{{0,5}}"
_QUICK_ADDRESS = (
    r"(?:大道|大街|路|街|巷|胡同)[东西南北中]? ?[0-9０-９]{1,5}(?:-[0-9０-９]{1,4})?(?:号|弄|巷)|"
    r"(?:小区|花园|苑|公寓|大厦|广场|家园|村|城|府|院|湾|里|园|校区|大学)[ ,，]?"
    r"[0-9０-９一二三四五六七八九十百甲乙丙A-Za-z]{1,4}(?:号楼|栋|幢|座|单元|室)"
)

_KINDS = (
    r"(?:Street|St|Avenue|Ave|Road|Rd|Boulevard|Blvd|Lane|Ln|Drive|Dr|Court|Ct|Way|Place|Pl|Square|Sq|Terrace|"
    r"Parkway|Pkwy|Highway|Hwy|Circle|Trail)\b"
)
_STREET = (
    r"(?<![\w#.$€£-])\d{1,5}[A-Za-z]?\s(?:(?:N|S|E|W|NE|NW|SE|SW|North|South|East|West)\.?\s)?"
    rf"(?:[A-Z][a-z'’]+\s|\d{{1,3}}(?:st|nd|rd|th)\s){{1,3}}{_KINDS}\.?"
    r"(?:,?\s(?:Apt|Apartment|Suite|Ste|Unit|Floor|#)\.?\s?#?[\w-]{1,6})?"
    r"(?:,\s[A-Z][A-Za-z .'-]{1,30})?(?:,\s[A-Z]{2}\b)?(?:,?\s\d{5}(?:-\d{4})?\b)?"
)

# RE2's \d is that of ASCII alone.
_D = "[0-9０-９]"
PERSONAL = (
    Rule(
        "email",
        "e-mail",
        _EMAIL,
        _("e-mail addresses"),
        quick=r"[A-Za-z0-9._%+-](?:[@＠]|%40|&#64;)[A-Za-z0-9-]+\.",
    ),
    Rule(
        "id-card",
        "id card",
        _ID_CARD,
        _("Chinese id cards of 18 places, with the right check digit, and of 15"),
        quick=rf"{_D}{{6}}[ -]?{_D}{{6}}",
    ),
    Rule(
        "phone",
        "phone",
        _MOBILE,
        _("Chinese mobile numbers"),
        quick=rf"[1１][3-9３-９]{_D}[)）]?[ \x{{a0}}\x{{3000}}.-]?{_D}{{4}}[ \x{{a0}}\x{{3000}}.-]?{_D}{{4}}|"
        r"[一幺][三四五六七八九][〇零一二三四五六七八九幺]{9}",
    ),
    Rule(
        "bank-card",
        "bank card",
        _BANK_CARD,
        _("card numbers with the right check digit"),
        quick=rf"[2-6２-６]{_D}{{3}}[ -]?{_D}{{4}}[ -]?{_D}{{2}}[ -]?{_D}{{2}}[ -]?{_D}{{3}}",
    ),
    Rule(
        "order",
        "order number",
        _ORDER,
        _("order and tracking numbers after their name; those of Amazon and Pinduoduo anywhere"),
        quick=r"(?i)(?:订单|运单|单号|快递单|物流单|交易|退款|售后|order|tracking|shipment|waybill|trade)"
        rf"[^0-9]{{0,40}}{_D}[0-9０-９-]{{7}}|[0-9]{{3}}-[0-9]{{7}}-[0-9]{{7}}|[0-9]{{6}}-[0-9]{{15}}",
    ),
    Rule(
        "landline",
        "phone",
        _LANDLINE,
        _("Chinese landline numbers"),
        quick=rf"0{_D}{{2,3}}[)）-] ?[2-8２-８]{_D}{{2,3}}[ -]?{_D}{{4}}|(?:电话|座机|固话)[^0-9]{{0,5}}0{_D}",
    ),
    Rule(
        "phone-abroad",
        "phone",
        _ABROAD,
        _("international numbers with +, and those of North America"),
        quick=rf"[+][1-9][0-9０-９ .()-]{{4}}|{_D}{{3}}[).-] ?[2-9２-９]{_D}{{2}}[.-]{_D}{{4}}",
    ),
    Rule(
        "address",
        "address",
        _ADDRESS,
        _("Chinese addresses with a house number"),
        quick=_QUICK_ADDRESS,
        reach=(60, 200),
    ),
    Rule(
        "street",
        "address",
        _STREET,
        _("street addresses in English"),
        quick=rf"[0-9][A-Za-z]?\s(?:[A-Z0-9][A-Za-z0-9'’.]*\s){{1,4}}{_KINDS}",
    ),
)
