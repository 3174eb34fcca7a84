"""Compare what mypy finds in lines.py with what its marks promise; lines.py says how."""

import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent


def main() -> int:
    """Run the mypy that is given as arguments."""
    lines = HERE / "lines.py"
    found = subprocess.run(
        [*sys.argv[1:], "--strict", "--config-file=", str(lines)], cwd=HERE.parents[1],
        env={"MYPYPATH": ".", "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
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
    return 0


if __name__ == "__main__":
    sys.exit(main())
