"""Rules for what opens a door: keys, tokens and passwords."""

from django.utils.translation import gettext_noop as _

from evolution.loop.masking.rule import IS, QUICK_IS, START, Rule

# A value that only says what kind of value belongs there.
_NO_VALUE = (
    r"(?!(?i:none|null|true|false|undefined|string|str|text|required|optional|integer|number|object|hidden|redacted|"
    r"example|invalid|incorrect|missing|empty|password|secret)\b)"
    r"(?![<{$%\[(*.•]|\w+\.\w+[(\[]|process\.env|os\.)"
)

_PEM = (
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:[A-Za-z0-9+/=\s\\:,.()-]{0,20000}?-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|"
    r"[A-Za-z0-9+/=\s\\]{0,20000})"
)
_AWS_KEY = r"(?<![A-Za-z0-9])(?:AKIA|ASIA|AROA|AIDA|AGPA|ANPA|ANVA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])"
_AWS_PAIR = (
    r"(?:(?:AKIA|ASIA)[A-Z0-9]{16}[^A-Za-z0-9/+]{1,20}(?:(?i:secret|aws|access|key|_|\W){1,40})?|"
    r"(?i:aws|amazon|secret)[\w ./-]{0,24}(?i:key|secret|token)[^A-Za-z0-9/+]{1,20})"
    r"(?P<secret>[A-Za-z0-9/+]{40}(?:[A-Za-z0-9/+=]{60,2000})?)(?![A-Za-z0-9/+=])"
)
# What is one word with its first part can be no other token's beginning: it is not looked at again.
_JWT = rf"{START}eyJ[\w-]{{8,}}+(?:\.eyJ[\w-]{{8,8000}}\.[\w-]{{0,2000}}|(*SKIP)(*FAIL))"
# Those of OpenAI and its like, Langfuse, Stripe, GitHub, GitLab, Slack, Google, Hugging Face, npm, PyPI, LangSmith,
# Linear, SendGrid, Groq, Replicate, Tavily, xAI, DigitalOcean, Alibaba Cloud, Tencent Cloud, and sources of ours.
_KEYS = (
    rf"{START}(?:sk-(?:proj|ant|or|svcacct|lf|admin)-[\w-]{{12,200}}|sk-(?=[\w-]*\d)[\w-]{{16,200}}|"
    r"pk-lf-[\w-]{12,80}|(?:sk|rk|pk|whsec)_(?:live|test)_\w{10,200}|whsec_\w{16,200}|gh[opusr]_\w{20,255}|"
    r"github_pat_\w{22,255}|glpat-[\w-]{16,100}|xox[abeprs]-[\w-]{10,250}|xapp-[\w-]{10,250}|AIza[\w-]{30,50}|"
    r"ya29\.[\w-]{20,300}|hf_[A-Za-z0-9]{24,60}|npm_[A-Za-z0-9]{30,50}|pypi-[\w-]{40,250}|"
    r"lsv2_(?:pt|sk)_\w{20,120}|lin_api_\w{20,80}|SG\.[\w-]{16,64}\.[\w-]{16,100}|gsk_[A-Za-z0-9]{30,80}|"
    r"r8_[A-Za-z0-9]{30,60}|tvly-[\w-]{16,60}|xai-[A-Za-z0-9]{30,120}|dop_v1_[a-f0-9]{40,80}|"
    r"LTAI[A-Za-z0-9]{12,30}|AKID[A-Za-z0-9]{13,40}|hwb_[\w-]{43})(?!\w)|"
    r"hooks\.slack\.com/services/(?P<secret>[\w/]{20,100})"
)
_QUICK_KEYS = (
    r"sk-[\w-]{12}|pk-lf-|_(?:live|test)_|whsec_|gh[opusr]_|github_pat_|glpat-|xox[abeprs]-|xapp-|AIza|ya29\.|hf_|"
    r"npm_|pypi-|lsv2_|lin_api_|SG\.|gsk_|r8_|tvly-|xai-|dop_v1_|LTAI|AKID|hwb_|hooks\.slack\.com"
)
_BEARER = (
    r"(?i:\bbearer)(?:\s|%20|\\u0020){1,3}"
    r"(?P<secret>(?=[\w.~+/=-]{0,200}\d|[A-Za-z]{24})[\w.~+/=-]{12,8000})|"
    rf"(?i:(?:proxy-)?authorization){IS}(?:(?i:bearer|basic|token|apikey|digest|negotiate)\s{{1,3}})?"
    r"(?P<secret>(?!(?i:bearer|basic|token)\b)[\w.~+/=-]{8,8000})"
)
_ASSIGNED = (
    r"(?i:(?<![a-z])(?:[a-z0-9]{1,20}[_-]){0,4}(?:x-)?(?:api[ _-]?key|app[ _-]?secret|"
    r"access[ _-]?key(?:[_-]?(?:id|secret))?|secret[ _-]?key|client[ _-]?secret|"
    r"(?:account|storage|shared[_-]?access|subscription|master|service|deploy|license)[_-]?key|"
    r"(?:access|auth|refresh|bearer|session|csrf|id|api|personal[ _-]?access)[ _-]?token|private[ _-]?key|"
    r"encryption[ _-]?key|signing[ _-]?key|webhook[ _-]?secret)|密钥|令牌)"
    rf"{IS}{_NO_VALUE}(?P<secret>(?=[\w.~+/=:-]{{0,80}}\d|[A-Za-z]{{16}})[\w.~+/=:-]{{8,4000}})|"
    # Words that name other things, too: only where what follows is no word, number or date.
    r"(?:(?i:(?<![a-z])(?:[a-z0-9]{1,20}[_-]){0,4}(?:secret|token))|(?<=[a-z])(?:Secret|Token|ApiKey))"
    rf"{IS}{_NO_VALUE}"
    r"(?P<secret>(?=[\w.~+/=:-]{0,40}\d)(?=[\w.~+/=:-]{0,40}[A-Za-z])(?!\d{4}-\d\d-\d\d)[\w.~+/=:-]{8,4000})"
)
# Of what is a secret word.
_NAME_OF_WORD = r"(?i:(?<![a-z])(?:[a-z0-9]{1,20}[_-]){0,3}(?:password|passwd|passphrase|pwd)|密码|口令)"
# What is said of passwords, and is none.
_NO_WORD = (
    r"(?!(?i:reset|change|changed|forgot|forgotten|login|signin|update|updated|recovery|wrong|policy|strength|"
    r"expired|correct|unknown|protected|please)\b)"
)
_PASSWORD = (
    rf"{_NAME_OF_WORD}"
    r"(?:[ ]?(?:[:：=]|=>)|[\\\"'`]{1,8}\s{0,3}(?:[:：=]|=>)|是|为|\sis)\s{0,3}[\\\"'`]{0,8}"
    rf"{_NO_VALUE}(?P<secret>(?=[!-~]{{0,60}}[\d!@#$%^&*_+?-])[^\s\"'`\\,;}}<>，。；\u4e00-\u9fff]{{6,200}})|"
    # Letters alone: directly behind `=`, or all that there is behind the name.
    rf"{_NAME_OF_WORD}(?:=|[\\\"'`]{{0,8}}:\s{{0,3}})(?<==|[:\s])[\\\"'`]{{0,8}}{_NO_VALUE}{_NO_WORD}"
    rf"(?P<secret>(?<==[\\\"'`]{{0,8}})[A-Za-z]{{6,64}}(?=[\s\\\"'`&;,]|\Z)|"
    rf"[A-Za-z]{{6,64}}(?=\Z|\n\n\ufdd0|[\\\"'`]{{1,8}}\s{{0,3}}[,}}\]]))"
)
_COOKIE = (
    rf"(?i:(?<![a-z])(?:set-)?cookie2?){IS}(?P<secret>[\w!#$%&*.^|~+-]{{1,80}}=[^\r\n\"\\'`\ufdd0]{{6,8000}})|"
    r"(?i:(?<![a-z])cookies? [\w.-]{1,80}: )(?P<secret>[^\s\"'\\;,]{8,4000})|"
    r"(?i:(?<![a-z0-9])(?:jsessionid|phpsessid|asp\.net_sessionid|connect\.sid|sessionid|laravel_session|csrftoken))"
    r"=(?P<secret>[\w.%~+/:-]{8,2000})"
)
_URL = (
    r"(?<![a-z])[a-z][a-z0-9+.-]{1,30}://[^\s:/@\"'<>]{0,100}:(?P<secret>[^\s@/\"'<>]{1,200})@|"
    r"[?&](?i:key|api[_-]?key|access[_-]?token|token|auth|sig|signature|secret|password|pwd|"
    r"x-amz-(?:signature|credential|security-token)|x-goog-signature|accesskeyid|ossaccesskeyid)="
    r"(?P<secret>[^\s&\"'<>#\\]{8,2000})"
)

