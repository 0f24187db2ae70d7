"""Why a load can't be run at all."""

from deploytui.errors import DeployError


class LoadError(DeployError):
    """An order can't be carried out, or its files can't be written."""
