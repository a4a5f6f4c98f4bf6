"""What the diagnoser and the editor say to people, in the language of the harness. Words only, no decisions."""

from collections.abc import Sequence

# key -> Chinese, English; {name} is filled in
TEXTS: dict[str, tuple[str, str]] = {
    "claims.hypothesis": (
        "约束里没有禁止这些承诺，模型在没有依据时顺口说了{said}。",
        "No rule forbids these promises, and without evidence the model said {said} out of habit.",
    ),
    "claims.refuted": (
        "如果约束里加上这些话之后，同样的弹幕仍然这样回复，这个判断就不成立。",
        "It is wrong if the same requests get the same replies once a rule forbids these words.",
    ),
    "claims.rule": ("不要对观众说{said}。", "Do not tell viewers {said}."),
    "claims.rule_general": ("不要对观众承诺{said}这类没有依据的话。", "Do not promise things such as {said}."),
    "claims.long": (
        "约束已经有 {count} 条，排在前面的规则模型注意不到，所以仍然说了{said}。",
        "There are {count} rules already and the model overlooks the first ones, so it still said {said}.",
    ),
    "claims.long_refuted": (
        "如果把这些话的规则移到约束的最后一条，同样的弹幕仍然这样回复，这个判断就不成立。",
        "It is wrong if the same requests get the same replies once the rule on these words is the last one.",
    ),
    "rule.refuted": (
        "如果加上这条规则之后同样的弹幕仍然这样回复，这个判断就不成立。",
        "It is wrong if the same requests get the same replies once this rule is there.",
    ),
    "unsupported_claim.rule": (
        "工具没有返回的数字和承诺不要编造，查不到就说「这个我帮你核实一下」。",
        'Never invent numbers or promises that no tool returned; when nothing is found, say "let me check that".',
    ),
    "unsupported_claim.hypothesis": (
        "约束里没有被注意到的、要求查不到就核实的规则，模型用编的数字和承诺代替了核实。",
        "The model heeds no rule to verify what was not found, and invented numbers and promises instead.",
    ),
    "not_returned.rule": (
        "工具返回里没有观众问的那一项时，直接说「这个我帮你核实一下」，不要拿别的信息顶上。",
        'When the results do not have what was asked for, say "let me check that" instead of stating something else.',
    ),
    "not_returned.hypothesis": (
        "工具没有返回观众问的那一项，约束只说查不到要核实，模型拿别的信息顶上了。",
        "The tools did not return what was asked for; no rule says what to do then, and the model stated other things.",
    ),
    "wrong_language.rule": ("观众用英文提问，就用英文回复。", "Reply in the viewer's own language."),
    "wrong_language.hypothesis": (
        "约束里没有说用什么语言回复，模型一律用中文，英文观众看不懂。",
        "No rule says which language to reply in, so viewers who write in another one cannot read the replies.",
    ),
    "unanswered.rule": (
        "同时来了几条弹幕时，逐条回应，一条都不能漏。",
        "When several comments come at once, answer each of them.",
    ),
    "unanswered.hypothesis": (
        "约束里没有要求逐条回应，几条弹幕合在一起时模型只回了第一条。",
        "No rule asks to answer each comment, so the model answers only the first of several.",
    ),
    "statement.hypothesis": (
        "工具返回了需要的信息，但技能 {skill} 的回复要点没有要求说明{fields}，回复里就没有。",
        "The tool returned what was needed, but the skill {skill} does not tell to state {fields}.",
    ),
    "statement.refuted": (
        "如果回复要点写上这些字段之后回复里仍然没有，这个判断就不成立。",
        "It is wrong if the replies still lack these fields once the skill names them.",
    ),
    "state": ("说明 {fields}。", "State {fields}."),
    "step.hypothesis": (
        "技能 {skill} 已经加载，但调用 {tool} 的步骤带着条件，观众的说法没有满足条件，工具没有被调用。",
        "The skill {skill} was loaded, but its step that calls {tool} has a condition that was not met.",
    ),
    "step.refuted": (
        "如果每次都调用 {tool} 之后仍然没有说到这些信息，这个判断就不成立。",
        "It is wrong if the facts are still missing when {tool} is called every time.",
    ),
    "call": ("调用 `{tool}` 查{subject}。", "Call `{tool}` for {subject}."),
    "description.hypothesis": (
        "技能 {skill} 本来能回答，但它的描述里没有观众的说法，模型选了别的技能。",
        "The skill {skill} could have answered, but its description lacks viewers' words and another was chosen.",
    ),
    "description.refuted": (
        "如果描述写上这些说法之后仍然没有加载 {skill}，这个判断就不成立。",
        "It is wrong if {skill} is still not loaded once its description has these words.",
    ),
    "description.text": ("观众也会这样问：{phrases}。", "Viewers also ask: {phrases}."),
    "new_skill.hypothesis": (
        "没有技能会调用 {tool}，观众问{subject}时模型只好用别的技能，说不到点上。",
        "No skill calls {tool}, so for {subject} the model has to take another skill, which misses the point.",
    ),
    "new_skill.refuted": (
        "如果已有技能的步骤里就有 {tool}，只是没有被选中，这个判断就不成立。",
        "It is wrong if a skill calls {tool} already and merely was not chosen.",
    ),
    "new_skill.description": (
        "{subject}问答。观众问{topics}时使用{examples}。",
        "Questions on {subject}. Use it when viewers ask about {topics}{examples}.",
    ),
    "examples": ("，例如{phrases}", ", for example {phrases}"),
    "decline.hypothesis": (
        "没有工具能查到观众问的事，也没有技能说该怎么婉拒，模型硬用别的技能回答。",
        "No tool has what was asked and no skill says how to decline, so the model answered with another skill.",
    ),
    "decline.refuted": (
        "如果有工具能查到这些信息，这个判断就不成立。",
        "It is wrong if some tool does have this information.",
    ),
    "decline.description": (
        "直播间以外的问题。观众问和本场商品无关、主播帮不上忙的事时使用{examples}。",
        "Requests that are out of scope. Use it for what has nothing to do with our offer{examples}.",
    ),
    "decline.line": (
        "不好意思，这个主播这边帮不上忙，不方便回答，咱们还是看看直播间的商品，想了解哪个链接直接告诉我。",
        "Sorry, I can't help with that, let's get back to what we do here.",
    ),
    "script.line": ("话术：「{line}」", 'Script: "{line}"'),
    "script.for": ("话术（{phrases}）：「{line}」", 'Script ({phrases}): "{line}"'),
    "wider.hypothesis": (
        "没有工具能查到观众问的事，该由技能 {skill} 婉拒，但它的描述里没有这些说法。",
        "No tool has what was asked; {skill} should decline it, but its description lacks these words.",
    ),
    "script.hypothesis": (
        "技能 {skill} 的话术里没有适合这些弹幕的一句，模型只好说了别的。",
        "The skill {skill} has no line for these comments, so the model said something else.",
    ),
    "script.refuted": (
        "如果加上这些话术之后仍然说别的，这个判断就不成立。",
        "It is wrong if the model still says something else once these lines are there.",
    ),
    "model.hypothesis": (
        "技能已经要求说明这些信息，模型没有照做。",
        "The skill asks for this information already; the model did not do as told.",
    ),
    "model.rule": (
        "先回答观众直接问到的那一项，再补充别的。",
        "First answer what was asked, then add other things.",
    ),
    "model.refuted": (
        "如果技能没有要求说明这些信息，这个判断就不成立。",
        "It is wrong if the skill does not ask for this information.",
    ),
    "knowledge.hypothesis": (
        "工具返回的内容里没有这些信息，知识本身缺了。",
        "The tools did not return this information; the knowledge itself is missing.",
    ),
    "unknown.rule_missing": (
        "{hypothesis}约束里还没有一条说明这时该怎么办。",
        "{hypothesis} No rule says yet what to do then.",
    ),
    "judge_error.hypothesis": (
        "回复里有{said}，评测却说没有说到：是评测判错了，harness 没有问题。",
        "The replies do say {said}, which the judge calls missing: the judge is wrong, not the harness.",
    ),
    "judge_error.refuted": (
        "如果人工复核认为回复没有说清楚这一点，这个判断就不成立。",
        "It is wrong if people who read the replies find that they do not say it.",
    ),
    "bad_label.hypothesis": (
        "标注要求说{said}，同一条又禁止这样说：是标注自相矛盾，harness 没有问题。",
        "The label asks for {said} and forbids it in the same case: the label contradicts itself.",
    ),
    "bad_label.refuted": (
        "如果有一种说法能同时满足要求和禁止，这个判断就不成立。",
        "It is wrong if some reply can satisfy both the demand and the ban.",
    ),
    "search.hypothesis": (
        "现有技能的工具都没有返回这些信息，而能搜到的 {tool} 没有技能使用。",
        "None of the tools that skills call returned this, and no skill uses {tool}, which may have it.",
    ),
    "search.refuted": (
        "如果调用 {tool} 也搜不到这些信息，这个判断就不成立。",
        "It is wrong if {tool} does not find this information either.",
    ),
    "errors.hypothesis": (
        "{count} 个案例里 `{tool}` 报了错，例如「{error}」，模型没有先查清条件就调用，之后只是换着参数重试。",
        '{count} times `{tool}` was refused ("{error}"): called unchecked, then tried with other arguments.',
    ),
    "errors.rule": (
        "调用 `{tool}` 之前先用查询工具核对它的条件；报错之后先说明原因、问清楚，再试一次。",
        "Before calling `{tool}`, look up what it depends on; when it is refused, say why and ask.",
    ),
    "errors.refuted": (
        "如果这些报错和最后的结果无关，这个判断就不成立。",
        "It is wrong if the conversations end the same way when these errors do not happen.",
    ),
    "errors.name": ("`{tool}` 被拒绝后反复重试", "{tool}: refused, then tried again"),
    "writes.hypothesis": (
        "{count} 个案例用 `{tool}` 改了数据，结果不对：模型照用户说的做，没有逐条核对{policy}里的条件。",
        "{count} times `{tool}` changed data as the user said, the conditions of {policy} not checked one by one.",
    ),
    "writes.rule": (
        "调用 `{tool}` 之前，把{policy}里的条件和查到的数据逐条对照，有一条不符合就拒绝。",
        "Before calling `{tool}`, compare each condition of {policy} with the data; refuse if one is not met.",
    ),
    "writes.refuted": (
        "如果这些调用都符合规定，出错的是别的步骤，这个判断就不成立。",
        "It is wrong if these calls keep to the policy and another step went wrong.",
    ),
    "writes.name": ("`{tool}`：没有核对条件就改了数据", "{tool}: data changed without checking the conditions"),
    "transfer.hypothesis": (
        "{count} 个案例转给了别人处理，没有先试自己能做的操作。",
        "In {count} cases the conversation was handed over with `{tool}` before the agent did what it can do itself.",
    ),
    "transfer.rule": (
        "先把自己能做的操作做完；只有确实没有工具能处理时才调用 `{tool}`。",
        "Do what your own tools can do first; call `{tool}` only when none of them can handle the request.",
    ),
    "transfer.refuted": (
        "如果这些请求确实超出了能做的范围，这个判断就不成立。",
        "It is wrong if these requests really are outside what the agent can do.",
    ),
    "transfer.name": ("太早转人工", "Handed over too early"),
    "idle.hypothesis": (
        "{count} 个案例没有做任何改动就结束了，用户要的事没有办成。",
        "{count} cases end without any change to the data: the user's request was not carried out.",
    ),
    "idle.rule": (
        "结束之前把用户的请求逐条列出来，能办的都办完；不能办的说清楚是哪一条规定不允许。",
        "Before the end, carry out all that the policy allows of the request, and say which rule forbids the rest.",
    ),
    "idle.refuted": (
        "如果这些请求按规定就应当拒绝，这个判断就不成立。",
        "It is wrong if the policy does forbid these requests.",
    ),
    "idle.name": ("没有办成用户要的事", "Ended without doing what was asked"),
    "symptom.hypothesis": (
        "这些案例没有评测结论，也没有工具调用，只能从现象判断：{symptom}",
        "No judge's findings and no tool calls come with these cases; all there is to go by is the symptom: {symptom}",
    ),
    "symptom.rule": (
        "观众问{subject}时先调用 `{tool}` 核对，没有查到就说「这个我帮你核实一下」，不要凭印象回答。",
        'When asked about {subject}, call `{tool}` first; when it has no answer, say "let me check that".',
    ),
    "symptom.rule_any": (
        "回答之前把每个说法和查到的内容对照，对不上的不要说。",
        "Before answering, compare each statement with what was looked up, and leave out what does not agree.",
    ),
    "symptom.name": ("{subject}：现象不明", "{subject}: failures without findings"),
    "symptom.refuted": (
        "如果这些案例的首个错误步骤各不相同，它们就没有同一个原因。",
        "It is wrong if the first wrong step is a different one in each case.",
    ),
    "foreign.hypothesis": (
        "这 {count} 个案例看来出自别的智能体：调用的 {tools} 不是这个 harness 的工具，也没有加载它的技能，改它修不好。",
        "These {count} cases seem to be another agent's: they call {tools}, which this harness does not have.",
    ),
    "foreign.hypothesis_idle": (
        "这 {count} 个案例看来出自别的智能体：没有用到这个 harness 的工具和技能，改它修不好。",
        "These {count} cases seem to be another agent's: they use no tool and no skill of this harness.",
    ),
    "foreign.refuted": (
        "如果这些案例是这个 harness 的某个版本产生的，这个判断就不成立。",
        "It is wrong if some version of this harness produced these cases.",
    ),
    "foreign.name": ("别的智能体的案例：{about}", "Cases of another agent: {about}"),
    "symptom.unknown": ("原因不明的失败", "Failures of unknown cause"),
    "the_policy": ("相关规定", "the policy"),
    "section": ("「{name}」一节", 'the section "{name}"'),
    "name": ("{subject}：{failure}", "{subject}: {failure}"),
    "describe": (
        "{all} 个案例里有 {count} 个{failure}，例如弹幕{asked}。",
        "{count} of {all} cases: {failure}, for example {asked}.",
    ),
    "subject.any": ("直播间弹幕", "viewers' requests"),
    "forbidden_claim": ("说了不许说的承诺", "promises that must not be made"),
    "unsupported_claim": ("没有依据却不核实", "claims without evidence"),
    "not_returned": ("没查到却答了别的", "something else stated instead of checking"),
    "wrong_language": ("没有用观众的语言回复", "not in the viewer's language"),
    "unanswered": ("有弹幕没有回应", "comments left unanswered"),
    "decline": ("该婉拒的没有婉拒", "not declined as it should be"),
    "script": ("话术里没有合适的一句", "no fitting line to say"),
    "judge_error": ("评测判错", "judged wrongly"),
    "bad_label": ("标注自相矛盾", "labelled with a contradiction"),
    "missing": ("没有说到观众要的信息", "what was asked for is not stated"),
    "draft.summary": ("{hypothesis} 改动：{changes}", "{hypothesis} Changes: {changes}"),
    "draft.nothing": ("没有要改的", "Nothing to change"),
    "draft.nothing_because": ("{hypothesis} harness 里没有要改的。", "{hypothesis} There is nothing to change here."),
    "draft.not_understood": (
        "没有照办：{said}。演练编辑只会这些：{known}",
        "Not carried out: {said}. The rehearsal editor knows only: {known}",
    ),
    "draft.known": (
        "短一点；只改一个文件；把「甲」改成「乙」；删掉「甲」；改用钩子，或不用；加一条规则：……；在一行上：删掉这行。",
        'shorter; only one file; replace "a" with "b"; remove "a"; a hook, or none; add a rule: …; on a line: drop it.',
    ),
    "draft.effect": (
        "「{cluster}」应当修好，先看 {cases}。",
        'The cases of "{cluster}" should pass, first of all {cases}.',
    ),
    "draft.these": ("这一类", "these"),
    "draft.rule": ("在 {name} 增加规则", "Add a rule to {name}"),
    "draft.hook": ("新增钩子 {name}", "Add the hook {name}"),
    "draft.skill": ("新增技能 {name}", "Add the skill {name}"),
    "draft.amend": ("修改技能 {name} 的{section}", "Amend the {section} of the skill {name}"),
    "draft.rules_heading": ("约束", "Rules"),
    "draft.default_description": ("{name} 相关问题时使用。", "Use it for questions about {name}."),
    "risk.rule": (
        "约束又长了一条，排在前面的旧规则可能被忽略。",
        "The list of rules grows, and the model may overlook the older ones.",
    ),
    "risk.hook": (
        "正则可能拦下正常的回复，重说会增加延迟。",
        "The patterns may stop good replies, and each retry takes time.",
    ),
    "risk.skill": (
        "新技能的描述可能把别的问题也吸引过来。",
        "The new skill's description may attract other questions.",
    ),
    "risk.description": (
        "描述变宽之后可能抢走别的技能的问题。",
        "The wider description may take questions from other skills.",
    ),
    "risk.state": ("回复变长，可能超过字数限制。", "Replies get longer and may run over the limit."),
    "risk.steps": ("每次多一次工具调用，延迟会上升。", "One more tool call each time makes replies slower."),
    "risk.caution": (
        "技能正文变长，会占用模型的注意力。",
        "The skill's body gets longer, which takes the model's attention.",
    ),
    "risk.script": ("话术固定，遇到细分的问题会显得生硬。", "Fixed lines sound stiff when the question differs."),
}  # fmt: skip


def say(key: str, *, chinese: bool, **values: object) -> str:
    """The text of the key, filled in; KeyError for an unknown key or a value that is not given."""
    return TEXTS[key][0 if chinese else 1].format(**values)


def listed(phrases: Sequence[str], *, chinese: bool) -> str:
    """Quoted phrases as a list in a sentence."""
    if chinese:
        return "、".join(f"「{phrase}」" for phrase in phrases)
    return ", ".join(f'"{phrase}"' for phrase in phrases)
