#!/usr/bin/env python3
"""Verifies PAM bundles and merges them, by the text of Portable AI Memory 1.0: a second implementation to compare with.

    merge.py BASE [DELTA …]     each a folder or a .zip with memory-store.json
    merge.py --vectors FILE     a file of merge cases or of signatures, as in sdk/pam/vectors

Prints one JSON document; ends with 1 if anything is wrong. Needs Python 3.11, `rfc8785` and `cryptography`.
"""

import base64
import collections
import datetime
import hashlib
import json
import pathlib
import sys
import zipfile

import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

# §18.2: the hash of each algorithm; Ed25519 has its own.
HASHES = {
    "Ed25519": None,
    "ES256": hashes.SHA256(),
    "ES384": hashes.SHA384(),
    "RS256": hashes.SHA256(),
    "RS384": hashes.SHA384(),
    "RS512": hashes.SHA512(),
}
CURVES = {"P-256": ec.SECP256R1, "P-384": ec.SECP384R1}
BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
RSA_BITS = range(2048, 8193)
# §7.1; what is not here is final.
MAY_BECOME = {
    "active": {"superseded", "deprecated", "retracted", "archived"},
    "superseded": {"archived"},
    "deprecated": {"retracted", "archived"},
}


class Unsupported(Exception):
    """Something that cannot be checked, which is not the same as wrong."""


# ---- §15: the checksum

def sha256(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def checksum(memories):
    # Python orders strings by code point, as §15.2 wants; the sort is stable.
    return sha256(rfc8785.dumps(sorted(memories, key=lambda memory: memory["id"])))


# ---- §18: keys and signatures

def unpadded(text):
    """base64url with or without padding (A-18); `b64decode` would ignore what does not belong."""
    if not all(letter.isascii() and (letter.isalnum() or letter in "-_") for letter in text.rstrip("=")):
        raise ValueError("not base64url")
    text = text.rstrip("=")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def base58(text):
    number = 0
    for letter in text:
        number = number * 58 + BASE58.index(letter)
    return bytes(len(text) - len(text.lstrip("1"))) + number.to_bytes((number.bit_length() + 7) // 8, "big")


def from_jwk(jwk):
    whole = lambda name: int.from_bytes(unpadded(jwk[name]), "big")
    if jwk["kty"] == "OKP" and jwk["crv"] == "Ed25519":
        return ed25519.Ed25519PublicKey.from_public_bytes(unpadded(jwk["x"]))
    if jwk["kty"] == "EC" and jwk["crv"] in CURVES:
        return ec.EllipticCurvePublicNumbers(whole("x"), whole("y"), CURVES[jwk["crv"]]()).public_key()
    if jwk["kty"] == "RSA":
        return from_rsa(whole("n"), whole("e"))
    raise ValueError("a JWK of another kind")


def from_rsa(modulus, exponent):
    if modulus.bit_length() not in RSA_BITS:
        raise (Unsupported if modulus.bit_length() > RSA_BITS[-1] else ValueError)("RSA of another size")
    return rsa.RSAPublicNumbers(exponent, modulus).public_key()


def from_multibase(text):
    codec, key = (lambda raw: (raw[:2], raw[2:]))(base58(text[1:]))
    if codec == b"\xed\x01":
        return ed25519.Ed25519PublicKey.from_public_bytes(key)
    if codec == b"\x80\x24":
        return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), key)
    if codec == b"\x81\x24":
        return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP384R1(), key)
    if codec == b"\x85\x24":
        # PKCS #1: SEQUENCE of two INTEGERs, which PEM of that kind holds.
        body = base64.encodebytes(key).decode()
        return from_pem(f"-----BEGIN RSA PUBLIC KEY-----\n{body}-----END RSA PUBLIC KEY-----\n")
    raise ValueError("a multicodec of another kind")


def from_pem(text):
    key = serialization.load_pem_public_key(text.encode())
    if isinstance(key, rsa.RSAPublicKey):
        numbers = key.public_numbers()
        return from_rsa(numbers.n, numbers.e)
    return key


