"""What is true of each program: its interface, its size, its help."""

import ast
import importlib.machinery
import importlib.util
import re
import shutil
import subprocess
import sys

import pytest
from conftest import PROGRAMS, ROOT

import mcp_lite

#: Tokens, as .ci/sizes counts them.
CEILINGS = {
    "mcp_complete.py": 400, "mcp_doctor.py": 4165, "mcp_gateway.py": 4825, "mcp_install.py": 4490, "mcp_reload.py": 580,
    "mcp_shell.py": 1020,
}  # fmt: skip
FILES = sorted(path.name for path in PROGRAMS.glob("mcp_*.py"))


@pytest.fixture(params=FILES)
def program(request):
    return request.param


def private(name):
    return name.startswith("_") and not name.endswith("__")


def test_only_the_public_interface_is_used(program):
    tree = ast.parse((PROGRAMS / program).read_text())
    modules, found = set(), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {each.asname or each.name for each in node.names if each.name == "mcp_lite"}
        if isinstance(node, ast.ImportFrom) and node.module == "mcp_lite":
            found += [each.name for each in node.names]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            mine = isinstance(node.value, ast.Name) and node.value.id == "self"
            assert mine or not private(node.attr), f"line {node.lineno}: {node.attr}"
            if isinstance(node.value, ast.Name) and node.value.id in modules:
                found.append(node.attr)
    assert found and {*found} <= {*mcp_lite.__all__, "__file__", "main"}


def test_no_method_of_a_class_of_mcp_lite_that_is_private_is_used_or_replaced(program):
    for node in ast.walk(ast.parse((PROGRAMS / program).read_text())):
        if isinstance(node, ast.ClassDef) and node.bases:
            names = {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
            names |= {each.name for each in node.body if hasattr(each, "name")}
            base = getattr(mcp_lite, getattr(node.bases[0], "attr", getattr(node.bases[0], "id", "")), None)
            assert not [name for name in names if private(name) and hasattr(base, name)]


def test_nothing_but_the_standard_library_is_imported_besides(program):
    known = getattr(sys, "stdlib_module_names", None)  # since 3.10
    if known is None:
        pytest.skip("this Python cannot tell")
    for node in ast.walk(ast.parse((PROGRAMS / program).read_text())):
        names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            word = name.split(".")[0]
            assert word in known or word == "mcp_lite" or f"{word}.py" in CEILINGS, name


def test_it_is_short(program):
    loader = importlib.machinery.SourceFileLoader("sizes", str(ROOT / ".ci" / "sizes"))
    sizes = importlib.util.module_from_spec(importlib.util.spec_from_loader("sizes", loader))
    written, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    loader.exec_module(sizes)
    sys.dont_write_bytecode = written
    assert len(sizes.lines_of((PROGRAMS / program).read_text())) <= CEILINGS[program]


def test_it_works_beside_mcp_lite_py_in_a_folder_of_its_own(program, tmp_path):
    for path in ROOT / "mcp_lite.py", PROGRAMS / program:
        shutil.copy(path, tmp_path)
    command = [sys.executable, "-W", "error", program, "--help"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert said.returncode == 0, said.stderr
    assert said.stdout.startswith("usage: ") and said.stderr == ""


def test_the_readme_of_the_folder_has_a_section_for_it(program):
    text = (PROGRAMS / "README.md").read_text()
    assert re.search(rf"^## `{program}`", text, re.M)
