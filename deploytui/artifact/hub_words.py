"""What the hub's child process says, a JSON line each."""

from typing import Literal

import msgspec
from msgspec import Struct

from deploytui.artifact.hub_files import HubFile

FaultKind = Literal["gated", "refused", "no_repository", "no_revision", "no_file", "offline", "unreachable", "other"]


class Listing(Struct, frozen=True, tag="listing", kw_only=True):
    """A repository at one commit; `cache` is where the client keeps its files."""

    commit: str
    cache: str
    files: tuple[HubFile, ...]


class Fetched(Struct, frozen=True, tag="fetched", kw_only=True):
    """Bytes that came so far."""

    bytes: int


class Got(Struct, frozen=True, tag="got", kw_only=True):
    """All files are in the cache; `bytes` came over the network."""

    bytes: int


class Fault(Struct, frozen=True, tag="fault", kw_only=True):
    """Why it can't be done; `why` in the client's words, without the token. `token`: whether there is one."""

    kind: FaultKind
    why: str
    token: bool


said_decoder = msgspec.json.Decoder(Listing | Fetched | Got | Fault)
