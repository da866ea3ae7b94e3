"""Writes JSON and text without what other parsers refuse: lone surrogates, and numbers beyond the range of a double."""

import json
import math
import re

_SURROGATES = re.compile("[\ud800-\udfff]")

_encode = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":"), default=list
).encode


def line_of(value):
    """The JSON text of a value, on one line."""
    try:
        text = _encode(value)
    except ValueError:
        text = _encode(_finite(value))
    return text if text.isascii() else well_formed(text)


def well_formed(text):
    """The text with U+FFFD in place of lone surrogates."""
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        return _SURROGATES.sub("\ufffd", text)


def _finite(value):
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _finite(member) for key, member in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value
