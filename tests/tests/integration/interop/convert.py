"""Runs `pam convert` over many folders in one process: a line `at<TAB>folder` on stdin for each.

What it can read becomes the bundle <first argument>/<at>-<number>; a line of JSON after U+001E says how each ended.
"""

import json
import pathlib
import sys

from portable_ai_memory.cli._convert import convert

for number, line in enumerate(sys.stdin.read().splitlines()):
    at, folder = line.split("\t")
    bundle = pathlib.Path(sys.argv[1]) / f"{at}-{number}"
    try:
        convert(source=pathlib.Path(folder), output=bundle, owner_id="unknown", provider=None)
        error = None
    except BaseException as raised:  # the command ends by an exception of its own
        error = f"{type(raised).__name__}: {raised}"
    print("\x1e" + json.dumps({"at": at, "bundle": str(bundle), "error": error}))