def public_key(text):
    text = text.strip()
    if text.startswith("{"):
        return from_jwk(json.loads(text))
    if text.startswith("-----BEGIN PUBLIC KEY-----"):
        return from_pem(text)
    if text.startswith("did:key:"):
        return from_multibase(text.removeprefix("did:key:").split("#")[0])
    if text.startswith("z") and len(text) > 44:
        return from_multibase(text)
    try:
        raw = base58(text)
    except ValueError:
        raw = b""
    return ed25519.Ed25519PublicKey.from_public_bytes(raw if len(raw) == 32 else unpadded(text))


def check_signature(algorithm, key, data, signature):
    """Raises InvalidSignature or ValueError if it does not hold."""
    if algorithm == "Ed25519" and isinstance(key, ed25519.Ed25519PublicKey):
        return key.verify(signature, data)
    if algorithm.startswith("ES") and isinstance(key, ec.EllipticCurvePublicKey):
        if key.curve.name != {"ES256": "secp256r1", "ES384": "secp384r1"}[algorithm]:
            raise ValueError("the key is of another curve")
        half = key.curve.key_size // 8
        if len(signature) == 2 * half:
            # r and s side by side, else DER.
            numbers = int.from_bytes(signature[:half], "big"), int.from_bytes(signature[half:], "big")
            signature = encode_dss_signature(*numbers)
        return key.verify(signature, data, ec.ECDSA(HASHES[algorithm]))
    if algorithm.startswith("RS") and isinstance(key, rsa.RSAPublicKey):
        return key.verify(signature, data, padding.PKCS1v15(), HASHES[algorithm])
    raise ValueError("the key is of another algorithm")


def signature_state(block, payload):
    """`valid`, `invalid: …` or `unsupported: …`, of the strings as they stand (A-17)."""
    try:
        if block.get("algorithm") not in HASHES:
            raise Unsupported(f"algorithm {block.get('algorithm')!r}")
        if "." in block["value"]:
            raise Unsupported("a JWS")
        if not all(payload.values()):
            raise ValueError("something that is signed is missing")
        key = public_key(block["public_key"])
        check_signature(block["algorithm"], key, rfc8785.dumps(payload), unpadded(block["value"]))
        return "valid"
    except Unsupported as problem:
        return f"unsupported: {problem}"
    except InvalidSignature:
        return "invalid: not of this key over this content"
    except Exception as problem:  # what a library raises over hostile keys is not documented
        return f"invalid: {problem}"


def payload_of(store):
    return {
        "checksum": (store.get("integrity") or {}).get("checksum"),
        "export_id": store.get("export_id"),
        "export_date": store.get("export_date"),
        "owner_id": store["owner"]["id"],
    }


# ---- bundles

