"""What the hashing child is asked and what it says, a JSON line each."""

import msgspec
from msgspec import Struct


class HashOrder(Struct, frozen=True, kw_only=True):
    """Files by name to hash, and the cache of checksums; None keeps nothing."""

    files: dict[str, str]
    cache: str | None = None


class Hashed(Struct, frozen=True, tag="hashed", kw_only=True):
    """One file's checksum."""

    name: str
    sha256: str


class Read(Struct, frozen=True, tag="read", kw_only=True):
    """Bytes read so far, and the time that took without pauses [s]."""

    bytes: int
    seconds: float


class Unread(Struct, frozen=True, tag="unread", kw_only=True):
    """A file that could not be read, and why."""

    name: str
    why: str


class AllHashed(Struct, frozen=True, tag="done", kw_only=True):
    """Everything is hashed; the time it took without pauses [s]."""

    seconds: float


said_decoder = msgspec.json.Decoder(Hashed | Read | Unread | AllHashed)
