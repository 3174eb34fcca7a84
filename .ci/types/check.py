"""Compare what mypy finds in lines.py with what its marks promise; lines.py says how.

In README's programs it finds nothing.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def mypy(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the mypy that is given as arguments."""
    return subprocess.run(
        [*sys.argv[1:], "--strict", "--config-file=", *words], cwd=HERE.parents[1],
        env={"MYPYPATH": ".", "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def readme() -> int:
    """Check README's programs; pytest need not be installed for that."""
    text = (HERE.parents[1] / "README.md").read_text("utf-8")
    programs = re.findall(r"<!-- ci: python (\S+) -->\n```python\n(.*?)```", text, re.DOTALL)
    with tempfile.TemporaryDirectory() as folder:
        paths = [pathlib.Path(folder) / name for name, _ in programs]
        for path, (_, program) in zip(paths, programs):
            path.write_text(program, "utf-8")
        found = mypy("--disable-error-code=import-not-found", *map(str, paths))
    print("README:", found.stdout + found.stderr, end="")
    return found.returncode


def main() -> int:
    """Check both."""
    lines = HERE / "lines.py"
    found = mypy(str(lines))
    says = {(int(line), code) for line, code in
            re.findall(r"lines\.py:(\d+): error: .*\[([a-z-]+)\]", found.stdout)}  # fmt: skip
    marks = {(number, code) for number, line in enumerate(lines.read_text().splitlines(), 1)
             for code in line.partition("# wrong: ")[2].split()}  # fmt: skip
    for number, code in sorted(marks - says):
        print(f"{lines}:{number}: {code} is not found")
    for number, code in sorted(says - marks):
        print(f"{lines}:{number}: {code} is found")
    if not marks or says != marks:
        print(found.stdout + found.stderr)
        return 1
    print(f"{len(marks)} faults are found, and nothing else")
    return readme()


if __name__ == "__main__":
    sys.exit(main())
