"""Check lines.py and README's programs with mypy --strict, which is given as arguments."""

import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]

text = (ROOT / "README.md").read_text("utf-8")
programs = re.findall(r"<!-- ci: python (\S+) -->\n```python\n(.*?)```", text, re.DOTALL)
with tempfile.TemporaryDirectory() as folder:
    paths = [pathlib.Path(folder, name) for name, _ in programs]
    for path, (_, program) in zip(paths, programs):
        path.write_text(program, "utf-8")
    # pytest, which a program of README imports, need not be installed.
    strict = ["--strict", "--config-file=", "--disable-error-code=import-not-found"]
    command = [*sys.argv[1:], *strict, str(HERE / "lines.py"), *map(str, paths)]
    environ = {"MYPYPATH": ".", "PATH": "/usr/bin:/bin"}
    sys.exit(subprocess.run(command, cwd=ROOT, env=environ, check=False).returncode)
