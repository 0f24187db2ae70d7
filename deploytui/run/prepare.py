"""All that can be refused before a session exists: the profile, its trust, its candidates, the state folder."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from msgspec.structs import replace

from deploytui.artifact.embedded import default_cache_dir
from deploytui.artifact.manifest import recorded_sha256
from deploytui.check.inputs import read_inputs
from deploytui.errors import UsageError
from deploytui.plan.inputs import NO_INPUTS, Inputs, input_notes
from deploytui.profile.files import read_text, save_text
from deploytui.profile.nearest import nearest
from deploytui.profile.parse import parse_profile
from deploytui.profile.schema import Profile
from deploytui.quality.tasks import load_task
from deploytui.run.containers import remove_left
from deploytui.session.folder import SessionFolder, new_session
from deploytui.session.leftovers import reap_dead_sessions
from deploytui.session.lock import SessionLock
from deploytui.session.origin import origin
from deploytui.session.trust import Confirm, confirmed, fingerprint


@dataclass
class Prepared:
    """A session that may begin."""

    profile: Profile
    folder: SessionFolder
    lock: SessionLock
    base_dir: Path
    cache_dir: Path
    profile_sha256: str
    items: dict[str, int]
    """Items of each quality task."""
    inputs: Inputs = NO_INPUTS
    """The files that the workload names."""
    recorded: dict[str, dict[str, str]] = field(default_factory=dict)
    """By candidate: the checksums that saved results hold of its files."""
    notes: tuple[str, ...] = ()


def prepare(path: Path, state: Path, *, only: Sequence[str], confirm: Confirm) -> Prepared:
    """Read, refuse or confirm, and make the session's folder; ProfileError, UsageError or SessionError."""
    text = read_text(path)
    asked = parse_profile(text, where=str(path))
    profile = narrowed(asked, only)
    base_dir = origin(asked, path)
    inputs = read_inputs(profile, base_dir)
    items = {name: len(load_task(name, base_dir).items) for name in profile.quality.tasks}
    sha256 = fingerprint(text)
    confirmed(asked, state, sha256, confirm)
    reaped = reap_dead_sessions(state)
    removed = remove_left(state)
    folder = new_session(state, profile.name, datetime.now().astimezone())
    lock = SessionLock.acquire(folder)
    save_text(folder.profile, text)
    return Prepared(
        profile=profile,
        folder=folder,
        lock=lock,
        base_dir=base_dir,
        cache_dir=default_cache_dir(),
        profile_sha256=sha256,
        items=items,
        inputs=inputs,
        recorded={one.name: recorded_sha256(asked.results, one.name) for one in profile.candidates},
        notes=(
            *input_notes(profile.workload, inputs),
            *(f"Ended process {left.pid}, left by session {left.session}: {left.program}" for left in reaped),
            *(f"Removed the container {name}, left by a session that is dead." for name in removed),
        ),
    )


def narrowed(profile: Profile, only: Sequence[str]) -> Profile:
    """The profile with the named candidates alone; all of them when none is named."""
    known = [candidate.name for candidate in profile.candidates]
    for name in only:
        if name not in known:
            near = nearest(name, known)
            raise UsageError(
                f"The profile has no candidate “{name}”.",
                fix=f"Did you mean “{near}”?" if near else f"It has: {', '.join(known)}.",
            )
    kept = tuple(candidate for candidate in profile.candidates if not only or candidate.name in only)
    return replace(profile, candidates=kept, results=())
