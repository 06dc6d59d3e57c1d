"""The public names: all there, loaded when they are used, the same for Python and for type checkers."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import evaluatorq.simulation
from evaluatorq.simulation import __all__ as names

MODULES = [
    "evaluatorq.contracts", "evaluatorq.simulation.contracts", "evaluatorq.simulation.evaluators",
    "evaluatorq.simulation.hooks", "evaluatorq.simulation.replay", "evaluatorq.simulation.reports",
]  # fmt: skip
HEAVY = {"httpx", "httptools", "rich", "yaml", "typer"}


def test_every_name_is_there():
    assert [name for name in names if not hasattr(evaluatorq.simulation, name)] == []
    assert len(names) == len(set(names))


def test_star_import_works_on_a_plain_install():
    space: dict[str, object] = {}
    exec("from evaluatorq.simulation import *", space)
    assert set(names) <= space.keys()


def test_type_checkers_and_python_are_told_the_same():
    tree = ast.parse(Path(evaluatorq.simulation.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    told = {
        alias.name: node.module.removeprefix("evaluatorq.")
        for node in block.body if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }  # fmt: skip
    assert told == evaluatorq.simulation._HOMES
    assert set(told) == set(names)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'LangGraphTarget'"):
        evaluatorq.simulation.LangGraphTarget  # noqa: B018
    with pytest.raises(ImportError):
        exec("from evaluatorq.simulation import nonsense")


def test_dir_lists_names_that_were_not_loaded_yet():
    assert set(names) <= set(dir(evaluatorq.simulation))


@pytest.mark.parametrize("module", MODULES)
def test_the_documented_modules_offer_what_they_list(module: str):
    loaded = importlib.import_module(module)
    assert [name for name in loaded.__all__ if not hasattr(loaded, name)] == []


@pytest.mark.parametrize("module", ["evaluatorq.simulation", "evaluatorq.contracts", "evaluatorq.simulation.contracts"])
def test_importing_loads_nothing_heavy(module: str):
    code = f"import sys, {module}; print(*sys.modules)"
    loaded = set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    assert loaded & HEAVY == set()


def test_importing_the_front_door_alone_loads_no_model():
    code = "import sys, evaluatorq.simulation; print('pydantic' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.strip() == "False"


def test_simulate_is_imported_without_what_it_runs_on():
    code = "import sys; from evaluatorq.simulation import simulate; print('pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_quiet_run_without_models_loads_no_client_no_reports_and_no_comparisons(tmp_path: Path):
    code = """
import sys
from evaluatorq.cli import main
assert main(["sim", "simulate", "--offline", "--target", "demo", "--max-turns", "1", "-q"]) == 0
print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    unused = {
        "httptools", "httpx", "rich", "tenacity", "evaluatorq.reports.html", "evaluatorq.records.compare",
        "evaluatorq.simulation.orders", "evaluatorq.roles.published", "evaluatorq.run.rejudge",
    }  # fmt: skip
    assert unused & set(done.stdout.split()) == set()