KEYS = (
    Rule(
        "private-key",
        "private key",
        _PEM,
        _("PEM and PGP private keys, also cut off"),
        is_secret=True,
        quick=r"BEGIN [A-Z0-9 ]*PRIVATE KEY",
    ),
    Rule(
        "aws-key",
        "AWS key",
        _AWS_KEY,
        _("AWS access key ids"),
        is_secret=True,
        quick=r"A[KSRIGNBC][A-Z]A[A-Z0-9]{16}",
    ),
    Rule(
        "aws-secret",
        "AWS secret",
        _AWS_PAIR,
        _("AWS secret access keys and session tokens"),
        is_secret=True,
        quick=r"(?i)(?:aws|amazon|secret)[^\n]{0,90}[A-Za-z0-9/+]{40}|AKIA|ASIA",
    ),
    Rule(
        "jwt",
        "token",
        _JWT,
        _("JSON web tokens"),
        is_secret=True,
        quick=r"eyJ[0-9A-Za-z_-]{8}[0-9A-Za-z_-]*\.eyJ",
    ),
    Rule(
        "api-key",
        "API key",
        _KEYS,
        _("keys that the prefix of their maker gives away"),
        is_secret=True,
        quick=_QUICK_KEYS,
    ),
    Rule(
        "bearer",
        "token",
        _BEARER,
        _("bearer tokens and Authorization headers"),
        is_secret=True,
        quick=r"(?i)bearer(?:\s|%20|\\+u0020|\\)|authorization",
    ),
    Rule(
        "assigned-key",
        "API key",
        _ASSIGNED,
        _("values of fields named api_key, secret, access_token and the like"),
        is_secret=True,
        quick=r"(?i)(?:key|secret|token|key[_-]?id|密钥|令牌)" + QUICK_IS + r"[0-9A-Za-z_.~+/=:-]{8}",
        reach=(120, 4100),
    ),
    Rule(
        "password",
        "password",
        _PASSWORD,
        _("passwords after their name"),
        is_secret=True,
        quick=r"(?i)(?:passw(?:or)?d|passphrase|pwd|密码|口令)" + QUICK_IS,
        reach=(80, 300),
    ),
    Rule(
        "cookie",
        "cookie",
        _COOKIE,
        _("cookies, and ids of sessions in them"),
        is_secret=True,
        quick=r"(?i)cookie|sessionid=|phpsessid=|connect\.sid=|laravel_session=|csrftoken=",
    ),
    Rule(
        "url-secret",
        "password",
        _URL,
        _("passwords and keys in addresses of the web"),
        is_secret=True,
        quick=r"://[^\s:/@\"'<>]*:[^\s@/\"'<>]+@|(?i)[?&][a-z_-]*(?:key|token|auth|sig|signature|secret|password|pwd|"
        r"credential|keyid)=",
    ),
)
