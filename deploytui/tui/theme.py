"""Calm colours, dark and light; and which of them a terminal of few colours gets."""

from textual.theme import Theme

DARK = Theme(
    name="deploytui-dark",
    primary="#5f9fd6",
    secondary="#7a8fa6",
    accent="#7fb3d5",
    success="#7fb685",
    warning="#d9a94f",
    error="#d9716c",
    foreground="#d3d9de",
    background="#14181c",
    surface="#1b2127",
    panel="#242c34",
    dark=True,
)
LIGHT = Theme(
    name="deploytui-light",
    primary="#1f5f99",
    secondary="#53697d",
    accent="#27699f",
    success="#2c6e3a",
    warning="#8a5a00",
    error="#a8322d",
    foreground="#1d252c",
    background="#f7f8f9",
    surface="#eceff2",
    panel="#dfe4e9",
    dark=False,
)
FEW_COLOURS = "ansi-dark"


def first_theme(color_system: str | None) -> str:
    """The theme to begin with: the terminal's own sixteen colours where it has no more."""
    return DARK.name if color_system in ("truecolor", "256") else FEW_COLOURS
