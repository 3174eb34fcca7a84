"""Run the official MCP conformance suite, pinned, against the examples of this repository.

    python3 .ci/conformance.py [LEG...] [REVISION...]

A LEG is `server` or `client`. For the revisions with a frozen set of requirements, what it scores
counts; for the others every scenario that applies. Prints a line for each leg and revision, such as
"server 2025-11-25: 30/30 scored, 3/3 unscored", then what failed. Exit status: 0 if every scenario,
scored or not, passed without a warning (but for MEANT), and every client exited as it should.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from install import Missing, install_node
from processes import ROOT, Failed, free_port, serving, started

SUITE = "@modelcontextprotocol/conformance"
PACKAGES = {SUITE: "0.2.0-alpha.12"}
OVERRIDES = {"@modelcontextprotocol/sdk": "1.32.2"}  # with which it drives stateful servers
REVISIONS = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
SCENARIO_SECONDS = 120  # all clients start at once
LEG_SECONDS = 900
#: This scenario answers a question without sending back the requestState in which the server noted
#: what it asked. Such an answer is bound to no question, so the question is put again.
MEANT = "input-required-result-ignore-extra-params"
#: In these, a client is right to give up with an error.
MAY_FAIL = re.compile(
    "auth/(scope-retry-limit|resource-mismatch|metadata-issuer-mismatch"
    "|iss-(supported-missing|wrong-issuer|unexpected|normalized))|http-invalid-tool-headers"
)
#: The suite starts this for each client scenario, and does not look at the exit status.
CLIENT = """
trap 'kill "$child"' TERM
{python} .ci/conformance_client.py "$@" &
child=$!
wait "$child"
status=$?
echo "$status $MCP_CONFORMANCE_SCENARIO" >>'{exits}'
exit "$status"
"""


def having(checks, status):
    return [check for check in checks if check["status"] == status]


def ids(checks):
    return ", ".join(dict.fromkeys(check["id"] for check in checks))


class Leg:
    """One side in one revision, and what the suite found of it."""

    def __init__(self, side, revision, options, folder):
        self.node, self.packages = install_node("conformance-suite", PACKAGES, OVERRIDES)
        self.suite = pathlib.Path(self.packages, "node_modules", SUITE)
        self.side, self.revision, self.options = side, revision, options
        self.folder = folder / f"{side}-{revision}"
        self.results, self.exits = self.folder / "results", self.folder / "exits"
        self.results.mkdir(parents=True)
        self.exits.touch()
        self.scored, self.unscored = self.requirements()

    def requirements(self):
        """Return the names of the scenarios that are scored, and of the others."""
        frozen = self.suite / f"requirements/{self.revision}.yaml"
        if not frozen.exists():
            said = self.run_suite("list", f"--{self.side}", "--spec-version", self.revision)
            return re.findall(r"^  - (\S+)", said, re.M), []
        program = "JSON.stringify(require('yaml').parse(fs.readFileSync(process.argv[1], 'utf8')))"
        said = subprocess.check_output([self.node, "-p", program, str(frozen)], cwd=self.packages)
        sets = json.loads(said)
        others = [x["scenario"] for x in sets["not_scored"] if x["leg"] == self.side]
        return sets[self.side], others

    def run_suite(self, *words):
        """Run a command of the suite, and return what it printed, which the log keeps."""
        command = [self.node, str(self.suite / "dist/index.js"), *words]
        with started(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            text=True, cwd=ROOT,
        ) as process:  # fmt: skip
            said = process.communicate(timeout=LEG_SECONDS)[0]
        with (self.folder / "suite.log").open("a") as log:
            log.write(said)
        return said

    def run(self):
        """Let the suite test our side; what it finds is in `results`."""
        words = [self.side, "-o", str(self.results), "--timeout", f"{SCENARIO_SECONDS}000"]
        with contextlib.ExitStack() as stack:
            if self.side == "server":
                port = free_port()
                command = f"exec {self.options.server} >{self.folder}/server.log 2>&1"
                stack.enter_context(serving(["bash", "-c", command], port, PORT=str(port)))
                words += ["--url", f"http://127.0.0.1:{port}/mcp"]
            else:
                script = self.folder / "client.sh"
                script.write_text(CLIENT.format(python=sys.executable, exits=self.exits))
                words += ["--command", f"exec sh {script}"]
            if self.options.scenario:
                self.scored, self.unscored = [self.options.scenario], []
                self.run_one(words, self.options.scenario)
            elif (self.suite / f"requirements/{self.revision}.yaml").exists():
                self.run_suite(*words, "--requirements", self.revision)
            else:
                self.run_suite(*words, "--suite", "all", "--spec-version", self.revision)
            # The suite's own servers may fail on a busy machine: each has a second try.
            if self.side == "client":
                found = self.found()
                for name in self.scored + self.unscored:
                    if self.ran_nothing(found.get(name, ())):
                        self.forget(name)
                        self.run_one(words, name)

    def run_one(self, words, scenario):
        self.run_suite(*words, "--scenario", scenario, "--spec-version", self.revision, "--force")

    def forget(self, scenario):
        for folder in self.results.glob(f"{scenario}-20[0-9][0-9]-*"):
            shutil.rmtree(folder)
        kept = [x for x in self.exits.read_text().splitlines(True) if x.split()[1] != scenario]
        self.exits.write_text("".join(kept))

    def found(self):
        """Return {scenario: its checks}, from [server-]SCENARIO-TIME/checks.json."""
        found = {}
        for path in self.results.rglob("checks.json"):
            name = path.parent.relative_to(self.results).as_posix()
            name = re.sub(r"-\d{4}-\d\d-\d\dT[\d-]+Z$", "", name)
            if self.side == "server":
                name = re.sub("^server-", "", name)
            found[name] = json.loads(path.read_text("utf-8"))
        return found

    def ran_nothing(self, checks):
        """Return whether no check ran, which the suite itself would let pass.

        A server's scenario that is only skipped was declared inapplicable by the suite.
        """
        ran = {"FAILURE", "SUCCESS"} | ({"SKIPPED"} if self.side == "server" else set())
        return not any(check["status"] in ran for check in checks)

    def fault(self, checks):
        """Return what is wrong with a scenario of which these checks were found, or None."""
        if checks is None:
            return "(no result: the suite could not run it)"
        if self.ran_nothing(checks):
            return "(no check ran; the suite itself would let this pass)"
        failures = having(checks, "FAILURE")
        if not failures:
            return None
        texts = [check["errorMessage"] for check in failures if check.get("errorMessage")]
        text = (texts or [failures[0].get("description") or "?"])[0]
        return f"{ids(failures)} - {text.splitlines()[0][:200]}"

    def judge(self, seconds):
        """Print how the leg went; return whether all is well."""
        found = self.found()
        all_names = self.scored + self.unscored
        failed = {name: why for name in all_names if (why := self.fault(found.get(name)))}
        line = f"{self.side} {self.revision}"
        for kind, names in ("scored", self.scored), ("unscored", self.unscored):
            if names or kind == "scored":
                passed = sum(name not in failed for name in names)
                line += f"{':' if kind == 'scored' else ','} {passed}/{len(names)} {kind}"
        print(f"{line}  ({seconds:.0f} s)")
        for name, why in failed.items():
            print(f"  FAIL{'' if name in self.scored else ' (unscored)'} {name}: {why}")
        warned = {name: having(found.get(name, ()), "WARNING") for name in all_names}
        if warned.pop(MEANT, None):
            print(f"  meant: {MEANT}: answers without a requestState count for nothing")
        for name, checks in warned.items():
            if checks:
                print(f"  WARNING {name}: {ids(checks)}")
        exits = [line.split() for line in self.exits.read_text().splitlines()]
        bad = [
            f"{name} ({status})"
            for status, name in exits
            if status != "0" and name in all_names
            if name not in failed and not MAY_FAIL.fullmatch(name)
        ]
        if bad:
            print("  FAIL: passed, but the client exited non-zero:", ", ".join(bad))
        sys.stdout.flush()
        return not (failed or any(warned.values()) or bad)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    choices = ["server", "client", *REVISIONS]
    parser.add_argument("what", nargs="*", metavar="LEG or REVISION", help=", ".join(choices))
    parser.add_argument("--scenario", metavar="NAME", help="this one alone")
    parser.add_argument(
        "--server", metavar="COMMAND",
        default=f"{sys.executable} examples/everything_server.py --http $PORT",
        help="of a shell, in the foreground; it serves http://127.0.0.1:$PORT/mcp",
    )  # fmt: skip
    options = parser.parse_args()
    for word in set(options.what) - set(choices):
        parser.error(f"{word!r} is neither a leg nor a revision: {', '.join(choices)}")
    sides = [side for side in choices[:2] if side in options.what] or choices[:2]
    revisions = [x for x in REVISIONS if x in options.what] or REVISIONS
    folder = pathlib.Path(tempfile.mkdtemp(prefix="mcp-conformance."))
    went = []
    try:
        for side in sides:
            for revision in revisions:
                began = time.monotonic()
                leg = Leg(side, revision, options, folder)
                leg.run()
                went.append(leg.judge(time.monotonic() - began))
    except (Missing, Failed) as exc:
        print(f"conformance: {exc}")
        went.append(False)
    if all(went):
        shutil.rmtree(folder)
        return 0
    print(f"results and logs: {folder}")
    return 1


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
