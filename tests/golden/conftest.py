"""The switch that rewrites expectations: ``pytest tests/golden --update-golden``."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the switch; it is known where ``tests/golden`` is named on the command line."""
    parser.addoption("--update-golden", action="store_true", help="write what is found as what is expected")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether expectations are to be written."""
    return bool(request.config.getoption("--update-golden", default=False))
