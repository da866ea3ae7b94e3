"""Reads times in every form that exports use, as microseconds since the Unix epoch, UTC."""

import math
import re
from datetime import datetime, timezone

_MILLISECONDS_ABOVE = 2e10
"""Larger numbers are milliseconds, not seconds; as seconds this is the year 2603."""
_MICROSECONDS_ABOVE = 2e13
"""Larger numbers are microseconds; as milliseconds this is the year 2603."""
_MIN_MICROS = -62_135_596_800_000_000
_MAX_MICROS = 253_402_300_799_999_999

# The usual form, which native code parses.
_USUAL = re.compile(r"\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):\d\d:\d\d(?:\.\d{1,6})?Z", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_DATE_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[Tt _](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?(?:([Zz])|([+\-\u2212])(\d\d):?(\d\d))?)?",
    re.ASCII,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_EPOCH_DAY = datetime(1970, 1, 1).toordinal()


def time_of_text(text):
    """Parses the text of a time: `(micros, naive)`. `naive`: it has no offset, and UTC was assumed.

    `micros` is None for 0 and for other texts.
    """
    if _USUAL.fullmatch(text):
        try:
            since = datetime.fromisoformat(text) - _EPOCH
        except ValueError:
            return None, False
        return (since.days * 86400 + since.seconds) * 1_000_000 + since.microseconds, False
    if text[4:5] != "-":
        return (time_of_number(float(text)) if _NUMBER.fullmatch(text) else None), False
    match = _DATE_TIME.fullmatch(text)
    if match is None:
        return None, False
    year, month, day, hour, minute, second, fraction, zulu, sign, offset_hours, offset_minutes = match.groups("0")
    if int(offset_hours) > 23 or int(offset_minutes) > 59:
        return None, False
    try:
        date = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second))
    except ValueError:
        return None, False
    east = (1 if sign == "+" else -1) * (int(offset_hours) * 60 + int(offset_minutes))
    seconds = (date.toordinal() - _EPOCH_DAY) * 86400 + date.hour * 3600 + (date.minute - east) * 60 + date.second
    return _in_range(seconds * 1_000_000 + int(fraction[:6].ljust(6, "0"))), zulu == "0" and sign == "0"


def time_of_date(date):
    """Midnight (UTC) of a date `YYYY-MM-DD`, in microseconds, or None."""
    return time_of_text(f"{date}T00:00:00Z")[0] if re.fullmatch(r"\d{4}-\d\d-\d\d", date, re.ASCII) else None


def time_of_number(number, unit=None):
    """The time of a number: seconds, milliseconds or microseconds by its size, or in `unit` parts of a second."""
    try:
        number = float(number)
    except OverflowError:
        return None
    if unit is None:
        size = abs(number)
        unit = 1e6 if size > _MICROSECONDS_ABOVE else 1e3 if size > _MILLISECONDS_ABOVE else 1
    seconds = number / unit
    if seconds == 0 or not abs(seconds) <= 1e12:
        return None
    fraction, whole = math.modf(seconds)
    return _in_range(int(whole) * 1_000_000 + round(fraction * 1e6))


def _in_range(micros):
    return micros if _MIN_MICROS <= micros <= _MAX_MICROS else None
