"""Validates bundles by the official SDK, as `pam validate` does, and their embeddings too; one folder or ZIP a line on the input."""

import json
import pathlib
import sys
import zipfile

from portable_ai_memory.core.io import load_dict
from portable_ai_memory.core.validator import validate, validate_embeddings


def errors(path):
    """What the SDK refuses in a bundle."""
    found = []
    folder = path if path.is_dir() else zipfile.Path(path)
    conversations = folder / "conversations"
    files = [folder / "memory-store.json"]
    if conversations.exists():
        files += sorted(conversations.iterdir(), key=lambda file: file.name)
    documents = []
    for file in files:
        try:
            documents.append(load_dict(json.loads(file.read_text(encoding="utf-8"))))
        except Exception as problem:  # what pydantic raises has many names
            found.append(f"{file.name}: {problem}")
            continue
        found += [f"{file.name}: {issue}" for issue in validate(documents[-1]).errors]
    embeddings = folder / "embeddings.json"
    if embeddings.exists() and not found:
        document = load_dict(json.loads(embeddings.read_text(encoding="utf-8")))
        found += [f"embeddings.json: {issue}" for issue in validate_embeddings(document, documents[0]).errors]
    return found


def main():
    problems = {}
    for line in sys.stdin:
        found = errors(pathlib.Path(line.rstrip("\n")))
        if found:
            problems[line.rstrip("\n")] = found
    print(json.dumps(problems, indent=1, ensure_ascii=False))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
