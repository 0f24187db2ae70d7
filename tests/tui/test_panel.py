"""A panel of lines is as high as its lines, whenever they come."""

from collections.abc import Sequence

import pytest
from textual.app import App, ComposeResult

from deploytui.tui.pieces import Line, Piece, line
from deploytui.tui.widgets.panel import LinePanel

pytestmark = pytest.mark.anyio


def _lines(count: int) -> Sequence[Line]:
    return [line(Piece(f"line {number}")) for number in range(count)]


class _OnePanel(App[None]):
    def compose(self) -> ComposeResult:
        yield LinePanel(grow=True, wrap=False)

    def get_component_styles(self, *_names: str):  # type: ignore[no-untyped-def]
        return self.screen.styles


@pytest.mark.parametrize("pending", [False, True])
async def test_lines_that_come_while_a_layout_is_pending_are_seen(pending: bool) -> None:
    app = _OnePanel()
    async with app.run_test() as pilot:
        panel = app.query_one(LinePanel)
        for count in (1, 5, 2, 0, 3):
            if pending:
                panel.refresh(layout=True)
                app.screen._refresh_layout(app.size)
            panel.show(_lines(count))
            await pilot.pause()
            assert panel.size.height == count


class _OneLog(_OnePanel):
    CSS = "LinePanel { height: 7; }"

    def compose(self) -> ComposeResult:
        yield LinePanel(follow=True)


async def test_the_end_is_followed_from_the_first_line_on_unless_it_was_scrolled_up() -> None:
    app = _OneLog()
    async with app.run_test(size=(80, 7)) as pilot:
        panel = app.query_one(LinePanel)
        for count in (1, 8, 9, 30, 1000):
            panel.show(_lines(count), top=count == 1)
            await pilot.pause()
            assert panel.scroll_offset.y == max(count - 7, 0)
        panel.scroll_to(y=10, animate=False)
        panel.show(_lines(1010))
        await pilot.pause()
        assert panel.scroll_offset.y == 10