class Bundle:
    """The files of a folder or an archive."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.zip = zipfile.ZipFile(self.path) if self.path.is_file() else None
        if self.zip:
            names = [name for name in self.zip.namelist() if not name.endswith("/")]
        else:
            names = [one.relative_to(self.path).as_posix() for one in self.path.rglob("*") if one.is_file()]
        # A bundle may stand in a folder of its own.
        stores = sorted((name for name in names if name.split("/")[-1] == "memory-store.json"), key=len)
        if not stores:
            raise SystemExit(f"{path}: there is no memory-store.json")
        self.root = stores[0].removesuffix("memory-store.json")
        self.names = {name.removeprefix(self.root) for name in names if name.startswith(self.root)}

    def read(self, name):
        return self.zip.read(self.root + name) if self.zip else (self.path / self.root / name).read_bytes()


def verify(bundle):
    """The store, and what is wrong with the bundle."""
    store = json.loads(bundle.read("memory-store.json"))
    problems = verify_store(store)
    state = signature_state(store["signature"], payload_of(store)) if store.get("signature") else "absent"
    if state.startswith("invalid"):
        problems.append("signature " + state)
    if "satchel-manifest.json" in bundle.names:
        problems += verify_manifest(bundle, store, state)
    return store, state, problems


def verify_store(store):
    integrity = store.get("integrity")
    if not integrity:
        return ["signed without a checksum"] if store.get("signature") else []
    problems = []
    if checksum(store["memories"]) != integrity["checksum"]:
        problems.append("the checksum is not of the memories")
    if integrity["total_memories"] != len(store["memories"]):
        problems.append("total_memories is not how many there are")
    return problems


def verify_manifest(bundle, store, state):
    own = {"satchel-manifest.json", "satchel-manifest.sig"}
    manifest = bundle.read("satchel-manifest.json")
    listed = {file["path"]: file["sha256"] for file in json.loads(manifest)["files"]}
    problems = [f"{name} is missing" for name in sorted(listed.keys() - bundle.names)]
    problems += [f"{name} was added" for name in sorted(bundle.names - listed.keys() - own)]
    for name in sorted(listed.keys() & bundle.names):
        if sha256(bundle.read(name)) != listed[name]:
            problems.append(f"{name} was changed")
    if state == "valid":
        try:
            signature = unpadded(bundle.read("satchel-manifest.sig").decode().strip())
            block = store["signature"]
            check_signature(block["algorithm"], public_key(block["public_key"]), manifest, signature)
        except (InvalidSignature, ValueError, KeyError, OSError) as problem:
            problems.append(f"the manifest's signature does not hold: {problem!r}")
    return problems


# ---- §16.3: merging

def time(text):
    return datetime.datetime.fromisoformat(text)


def changed_at(memory):
    times = [memory["temporal"].get("updated_at"), (memory.get("confidence") or {}).get("last_reinforced")]
    return max(time(text) for text in [memory["temporal"]["created_at"], *times] if text)


def by_time(held, came):
    return "older" if came < held else "newer" if came > held else "same_time"


def judge(held, came):
    """Rules 3 and 5 of §16.3, A-26 and A-27."""
    if held is None:
        return "unknown"
    if rfc8785.dumps(held) == rfc8785.dumps(came):
        return "equal"
    if held["status"] == "retracted" != came["status"]:
        return "stays_retracted"
    if came["status"] == "retracted" != held["status"]:
        return "retracts"
    return by_time(changed_at(held), changed_at(came))


def judge_relation(held, came):
    if held is None:
        return "unknown"
    if held == came:
        return "equal"
    return by_time(time(held["created_at"]), time(came["created_at"]))


def united(held, entry):
    derived = held.get("derived_memories", [])
    more = [one for one in entry.get("derived_memories", []) if one not in derived]
    # An incremental export has no file of a conversation that only its base has.
    kept = {key: held[key] for key in ("title", "message_count", "storage") if held.get(key) is not None}
    told = {key: value for key, value in entry.items() if value is not None}
    return {**kept, **told, "derived_memories": derived + more}


def judge_entry(held, came):
    if held is None:
        return "unknown"
    if held == united(held, came):
        return "equal"
    last = lambda entry: max(time(text) for text in entry["temporal"].values() if text)
    return by_time(last(held), last(came))


WRITES = {"unknown", "newer", "same_time", "retracts"}


class Store:
    """What is held, by id, and which exports were applied."""

    def __init__(self):
        self.owner = None
        self.exports = {}
        self.memories, self.relations, self.index = {}, {}, {}

    def refusal(self, document):
        """Rules 1 and 2 of §16.3, and that owners match (A-25)."""
        if self.owner not in (None, document["owner"]["id"]):
            return "owner"
        kind = document.get("export_type", "full")
        if kind == "full" or self.exports.get(document.get("export_id")) == kind:
            return None
        base = document.get("base_export_id")
        if not base:
            return "no_base"
        return None if base in self.exports else "unknown_base"

    def merge(self, document):
        """What was done with each record, by kind and id; or why nothing was."""
        refused = self.refusal(document)
        if refused:
            return {"refused": refused}
        self.owner = document["owner"]["id"]
        if document.get("export_id"):
            self.exports[document["export_id"]] = document.get("export_type", "full")
        done = {"refused": None, "memories": {}, "relations": {}, "index": {}, "jumps": []}
        for memory in document["memories"]:
            held = self.memories.get(memory["id"])
            reason = self.take(done["memories"], self.memories, memory, judge)
            arrow = (held or memory)["status"], memory["status"]
            if reason in WRITES and arrow[0] != arrow[1] and arrow[1] not in MAY_BECOME.get(arrow[0], ()):
                done["jumps"].append(memory["id"])
        for relation in document.get("relations", []):
            self.take(done["relations"], self.relations, relation, judge_relation)
        for entry in document.get("conversations_index", []):
            self.take(done["index"], self.index, entry, judge_entry, united)
        return done

    @staticmethod
    def take(done, held, record, decide, unite=lambda _, record: record):
        """Of records with one id in one document the first counts."""
        at = record["id"]
        if at in done:
            done[at] += ", repeated"
            return "repeated"
        reason = done[at] = decide(held.get(at), record)
        if reason in WRITES:
            held[at] = unite(held[at], record) if at in held else record
        return reason

    def summary(self):
        return {
            "checksum": checksum(self.memories.values()),
            "total_memories": len(self.memories),
            "statuses": dict(sorted(collections.Counter(one["status"] for one in self.memories.values()).items())),
            "relations": sorted(self.relations),
            "conversations": {at: one.get("derived_memories", []) for at, one in sorted(self.index.items())},
        }


# ---- the two ways to run it

def run_case(case):
    store = Store()
    done = []
    for document in case["documents"]:
        problems = verify_store(document)
        done.append({**store.merge(document), "problems": problems})
    return {"done": done, "held": store.summary()}


def run_signatures(vectors):
    """Every case that does not end as the file says."""
    wrong = []
    for case in vectors["valid"]:
        for form, key in case["public_key"].items():
            for value in case["values"]:
                block = {"algorithm": case["algorithm"], "public_key": key, "value": value}
                state = signature_state(block, vectors["payload"])
                if state != "valid":
                    wrong.append(f"{case['name']}, {form}: {state}")
    for case in vectors["refused"]:
        state = signature_state(case, vectors["payload"])
        if state.split(":")[0] != case["outcome"]:
            wrong.append(f"{case['name']}: {state}")
    return wrong


def run_vectors(file):
    vectors = json.loads(pathlib.Path(file).read_bytes())
    if "cases" not in vectors:
        return {"cases": len(vectors["valid"]) + len(vectors["refused"]), "problems": run_signatures(vectors)}
    problems = []
    for case in vectors["cases"]:
        found = run_case(case)
        for part in ("done", "held"):
            if found[part] != case["expected"][part]:
                problems.append({"case": case["name"], "part": part, "found": found[part]})
    return {"cases": len(vectors["cases"]), "problems": problems}


def run_bundles(paths):
    store, documents = Store(), []
    for path in paths:
        document, signature, problems = verify(Bundle(path))
        done = store.merge(document)
        if done["refused"]:
            problems.append(f"refused: {done['refused']}")
        counts = {
            kind: dict(sorted(collections.Counter(done[kind].values()).items()))
            for kind in ("memories", "relations", "index")
            if kind in done
        }
        documents.append({"bundle": str(path), "signature": signature, "done": counts, "problems": problems})
    problems = [problem for document in documents for problem in document["problems"]]
    return {"documents": documents, "held": store.summary(), "problems": problems}


def main(arguments):
    if not arguments or arguments[0] in ("-h", "--help"):
        raise SystemExit(__doc__)
    report = run_vectors(arguments[1]) if arguments[0] == "--vectors" else run_bundles(arguments)
    print(json.dumps(report, indent=1, ensure_ascii=False))
    return 1 if report["problems"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
