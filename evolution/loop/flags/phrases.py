"""What text says that is meant for a model or a reviewer and not for the agent's work: phrases, English and Chinese.

They are looked for in a plain form of the text: small letters, look-alikes and hidden characters undone. A blank stands
for any white space, so that no phrase hides between two lines. What may stand between words is bounded everywhere: no
text makes a search slow.
"""

import re

from evolution.loop.flags.flag import FlagKind

_RULES = r"(?:instruction|rule|prompt|guideline|direction|constraint|policie|policy|message)s?"
_EARLIER = r"(?:all|any|of|the|your|these|those|every|previous|prior|preceding|above|earlier|other|system)"
_NOT_MEANT = r"(?:information|reference|example|illustration|history)"
_PEOPLE = r"(?:the |any )?(?:user|viewer|customer|human|reviewer|developer|operator|anyone|anybody)s?"
_DATA = (
    r"(?:conversation|chat history|chat log|transcript|api[ _-]?key|password|credential|secret|token|system prompt|"
    r"personal data|personal information|phone number|order id|order number|customer data|user data)s?"
)
_RULES_ZH = r"(?:指令|指示|规则|要求|约束|提示词?|设定|限制|规定)"
_EARLIER_ZH = r"(?:以上|之前|前面|上面|上述|先前|此前|你的?|所有|全部|一切|系统|其他|其它)"
_DATA_ZH = (
    r"(?:聊天记录|对话(?:记录|内容)|密码|密钥|口令|令牌|系统提示|手机号|电话号码|订单(?:号|信息)|个人信息|"
    r"用户(?:数据|信息))"
)

