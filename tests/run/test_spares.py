"""Load workers that wait for an order."""

from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import pytest

from deploytui.errors import DeployError
from deploytui.run.children import own_children
from deploytui.run.spares import Spares

pytestmark = pytest.mark.anyio


@pytest.fixture
def spares(tmp_path: Path) -> Spares:
    return Spares("none", tmp_path / "workers.log")


async def test_one_that_waits_is_used_before_a_fresh_one(spares: Spares) -> None:
    await spares.keep(1)
    (waiting,) = own_children()
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(spares.worker())
        second = await stack.enter_async_context(spares.worker())
        assert first.pid == waiting
        assert second.pid != waiting
        assert own_children() == {first.pid, second.pid}
    assert own_children() == frozenset()


async def test_those_never_needed_are_let_go(spares: Spares) -> None:
    await spares.keep(2)
    await spares.keep(2)
    assert len(own_children()) == 2
    with anyio.fail_after(30):
        await spares.close()
    assert own_children() == frozenset()


async def test_a_node_without_room_for_one_says_so_when_it_is_needed(tmp_path: Path) -> None:
    full = Spares("none", tmp_path / "no-such-folder" / "workers.log")
    await full.keep(1)
    with pytest.raises(DeployError, match="load worker") as raised:
        async with full.worker():
            pass
    assert raised.value.why
    assert own_children() == frozenset()


async def test_one_that_died_meanwhile_is_replaced(spares: Spares) -> None:
    await spares.keep(1)
    _, dead = spares._waiting[0]
    dead.kill()
    await dead.wait()
    async with spares.worker() as worker:
        assert worker.pid != dead.pid
        assert worker.returncode is None
    assert own_children() == frozenset()
