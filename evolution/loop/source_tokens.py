"""Before stage 1: tokens that sources push with. Only a digest is kept of one."""

import hashlib
import secrets

# So that a token is known for one wherever it stands; the masking rules look for it.
PREFIX = "hwb_"
# Characters of a token that people are shown to tell it by.
HINT = 8


def make_token() -> str:
    """A token that nobody can guess."""
    return PREFIX + secrets.token_urlsafe(32)


def digest_token(token: str) -> str:
    """What is kept of a token; it is random and long, so that nothing slower is needed."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
