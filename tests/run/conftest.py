"""After every session of a test nothing of it may live."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.run.sessions import assert_nothing_left


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path) -> Iterator[None]:
    """Fails a test that leaves a process of one of its sessions behind."""
    yield
    for journal in tmp_path.glob("**/journal.jsonl"):
        assert_nothing_left(journal.parent.name)
