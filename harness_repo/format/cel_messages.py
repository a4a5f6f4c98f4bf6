"""What the CEL library says of an expression, in plain words: its own messages name classes of Python."""

import re

_TYPES = {
    "BoolType": "true or false",
    "BytesType": "bytes",
    "DoubleType": "a number",
    "DurationType": "a duration",
    "IntType": "a whole number",
    "ListType": "a list",
    "MapType": "an object",
    "MessageType": "an object",
    "NoneType": "null",
    "StringType": "a text",
    "TimestampType": "a time",
    "TypeType": "a type",
    "UintType": "a whole number",
    "bool": "true or false",
    "int": "a whole number",
    "str": "a text",
}
_OPERATORS = {
    "addition_add": "+",
    "addition_sub": "-",
    "multiplication_div": "/",
    "multiplication_mod": "%",
    "multiplication_mul": "*",
    "relation_eq": "==",
    "relation_ge": ">=",
    "relation_gt": ">",
    "relation_in": "in",
    "relation_le": "<=",
    "relation_lt": "<",
    "relation_ne": "!=",
    "unary_neg": "-",
    "unary_not": "!",
    "_&&_": "&&",
    "_||_": "||",
    "_?_:_": "? :",
}
_FIXED = {
    "invalid_argument": "a list has nothing at that place",
    "match error": "a pattern is broken",
    "modulus or divide by zero": "a division by zero",
    "no such overload": "a function cannot be used with these values",
    "return error for overflow": "a value is out of range, or cannot be converted",
}

_NO_OVERLOAD = re.compile(
    r"found no matching overload for (?:Token\('RULE', '(\w+)'\)|(\S+)) applied to (.*)", re.DOTALL
)
_UNDECLARED = re.compile(r"undeclared reference to '([^']*)'")
_NO_MEMBER = re.compile(r"no such (?:member in mapping|key): '?([^']*)'?")
_NO_FIELDS = re.compile(r"with type: '<class '([^']*)'>' does not support field selection")
_CLASS = re.compile(r"<class '([^']*)'>")


def type_in_words(name: str) -> str:
    """The name of a class of the library's as a person says it."""
    return _TYPES.get(name.rpartition(".")[2], "a value of another kind")


def in_words(message: str) -> str:
    """A message of the library's without its internals, on one line."""
    found = _NO_OVERLOAD.match(message)
    if found:
        operator = _OPERATORS.get(found[1] or found[2], found[1] or found[2])
        classes = _CLASS.findall(found[3])
        if any(name.endswith("CELEvalError") for name in classes):
            return f"what stands beside {operator} fails on these values"
        kinds = " and ".join(map(type_in_words, classes))
        return f"{operator} cannot be used with {kinds}"[:300]
    if found := _UNDECLARED.search(message):
        return f"nothing is called {found[1]!r}"
    if found := _NO_MEMBER.search(message):
        return f"there is no {found[1][:100]!r} in the object"
    if found := _NO_FIELDS.search(message):
        return f"{type_in_words(found[1])} has no fields"
    return _FIXED.get(message, "it fails on these values")
