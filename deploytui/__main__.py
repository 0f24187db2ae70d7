"""`python -m deploytui`."""

from deploytui.cli import main

main()
