"""How long a text is in tokens, as far as that can be said without the model's own tokenizer."""

import re

# Chinese, Japanese and Korean characters, and their punctuation.
WIDE = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]")
# Of the tokenizers of today's large models; within a fifth on prose and JSON, in both languages.
TOKENS_PER_WIDE = 0.7
CHARACTERS_PER_TOKEN = 4


def estimate_tokens(text: str) -> int:
    """Tokens of a text, by its characters: 0.7 for each Chinese one, a quarter for any other; rounded up."""
    wide = len(WIDE.findall(text))
    return -int(-(wide * TOKENS_PER_WIDE + (len(text) - wide) / CHARACTERS_PER_TOKEN) // 1)
