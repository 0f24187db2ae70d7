"""Choose how to deploy a language model: launch, measure, decide."""

from typing import TYPE_CHECKING, Any

__version__ = "0.3.1"
__all__ = [
    "__version__",
    "build_deployment_case",
    "compare_deployment_records",
    "make_deployment_decision",
]

if TYPE_CHECKING:
    from deploytui.decide.small import (
        build_deployment_case,
        compare_deployment_records,
        make_deployment_decision,
    )


def __getattr__(name: str) -> Any:
    """The documented functions, loaded on first use so that importing the package stays cheap."""
    if name in __all__:
        from deploytui.decide import small

        return getattr(small, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
