"""Reads the fields of an object, and collects those that have no place in PAM, verbatim, for `raw_metadata`."""

import json

from .times import time_of_number, time_of_text

_MAX_LEVELS = 90
"""Deepest nesting in `raw_metadata`; a deeper value is kept as its JSON text. Satchel accepts 100 levels."""


class Leftover:
    """The fields of one object.

    The typed methods take a known field: they return its value, treat null as absent, and leave a value of any other type
    among the rest instead of failing. All return None for an absent field. `into_json` returns what was not taken.
    """

    def __init__(self, value):
        """`value` is a parsed value; anything but an object has no fields."""
        self._rest = dict(value) if isinstance(value, dict) else {}

    def text(self, key):
        """Takes a string."""
        value = self._rest.get(key)
        return self._rest.pop(key) if isinstance(value, str) else None

    def nonempty_text(self, key):
        """Takes a string that is not empty; an empty one counts as absent. For ids and the like."""
        return self.text(key) or None

    def number(self, key):
        """Takes a number."""
        value = self._rest.get(key)
        return self._rest.pop(key) if type(value) in (int, float) else None

    def count(self, key):
        """Takes a non-negative integer."""
        value = self._rest.get(key)
        return self._rest.pop(key) if type(value) is int and value >= 0 else None

    def bool(self, key):
        """Takes a boolean."""
        value = self._rest.get(key)
        return self._rest.pop(key) if value is True or value is False else None

    def object(self, key):
        """Takes an object."""
        value = self._rest.get(key)
        return self._rest.pop(key) if isinstance(value, dict) else None

    def array(self, key):
        """Takes an array."""
        value = self._rest.get(key)
        return self._rest.pop(key) if isinstance(value, list) else None

    def time(self, key):
        """Takes a time, as microseconds since the Unix epoch.

        It may be an RFC 3339 date-time; seconds, milliseconds or microseconds as a number or a text; or the `{"$date": …}`
        of BSON. 0 is no time. A date-time without an offset is read as UTC and also kept; any other value is kept.
        """
        value = self._rest.get(key)
        micros, naive = time_of_text(value) if isinstance(value, str) else (_time_of_value(value), False)
        if micros is not None and not naive:
            del self._rest[key]
        return micros

    def value(self, key):
        """Takes a value of any type."""
        return self._rest.pop(key, None)

    def add(self, key, value):
        """Adds a derived value to the rest."""
        self._rest[key] = value

    def into_json(self):
        """Everything that was not taken, except null and `{}`, or None if there is nothing: for `raw_metadata`."""
        if not self._rest:
            return None
        rest = {key: _kept(value) for key, value in self._rest.items() if value is not None and value != {}}
        return rest or None


def _kept(value):
    if isinstance(value, (dict, list)) and _is_deeper_than(value, _MAX_LEVELS):
        return json.dumps(value, ensure_ascii=False)
    return value


def _is_deeper_than(value, limit):
    if not isinstance(value, (dict, list)):
        return False
    if limit <= 0:
        return True
    items = value.values() if isinstance(value, dict) else value
    return any(_is_deeper_than(item, limit - 1) for item in items)


def _time_of_value(value):
    if type(value) in (int, float):
        return time_of_number(value)
    date = value.get("$date") if isinstance(value, dict) else None
    if isinstance(date, str):
        return time_of_text(date)[0]
    millis = date.get("$numberLong") if isinstance(date, dict) else date
    try:
        # Numbers in BSON are milliseconds.
        return None if isinstance(millis, bool) else time_of_number(float(millis) / 1e3, 1)
    except (TypeError, ValueError):
        return None
