"""The rehearsal model: a deterministic program behind the ChatModel protocol, for learning, tests and
demonstrations.

It sees the chat request and nothing else: no expected facts, no case keys, no answers stored anywhere. The
same request always brings the same reply. Its role is the model's name.

`rehearsal-policy` behaves like a mediocre LLM that follows the harness it is given:

1. It reads from the prompt: the skill index (items `- name (reply): description` below a heading of
   skills), the room's current link, the shelf, the FAQ, the danmaku, and the rules, which are list items
   below headings such as 约束, 规则, 要求, 注意, Rules, Constraints, in the system prompt and in loaded
   skills, and the items of hook messages.
2. It loads the skill that is lexically closest to the danmaku (`text.Index`: bigrams, words, and the
   meanings of a small thesaurus of everyday shopping talk, `lexicon`); below a threshold the one that calls
   itself general, 通用. With a strategy skill it loads the closest reply skill too.
3. It calls the tools that the loaded bodies name; a line with a condition (如果问到…，) only if the danmaku
   is about it. Arguments come from the JSON schema: links by number, product name or the current one, enum
   values by their documented passage, places, or the danmaku itself.
4. It states the fields that the body tells to state (说明 final_price（券后价）), labelled from the tool's
   documentation, at most three and the asked ones first; says the script line whose condition fits best
   (话术（…）：「…{field}…」) instead if there is one; without either the first two fields. On half of the
   danmaku it notices a field that no skill names but that is asked for. A merchant's question that is close
   is answered with its answer. What failed, is empty, or is not about what was asked, it verifies (核实) if an
   attended rule says so; else it invents. How it is worded is `speech`'s.
5. It over-promises out of habit on some 60 % of the danmaku of a topic (`habits`; a coin by digest), unless
   an attended rule with a negation quotes such words, or names the topic without quoting.
6. It answers only the first of several danmaku, and in Chinese, unless attended rules say otherwise.
7. Attention is limited: `rules.ATTENTION` rules count, newest first: hook messages, loaded skills, then the
   system prompt's rules from its end. New rules push old ones out, and what those prevented comes back.
   Hooks cost none.

`rehearsal-judge` loads the rubrics, then compares the reply with the material of its prompt (`judge`).
Absolute promises that no tool, FAQ entry or room state makes are unsupported, listed or not (`promises`).
`rehearsal-diagnoser` follows each case's findings to the part that let it happen (`causes`), and plans
changes for the most frequent cause, and for further ones of two cases or more as long as they need no new
file (`plans`, `skill_plans`). Without findings it goes by the tool calls: refused ones, changes of data,
hand-overs; cases that use no tool and no skill of the harness are another agent's, and nothing is changed
for them (`conversations`). `rehearsal-editor` carries out the change sentences (`sentences`). On a
reviewer's feedback it reads its draft back from the files (`redraft`), makes of it what is asked: other
words, one file, a hook, shorter (`feedback`, `shortening`), and replaces its own lines (`editor`). Both
write in the language of the harness's prompts (`wording`). `rehearsal-user` plays the user of a conversation: it
brings up the parts of its goal in order, and leaves when the last is answered, or one is refused (`user`).

Tokens and latency are estimates from the lengths (`model`); nothing sleeps.
"""

from evolution.adapters.rehearsal.model import RehearsalModel

__all__ = ["RehearsalModel"]
