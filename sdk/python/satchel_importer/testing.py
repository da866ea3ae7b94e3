"""Runs an importer on a folder of files, without Satchel: for `python -m unittest`."""

from pathlib import Path

from .bundle import Bundle
from .errors import ImporterError
from .sink import Sink


def bundle_of(folder):
    """A bundle of all files below `folder`."""
    folder = Path(folder)
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return Bundle.from_files(files)


def produce(importer, bundle):
    """What `detect` and `run` give for `bundle`: the content of `expected.json`."""
    return [_export(importer, bundle, detection) for detection in importer.detect(bundle)]


def _export(importer, bundle, detection):
    sink = Sink.collecting()
    export = {"account": None, **detection}
    try:
        importer.run(detection["format"], bundle.only(detection["files"]), sink)
    except Exception as error:
        error = ImporterError.of(error)
        kind = error.kind.title().replace("-", "")
        export["error"] = {"kind": kind, "message": error.message, "locator": error.locator}
    return {**export, "lines": [_without_none(line) for line in sink.lines()]}


def _without_none(value):
    if isinstance(value, dict):
        return {key: _without_none(member) for key, member in value.items() if member is not None}
    return [_without_none(item) for item in value] if isinstance(value, list) else value
