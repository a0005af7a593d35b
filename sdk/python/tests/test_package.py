from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from conftest import Server

HERE = Path(__file__).parents[1]
PROGRAMS = re.findall(r"```python\n(.*?)```", (HERE / "README.md").read_text(), re.DOTALL)
EXTRAS = ["crewai", "langgraph", "openai-agents", "pydantic-ai"]


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the wheel, the source package and the installed package."""
    folder = tmp_path_factory.mktemp("dist")
    shutil.copytree(HERE, folder / "source", ignore=shutil.ignore_patterns("node_modules", "__pycache__", "tests"))
    run(
        folder / "source",
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-build-isolation",
        "--no-deps",
        "--no-index",
        "-w",
        "..",
        ".",
    )
    run(folder / "source", "-c", "from setuptools import build_meta as b; b.build_sdist('..')")
    wheel = next(folder.glob("*.whl"))
    run(folder, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", "installed", str(wheel))
    return folder


def run(folder: Path, *arguments: str, path: Path | None = None) -> str:
    environment = {"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(folder)}
    if path:
        environment["PYTHONPATH"] = str(path)
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_has_the_package_and_its_types(dist: Path) -> None:
    wheel = next(dist.glob("*.whl"))
    assert wheel.name == "waggle_sdk-0.1.0-py3-none-any.whl"
    names = zipfile.ZipFile(wheel).namelist()
    sources = {
        f"waggle/{p.relative_to(HERE / 'src/waggle')}"
        for p in (HERE / "src/waggle").rglob("*")
        if "__pycache__" not in p.parts
    }
    assert {n for n in names if n.startswith("waggle/")} == {s for s in sources if "." in s}
    assert "waggle/py.typed" in names
    about = zipfile.ZipFile(wheel).read("waggle_sdk-0.1.0.dist-info/METADATA").decode()
    needed = re.findall(r"^Requires-Dist: (\w+)(?!.*extra ==)", about, re.MULTILINE)
    assert sorted(needed) == ["httpx", "websockets"]
    assert sorted(re.findall(r"^Provides-Extra: (.*)", about, re.MULTILINE)) == EXTRAS
    assert "Requires-Python: >=3.10" in about


def test_the_source_package_builds(dist: Path) -> None:
    with tarfile.open(next(dist.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "src/waggle/py.typed", "src/waggle/events.py"} <= names


def test_an_import_loads_no_more_than_it_needs(dist: Path) -> None:
    program = "import sys, waggle, waggle.sync; print(*sorted(sys.modules))"
    loaded = set(run(dist, "-c", program, path=dist / "installed").split())
    assert "waggle" in loaded
    assert not loaded & {"httpx", "websockets", "waggle.events", "waggle.api", "waggle.errors"}


@pytest.mark.parametrize("n", range(len(PROGRAMS)))
def test_the_programs_of_the_readme_run(dist: Path, server: Server, n: int) -> None:
    server.workspace.mkdir(exist_ok=True)
    program = PROGRAMS[n].replace("http://127.0.0.1:9000", server.url)
    printed = run(dist, "-W", "error", "-c", program, path=dist / "installed")
    expected = ["notes.md", "Execute this plan of 2 steps?", "success", "", "21.5", "5", "hello"][n]
    assert expected in printed
