"""The keys of the live screen; a keymap can move each by its id."""

from textual.binding import Binding, BindingType

from deploytui.tui.tabs import TABS


def _tab(place: int, name: str) -> Binding:
    return Binding(
        str(place), f"open_tab('{name}')", name, show=False, id=f"live.tab{place}", tooltip=f"Open the tab {name}"
    )


LIVE_BINDINGS: list[BindingType] = [
    Binding("r", "again", "Run", id="live.run", tooltip="Measure this profile again as a new session"),
    Binding("space", "mark", "Mark", id="live.mark", tooltip="Mark the candidate, to compare or to run it alone"),
    Binding("s", "save", "Save", id="live.save", tooltip="Save configuration, results and decision as a profile"),
    Binding("e", "export", "Export", id="live.export", tooltip="Write the result as JSON"),
    Binding("x", "skip", "Skip", id="live.skip", tooltip="Skip the selected candidate"),
    Binding("X", "cancel", "Cancel", id="live.cancel", tooltip="Cancel the session; finished results are kept"),
    Binding("p", "pause", "Pause", id="live.pause", tooltip="Pause before the next step, or go on"),
    Binding("d", "detach", "Detach", id="live.detach", tooltip="Leave the screen; the runner goes on"),
    Binding("i", "explain", "Explain", id="live.explain", tooltip="What the number under the cursor is"),
    Binding("slash", "filter", "Filter", id="live.filter", tooltip="Show only rows that contain a text"),
    Binding("enter,z", "zoom", "Zoom", id="live.zoom", tooltip="Give the details the whole window, or take it back"),
    Binding("f", "follow", "Follow", id="live.follow", tooltip="Select whatever is being measured, always"),
    Binding("tab", "turn_tab(1)", "Next tab", show=False, id="live.next_tab", tooltip="Open the next tab"),
    Binding("shift+tab", "turn_tab(-1)", "Previous tab", show=False, id="live.prev_tab", tooltip="The tab before"),
    *(_tab(place, name) for place, name in enumerate(TABS, 1)),
    Binding("J,shift+down", "scroll_detail(1)", "Scroll", show=False, id="live.scroll_down", tooltip="Scroll the tab"),
    Binding("K,shift+up", "scroll_detail(-1)", "Scroll", show=False, id="live.scroll_up", tooltip="Scroll the tab up"),
    Binding("ctrl+d", "scroll_detail(10)", "Scroll", show=False, id="live.page_down", tooltip="Scroll it by a page"),
    Binding("ctrl+u", "scroll_detail(-10)", "Scroll", show=False, id="live.page_up", tooltip="Scroll it up by a page"),
    Binding("escape", "back", "Back", show=False, id="live.back", tooltip="Drop the filter, the zoom, or this screen"),
    Binding("question_mark", "help", "Help", id="live.help", tooltip="Keys, signs, and what the numbers mean"),
    Binding("q,ctrl+c", "leave", "Quit", id="live.quit", tooltip="Quit; asks while a runner measures"),
]

LIVE_HINTS = {
    "live.run": 1,
    "live.mark": 6,
    "live.save": 2,
    "live.export": 3,
    "live.skip": 5,
    "live.cancel": 4,
    "live.pause": 10,
    "live.detach": 7,
    "live.explain": 8,
    "live.filter": 9,
    "live.zoom": 11,
    "live.help": 0,
    "live.quit": 0,
    "app.palette": 0,
}
"""Which keys are hinted at, in this order; the larger the number, the sooner one gives way."""
