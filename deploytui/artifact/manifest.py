"""The checksums of a model's files: which files count, what is known of them, and what they are held against."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from deploytui.artifact.files import artifact_files, remembered_sha256
from deploytui.record.facts import Failure


class Mismatch(Struct, frozen=True, kw_only=True):
    """A file whose bytes are not the expected ones."""

    file: str
    expected: str
    found: str


def manifest_files(path: Path) -> dict[str, Path]:
    """Every file of the model by its name in the manifest: weights, tokenizer, template, configuration.

    Names are relative to the model's folder; hidden files are no part of a model.
    """
    if not path.is_dir():
        return {file.name: file for file in artifact_files(path)}
    return {
        file.relative_to(path).as_posix(): file
        for file in artifact_files(path)
        if not any(part.startswith(".") for part in file.relative_to(path).parts)
    }


def remembered(files: Mapping[str, Path], cache_dir: Path) -> dict[str, str]:
    """The checksums that are known and still hold by size, time and inode; nothing is read."""
    known = {name: remembered_sha256(file, cache_dir) for name, file in files.items()}
    return {name: text for name, text in known.items() if text is not None}


def recorded_sha256(results: tuple[dict[str, Any], ...], candidate: str) -> dict[str, str]:
    """What a saved profile's results hold of a candidate's files; empty where they hold nothing usable.

    Files that were made by a preparation are left out: making them again need not give the same bytes.
    """
    row = next((row for row in results if row.get("name") == candidate), {})
    artifact = row.get("artifact")
    files = artifact.get("sha256") if isinstance(artifact, dict) else None
    if row.get("preparations") or not isinstance(files, dict):
        return {}
    return {name: text for name, text in files.items() if isinstance(name, str) and isinstance(text, str)}


def mismatches(expected: Mapping[str, str], found: Mapping[str, str]) -> tuple[Mismatch, ...]:
    """The files that are known on both sides and differ."""
    return tuple(
        Mismatch(file=name, expected=text.lower(), found=found[name])
        for name, text in expected.items()
        if name in found and found[name] != text.lower()
    )


def mismatch_failure(candidate: str, wrong: tuple[Mismatch, ...]) -> Failure:
    """The failure of a candidate whose files are not the expected ones."""
    names = ", ".join(one.file for one in wrong[:5]) + (f" and {len(wrong) - 5} more" if len(wrong) > 5 else "")
    return Failure(
        kind="checksum_mismatch",
        what=f"{candidate}: the bytes of {names} are not the expected ones.",
        why="\n".join(f"{one.file}: sha256 {one.found}, expected {one.expected}" for one in wrong[:5]),
        fix='Fetch the model again, or set [checks] changed_files = "note" if the change is meant.',
    )


def absent_failure(candidate: str, names: tuple[str, ...]) -> Failure:
    """The failure of a candidate whose profile names checksums of files that the model does not have."""
    return Failure(
        kind="missing_file",
        what=f"{candidate}: sha256 names {', '.join(names[:5])}, which the model does not have.",
        fix="Correct the file names under sha256, relative to the model's folder, or fetch what is missing.",
    )
