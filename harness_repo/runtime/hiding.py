"""Keeps secrets out of what is recorded and told: a server sends back what it was sent, in a form of its own.

Hide first and cut afterwards: half a secret is not found any more.
"""

import base64
import functools
import html
from collections.abc import Sequence

import regex

HIDDEN = "***"
# Of one text and one secret.
SECONDS = 1.0
# Shorter texts, and so their base64, stand anywhere by chance.
_LEAST_ENCODED = 8


def hide(text: str, secrets: Sequence[str]) -> str:
    """The text with "***" for each secret, in whatever form it stands there.

    Found are the secret itself and its characters escaped as in JSON (also twice), percent-encoded (also twice), as
    HTML entities, with other blank space in place of its own, and its base64. What a server has cut off, turned around
    or encoded in another way is not. Longest first, so that a secret that contains another one goes as a whole.
    """
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        try:
            text = _pattern(secret).sub(HIDDEN, text, timeout=SECONDS)
        except TimeoutError:
            return HIDDEN
    return text


def hide_secrets(value: object, secrets: Sequence[str]) -> object:
    """The JSON value without the secrets, in its keys too."""
    if not secrets:
        return value
    if isinstance(value, str):
        return hide(value, secrets)
    if isinstance(value, dict):
        return {hide_secrets(key, secrets): hide_secrets(inner, secrets) for key, inner in value.items()}
    if isinstance(value, list):
        return [hide_secrets(inner, secrets) for inner in value]
    return HIDDEN if str(value) in secrets else value


@functools.lru_cache(maxsize=256)
def _pattern(secret: str) -> regex.Pattern[str]:
    parts = ["".join(_forms(part) if part.strip() else _BLANKS for part in regex.findall(r"\s+|\S", secret))]
    if len(secret) >= _LEAST_ENCODED:
        parts += map(regex.escape, _base64_forms(secret.encode()))
    return regex.compile("|".join(parts))


# A backslash, which is escaped itself when a text is escaped once more; so often at most.
_BACKSLASH = r"(?:\\|%(?:25)?5[cC])"
_BLANKS = rf"(?:\s|\+|%(?:25)?20|{_BACKSLASH}{{1,7}}(?:[nrt]|u0020)|&nbsp;)+"


def _forms(character: str) -> str:
    """A pattern of all the ways in which one visible character is written."""
    code = ord(character)
    entities = {html.escape(character), *(["&apos;"] if character == "'" else [])} - {character}
    forms = [
        regex.escape(character),
        rf"%(?:25)*(?i:{code:02x})",
        rf"{_BACKSLASH}{{1,7}}u(?i:{code:04x})",
        rf"&#0*{code};",
        rf"&#[xX]0*(?i:{code:x});",
        *map(regex.escape, sorted(entities)),
    ]
    # JSON's escape of ", \ and /, which grows with each time that it is escaped again.
    escaped = f"{_BACKSLASH}{{0,7}}" if character in "\"/'" else ""
    if character == "\\":
        forms[0] = f"{_BACKSLASH}{{1,8}}"
    return f"{escaped}(?:{'|'.join(forms)})"


def _base64_forms(secret: bytes) -> list[str]:
    """What of the secret's base64 does not depend on what stands before and after it, for each way to fall."""
    forms = []
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + secret).decode().rstrip("=")
        first = -(-before * 8 // 6)
        last = (before + len(secret)) * 8 // 6
        forms += [encoded[first:last], encoded[first:last].translate(str.maketrans("+/", "-_"))]
    return forms
