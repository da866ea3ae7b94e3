"""What an importer in Python uses. See README.md in the folder above."""

from .array import ELEMENT_LIMIT, JsonArray, WalkOutcome
from .bundle import Bundle, Entry
from .errors import ImporterError
from .evidence import natural_key, snapshot
from .leftover import Leftover
from .sink import Sink
from .times import time_of_date, time_of_number, time_of_text

__all__ = [
    "ELEMENT_LIMIT", "Bundle", "Entry", "ImporterError", "JsonArray", "Leftover", "Sink", "WalkOutcome",
    "natural_key", "snapshot", "time_of_date", "time_of_number", "time_of_text",
]
