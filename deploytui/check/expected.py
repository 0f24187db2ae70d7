"""A model's checksums before its launch: what is known of them, what they should be, and whether they are that."""

from collections.abc import Mapping
from pathlib import Path

from anyio import to_thread
from msgspec import Struct

from deploytui.artifact.manifest import absent_failure, manifest_files, mismatch_failure, mismatches, remembered
from deploytui.profile.schema import Candidate, Profile
from deploytui.record.facts import Failure


class Sums(Struct, frozen=True, kw_only=True):
    """What is known of a model's checksums; `failure` refuses it."""

    known: dict[str, str] = {}
    """sha256 by file."""
    checksum: str | None = None
    """How they came about, as in the record's artifact."""
    expected: dict[str, str] = {}
    to_hash: bool = False
    """Whether some are asked for and not known yet."""
    failure: Failure | None = None
    notes: tuple[str, ...] = ()


async def sums_of(
    profile: Profile,
    candidate: Candidate,
    path: Path,
    recorded: Mapping[str, str],
    declared: Mapping[str, str],
    cache_dir: Path,
) -> Sums:
    """As `known_sums`, in a thread."""
    return await to_thread.run_sync(known_sums, profile, candidate, path, recorded, declared, cache_dir)


def known_sums(
    profile: Profile,
    candidate: Candidate,
    path: Path,
    recorded: Mapping[str, str],
    declared: Mapping[str, str],
    cache_dir: Path,
) -> Sums:
    """The checksums of the model at `path`, as far as they are known without reading it.

    What the candidate names comes first, then what saved results recorded, then what the model's origin declares.
    """
    asked = profile.checks.checksum
    if asked == "off":
        return Sums()
    files = manifest_files(path)
    expected = {**declared, **recorded, **candidate.sha256}
    absent = tuple(name for name in candidate.sha256 if name not in files)
    if absent:
        return Sums(failure=absent_failure(candidate.name, absent))
    computed = remembered(files, cache_dir)
    known = {name: text for name, text in {**declared, **computed}.items() if name in files}
    wrong = mismatches(expected, known)
    whole = bool(files) and len(computed) == len(files)
    checksum = "full" if whole else "declared" if known and not computed else None
    sums = Sums(
        known=dict(sorted(known.items())),
        checksum=checksum,
        expected={name: text for name, text in expected.items() if name in files},
        to_hash=asked == "full" and not whole,
    )
    if not wrong:
        return sums
    if profile.checks.changed_files == "refuse":
        return Sums(known=sums.known, checksum=checksum, failure=mismatch_failure(candidate.name, wrong))
    changed = tuple(f"{one.file} has changed: sha256 {one.found}, expected {one.expected}." for one in wrong)
    return Sums(known=sums.known, checksum=checksum, expected=sums.expected, to_hash=sums.to_hash, notes=changed)
