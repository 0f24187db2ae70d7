"""What all tests share."""

import pytest
from hypothesis import settings

# A busy machine is no reason for a property to fail.
settings.register_profile("deploytui", deadline=None)
settings.load_profile("deploytui")


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run on asyncio, as the product does."""
    return "asyncio"