_PHRASES: dict[FlagKind, tuple[str, ...]] = {
    FlagKind.OVERRIDE: (
        rf"\b(?:ignore|disregard|forget|override|bypass) (?:{_EARLIER} ){{1,5}}{_RULES}",
        rf"\b(?:do not|don't|never|no longer) (?:follow|obey|comply with) (?:{_EARLIER} ){{1,5}}{_RULES}",
        rf"\b{_EARLIER} {_RULES} (?:are|is|do|does) (?:void|no longer|not apply|obsolete|cancell?ed|overridden)",
        rf"\b{_RULES} no longer appl(?:y|ies)\b",
        rf"\b{_RULES},? (?:(?:which|that) )?(?:no longer|do not|don't|does not) (?:hold|apply|count|bind)",
        (
            rf"\b{_RULES} (?:above|below|that follow) (?:are|is|have|has|do|does|no longer)(?: been)? "
            r"(?:void|obsolete|outdated|deprecated|cancell?ed|overridden|superseded|no longer|not apply|hold|apply)"
        ),
        rf"\b{_RULES} (?:of|from|by) (?:our |the |a |my |your )?(?:predecessors?|former|previous|last|old)\b",
        (
            rf"\b(?:old|former|previous|past|outdated) {_RULES}\b[^.\n]{{0,40}}"
            rf"\b(?:for|as) (?:your |an? )?{_NOT_MEANT}"
        ),
        rf"\b{_RULES}\b[^.\n]{{0,40}}\b(?:only|just|merely) (?:for|as) (?:your |an? )?{_NOT_MEANT}",
        rf"{_RULES_ZH}[^。\n]{{0,10}}(?:仅供|只供|只是)参考|(?:旧|老|前任|以前)的?.{{0,4}}{_RULES_ZH}.{{0,6}}(?:仅供|只供|参考)",
        r"\bnew (?:system )?(?:instructions?|prompt)\s?:",
        (
            r"(?:忽略|无视|忘记|忘掉|抛开|不要遵守|无需遵守|不必遵守|不用遵守|绕过)(?:掉)?.{0,4}"
            rf"{_EARLIER_ZH}.{{0,6}}{_RULES_ZH}"
        ),
        rf"(?:以上|上述|以下|下列|下面的?|之前的?|前面的?|其他|其它).{{0,4}}{_RULES_ZH}.{{0,6}}(?:作废|失效|无效|不再适用|不适用|取消)",
        r"新的?(?:系统)?(?:指令|提示词?)\s?[:：]",
    ),
    FlagKind.ROLE_CHANGE: (
        r"\byou are now (?:a|an|in|the|no longer|free|dan|called)\b",
        r"\bfrom now on,? (?:you|act|pretend|respond)",
        r"\bpretend (?:to be|that you|you are)\b",
        r"\bact as (?:if you (?:are|were|have) no|an? (?:unrestricted|different|unfiltered|jailbroken))",
        r"\b(?:developer|debug|god|admin|dan|jailbreak) mode\b",
        r"\bjailbreak",
        r"(?:从现在(?:起|开始)|现在开始|接下来)[，,]?\s?你(?:是|就是|要扮演|扮演|不再)",
        r"你现在(?:是|不再是|扮演)|(?:假装|假设)你(?:是|没有)",
        r"(?:开发者|调试|越狱|上帝|管理员)模式",
    ),
    FlagKind.FAKE_TURN: (
        r"^[\s>#*-]{0,8}(?:system|developer)(?: (?:message|prompt|note|override|instructions?))?\s?\]?[:：]\s?\S",
        r"<\|[a-z_ ]{2,30}\|>",
        r"\[/?inst\]|<</?sys>>",
        r"</?(?:system|instructions?|data|assistant|user|human|tool_result|important)(?:\s[^<>]{0,80})?>",
        r"^#{1,6} (?:new |system )?instructions?\s?:?$",
        r"^[\s>#*-]{0,8}系统(?:提示|指令|消息|通知)\s?[:：]\s?\S",
        r"\bbegin (?:system|admin) (?:message|prompt)\b",
    ),
    FlagKind.CONCEALMENT: (
        (
            rf"\b(?:do not|don't|never) (?:tell|inform|notify|alert) {_PEOPLE} (?:about|of|that) (?:this|these|the) "
            r"(?:rule|instruction|change|message|prompt)"
        ),
        rf"\bwithout (?:telling|informing|notifying|alerting) {_PEOPLE}",
        rf"\b(?:secret|hidden|confidential) from {_PEOPLE}",
        r"\breviewers? (?:must|should|need) not (?:see|know|notice)",
        r"(?:不要|不得|别|切勿)(?:让|告诉|告知|通知)(?:任何人|审核(?:人|员)?|评审|开发者?|运营|管理员)",
    ),
    FlagKind.SELF_APPROVAL: (
        (
            r"\b(?:this|the) (?:change|edit|diff|proposal|reply|answer|draft) (?:is|was|has been) (?:already |fully )?"
            r"(?:approved|reviewed|verified|safe|correct)\b"
        ),
        r"\bno need to review|\bno review (?:is )?(?:needed|required)",
        r"\b(?:approve|confirm|merge|promote|accept) this (?:change|proposal|diff|edit|step)\b",
        (
            r"\b(?:score|rate|grade|mark|judge) (?:this|it|the reply|the answer|everything|every reply|all replies) "
            r"(?:as )?(?:correct|1\b|full|perfect|10|accurate|high)"
        ),
        r"(?:无需|不用|不必|免)(?:人工)?(?:审核|评审|审查|复核)|(?:审核|评审|审查)(?:已经?|已被?)?通过",
        r"(?:给|打|评)(?:出)?满分|(?:直接|立即|马上)(?:批准|通过|合并|发布)(?:本|此|这|该)",
    ),
    FlagKind.EXFILTRATION: (
        (
            rf"\b(?:send|post|upload|forward|e-?mail|transmit|leak|exfiltrate|submit)\b[^.\n]{{0,60}}\b{_DATA}\b"
            r"[^.\n]{0,40}\b(?:to|at|via)\b"
        ),
        (
            r"\b(?:print|reveal|output|repeat|show|include|append)\b[^.\n]{0,30}\byour (?:full |entire )?"
            r"(?:system prompt|api[ _-]?keys?|hidden instructions?|secrets?)\b"
        ),
        rf"(?:把|将)[^。\n]{{0,20}}{_DATA_ZH}[^。\n]{{0,20}}(?:发送|发到|发给|上传|转发|提交|回传|传到)",
        r"(?<!不要)(?<!不得)(?<!不能)(?<!禁止)(?:发送|上传|转发|泄露|输出|说出|透露)(?:你的|全部|所有|完整的?)[^。\n]{0,10}(?:系统提示|提示词|密钥|指令)",
        r"!\[[^\]\n]{0,80}\]\(\s?[a-z]{2,10}://[^)\n]{0,200}(?:\{|%7b)",
    ),
    FlagKind.COMMAND: (
        r"\b(?:curl|wget|iwr|invoke-webrequest)\b[^\n|]{0,200}\|\s?(?:sudo )?(?:ba|z|da)?sh\b",
        r"\bbase64 (?:-d|--decode)\b|\brm -[rf]{2}\b|\bpowershell\b[^\n]{0,60} -e(?:nc|ncodedcommand)?\b",
        r"\bos\.system\(|\bsubprocess\.(?:run|popen|call)\(|\beval\(",
    ),
    FlagKind.COMMENT: (
        # Those that tools read, and that anybody may want.
        r"<!--(?!\s?(?:prettier|markdownlint|toc|eslint|tocstop|cspell|vale|spdx|copyright|more)\b)",
        r"^\[(?://|comment|_)\]:\s?#",
        (
            r"<(?:span|div|p)\b[^<>]{0,120}(?:display:\s?none|visibility:\s?hidden|font-size:\s?0|hidden\b|"
            r"color:\s?(?:white|#fff))"
        ),
    ),
}

PATTERNS = {
    kind: re.compile("|".join(phrases).replace(" ", r"\s+"), re.MULTILINE | re.DOTALL)
    for kind, phrases in _PHRASES.items()
}
