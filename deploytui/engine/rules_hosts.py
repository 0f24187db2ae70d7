"""Lines of our own servers, which stand in front of engines that are libraries."""

from deploytui.engine.rule import Rule, rules

HOSTS: tuple[Rule, ...] = (
    *rules(
        "port_in_use",
        "The engine's port {port} is taken by another process.",
        "Start again: another port is chosen each time.",
        "deploytui-host: error: port ",
        pattern=r"port (?P<port>\d+): ",
    ),
    *rules(
        "bad_flag",
        "The engine does not take one of the arguments.",
        "Correct or remove the argument in args.",
        "serve_xllamacpp: error: unknown parameter",
        "serve_xllamacpp: error: bad value",
        "deploytui-host: error: ",
    ),
)
