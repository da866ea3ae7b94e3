"""Keys and evidence for records to which the provider gives no ids."""

from hashlib import sha256


def natural_key(parts):
    """A key for a record without an id, in a form that no provider's id has.

    `parts` must be the same in every export of the record: for example its account, its first time, its title and its first
    words. A part that is None is the same as an empty one. Importers in all languages give the same key.
    """
    return f"natural:{_sha256(''.join(map(_with_length, parts)))}"


def snapshot(series, items, at, locator):
    """Evidence of the complete list `items` that the provider had at `at` (microseconds since the Unix epoch, or None).

    Its id is made of the contents and the time, so a list that returns to an earlier state is new evidence.
    """
    text = ("" if at is None else str(at)) + "".join(f"\n{_with_length(item['content'])}" for item in items)
    return {
        "id": f"{series}#{_sha256(text)[:16]}",
        "claim": {"snapshot": {"series": series, "items": items}},
        "at": at,
        "extraction_method": "api_export",
        "locator": locator,
    }


def _with_length(part):
    """A part with its length in bytes in front, so that no other parts give the same text."""
    text = part or ""
    return f"{len(text.encode('utf-8', 'replace'))}:{text}"


def _sha256(text):
    return sha256(text.encode("utf-8", "replace")).hexdigest()
