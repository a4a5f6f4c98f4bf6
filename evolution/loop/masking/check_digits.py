"""Check digits, by which a number that identifies somebody is told from one that only looks so."""

_CN_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_CN_DIGITS = "10X98765432"


def passes_luhn(text: str) -> bool:
    """Say whether the digits of the text end in the right check digit (ISO/IEC 7812-1, annex B)."""
    digits = [int(character) for character in text if character.isdecimal()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    # A row of zeros passes the sum, and is nobody's card.
    return any(digits) and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def passes_cn_id(text: str) -> bool:
    """Say whether an 18-character Chinese id number ends in the right check character (GB 11643-1999)."""
    number = [character for character in text.upper() if character.isdecimal() or character == "X"]
    if len(number) != 18 or "X" in number[:17]:
        return False
    weighted = sum(int(digit) * weight for digit, weight in zip(number[:17], _CN_WEIGHTS, strict=True))
    return _CN_DIGITS[weighted % 11] == number[17].translate(_PLAIN)


_PLAIN = {0xFF10 + digit: str(digit) for digit in range(10)}
