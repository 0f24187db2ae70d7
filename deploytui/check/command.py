"""The texts of `deploytui check` and `deploytui doctor`."""

from collections.abc import Sequence
from pathlib import Path

import anyio
import msgspec

from deploytui.artifact.embedded import default_cache_dir
from deploytui.check.doctor import doctor
from deploytui.check.doctor_text import doctor_text
from deploytui.check.report import check_profile
from deploytui.check.text import check_text
from deploytui.profile.files import read_profile
from deploytui.session.origin import origin

NOT_READY = 2


def check_command(path: Path, *, as_json: bool) -> tuple[str, int]:
    """The report on a profile, and the exit status: 2 when something is wrongly configured or none can run, else 0."""
    profile = read_profile(path)
    report = anyio.run(check_profile, profile, origin(profile, path), default_cache_dir())
    faulty = not report.ready or any(case.status == "invalid_config" for case in report.cases)
    return _written(report, as_json, check_text(report)), NOT_READY if faulty else 0


def doctor_command(pythons: Sequence[str], *, as_json: bool) -> str:
    """The report on this node."""
    report = anyio.run(doctor, pythons, default_cache_dir())
    return _written(report, as_json, doctor_text(report))


def _written(report: msgspec.Struct, as_json: bool, text: str) -> str:
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n" if as_json else text
