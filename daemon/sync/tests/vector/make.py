"""Writes the test vector of FORMAT.md without any code of this crate: `python3 make.py > vector.txt`. Needs `cryptography`."""

from hashlib import sha256
from struct import pack
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

SECRET = Ed25519PrivateKey.from_private_bytes(bytes([1]) * 32)
KEY = SECRET.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw) + bytes([2]) * 16
FOREIGN = pack(">16sQ32s", bytes([3]) * 16, 7, bytes([4]) * 32)


def origin(key):
    digest = bytearray(sha256(b"satchel-sync-origin-v1\0" + key).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x80
    digest[8] = digest[8] & 0x3F | 0x80
    return bytes(digest)


def change(counter, previous, kind, context, payload):
    body = pack(">H16sQ32sHI", 1, origin(KEY), counter, previous, kind, len(context)) + b"".join(context)
    body += pack(">Q", len(payload)) + sha256(payload).digest()
    signed = b"satchel-sync-change-v1\0" + body
    bare = body + SECRET.sign(signed)
    return bare + b"\1" + pack(">I", len(payload)) + payload, sha256(signed).digest(), bare + b"\0"


def batch(changes):
    frames = b"".join(pack(">I", len(bytes_)) + bytes_ for bytes_ in changes)
    whole = b"SATCHELC" + pack(">HH", 1, 0) + frames + pack(">II", 0, len(changes))
    return whole + sha256(whole).digest()


genesis, genesis_hash, _ = change(1, bytes(32), 0, [], KEY)
second, second_hash, bare_second = change(2, genesis_hash, 1, [FOREIGN], b"tea, not coffee")
fork, fork_hash, bare_fork = change(2, genesis_hash, 1, [], b"coffee")
pair = [both for _, both in sorted([(second_hash, bare_second), (fork_hash, bare_fork)])]
frontier = [pack(">16sQ32s", origin(KEY), 2, second_hash), FOREIGN]

branch = origin(KEY) + pack(">Q32sI", 1, genesis_hash, 1) + fork_hash
continuation = branch + SECRET.sign(b"satchel-sync-continuation-v1\0" + bytes([3]) * 16 + branch)

print("origin", UUID(bytes=origin(KEY)))
print("genesis", genesis.hex())
print("genesis-hash", genesis_hash.hex())
print("change", second.hex())
print("bare-change", bare_second.hex())
print("change-hash", second_hash.hex())
print("frontier", (pack(">I", 2) + b"".join(sorted(frontier))).hex())
print("batch", batch([genesis, second]).hex())
print("proof", (b"SATCHELF" + pack(">H", 1) + KEY + b"".join(pack(">I", len(c)) + c for c in pair)).hex())
print("continuation", continuation.hex())
