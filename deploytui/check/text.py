"""The reports of `check` and `doctor` as plain text."""

from collections.abc import Iterable, Iterator, Sequence

from deploytui import units
from deploytui.check.cases import CaseCheck
from deploytui.check.report import CheckReport
from deploytui.record.facts import Artifact, Failure
from deploytui.session.speech import shown

STATUS_WIDTH = len("invalid_config") + 2


def check_text(report: CheckReport) -> str:
    """The report as lines with a newline at the end of each; foreign control characters are made visible."""
    return "".join(f"{line}\n" for line in _check_lines(report))


def _check_lines(report: CheckReport) -> Iterator[str]:
    ready = sum(case.status == "ready" for case in report.cases)
    yield plain(f"{report.profile}: {ready} of {len(report.cases)} candidates ready")
    width = max(len(case.name) for case in report.cases)
    for case in report.cases:
        yield from _case_lines(case, width)
    if report.unrunnable:
        yield from section("The workload can't be run", [report.unrunnable])
    yield from section("What a run sends", report.load)
    yield from section("Quality tasks that can't be asked", report.tasks)
    yield from section("One-factor audit", report.audit or ["Every candidate differs from the baseline in one factor."])
    yield from section("Samples", report.samples or ["No percentile decides anything."])
    yield from section("The decision will be tune", report.evidence)
    yield from section("Read, but not acted on yet", report.not_acted_on)


def _case_lines(case: CaseCheck, width: int) -> Iterator[str]:
    yield plain(f"  {case.status:<{STATUS_WIDTH}}{case.name:<{width}}  {_said(case)}").rstrip()
    indent = " " * (STATUS_WIDTH + width + 4)
    if case.failure:
        yield from (indent + line for line in failure_details(case.failure))
    yield from (indent + plain(note) for note in case.notes)
    for step in case.preparations:
        if step.record is not None:
            yield indent + plain(f"{step.plan.name} was prepared before, in {step.record.seconds:.1f} s, and is used.")


def _said(case: CaseCheck) -> str:
    if case.failure:
        kind = "" if case.failure.kind == case.status else f"{case.failure.kind}: "
        return kind + case.failure.what
    version = f" {case.probed.version}" if case.probed and case.probed.version else ""
    return ", ".join([f"{case.engine}{version}", *_artifact_words(case.artifact), *_place_words(case)])


def _artifact_words(artifact: Artifact | None) -> Iterator[str]:
    if artifact is None:
        return
    kind = " ".join(word for word in (artifact.format, artifact.quantization) if word)
    if kind:
        yield kind
    if artifact.bytes is not None:
        yield size(artifact.bytes)


def _place_words(case: CaseCheck) -> Iterator[str]:
    """Where it would run, and whether it will fit there."""
    if case.gpu_uuids:
        yield f"on {len(case.gpu_uuids)} GPU{'s' if len(case.gpu_uuids) > 1 else ''}: {', '.join(case.gpu_uuids)}"
    fit = case.fit
    if fit is not None and fit.needed_bytes is not None and fit.free_bytes is not None:
        words = fit.verdict.replace("_", " ")
        yield f"{words}: {size(fit.needed_bytes)} of {size(fit.free_bytes)} free on the {fit.on}"


def failure_details(failure: Failure) -> Iterator[str]:
    """The engine's words and the remedy, a line each."""
    for line in failure.why.splitlines():
        yield plain(f"| {line}")
    if failure.fix:
        yield plain(failure.fix)


def section(title: str, lines: Iterable[str]) -> Iterator[str]:
    """A blank line, a title and its lines; nothing when there are no lines."""
    body = list(lines)
    if body:
        yield ""
        yield f"{title}:"
        yield from (f"  {plain(line)}" for line in body)


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows with their columns aligned."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))] if rows else []
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def size(count: int) -> str:
    """A number of bytes in MiB or GiB."""
    return units.size(count, digits=1)


def plain(text: str) -> str:
    """The text on one line, with every sign a terminal might obey written as an escape."""
    return shown(text).replace("\n", "\\n")
