"""The README in parts."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


README = (ROOT / "README.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """The text below a heading, up to the next heading of its level or above."""
    found = re.search(rf"^(#+) {re.escape(title)}$", README, re.MULTILINE)
    assert found is not None, f"README.md has no heading {title!r}"
    rest = README[found.end() :]
    end = re.search(rf"^#{{1,{len(found[1])}}} ", rest, re.MULTILINE)
    return rest[: end.start()] if end else rest


def rows(title: str, head: str) -> dict[str, list[str]]:
    """The rows of the table below a heading whose first column is called `head`, by their first cell."""
    lines = section(title).splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"| {head} |"))
    found: dict[str, list[str]] = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        assert cells[0] not in found, f"{title}: {cells[0]} stands there twice"
        found[cells[0]] = cells[1:]
    return found


def blocks(language: str) -> list[str]:
    """All fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
