"""Has several processes share the tests. pytest reads this file before theirs."""

import argparse
import contextlib
import functools
import gc
import itertools
import multiprocessing.connection
import os
import signal
import struct
import sys

gc.disable()  # until the first test: it would take most of the time of what pytest does before
sys.dont_write_bytecode = False  # or pytest would prepare the tests anew each time


class Sharing:
    """A plugin for pytest: several processes run the tests, and this one reports.

    They are forked when all is collected. Each takes a class at a time, or several with one base,
    as long as there are any.
    """

    def __init__(self, processes):
        self.processes = processes
        self.tell = None  # to the process that reports, from one that runs tests

    def pytest_runtestloop(self, session):
        if session.testsfailed or not session.items:  # pytest says what it could not collect
            return None
        bases = itertools.groupby(session.items, lambda item: item.cls.__mro__[-2])
        groups = [list(items) for _, items in bases]
        session.config._tmp_path_factory.getbasetemp()  # the one folder for all of them
        gc.freeze()  # or each would look through all that has been collected
        queue, filling = os.pipe()
        with open(filling, "wb") as filled:  # from the last: what is there takes longest
            filled.write(struct.pack(f"{len(groups)}H", *reversed(range(len(groups)))))
        fork = multiprocessing.get_context("fork")
        workers = {}
        try:
            for _ in range(self.processes):
                ours, theirs = fork.Pipe(duplex=False)
                share = (session.config, groups, queue, theirs)
                worker = fork.Process(target=self.work, args=share, daemon=True)
                worker.start()
                theirs.close()
                workers[ours] = worker
            self.report(session, workers)
        finally:
            os.close(queue)
            for worker in workers.values():
                if worker.is_alive():
                    os.kill(worker.pid, signal.SIGINT)  # Ctrl-C of a terminal was for it as well
                worker.join(10)
                worker.kill()
        return True

    def report(self, session, workers):
        """Pass on what the processes tell, until they have ended, or enough has failed."""
        config, hooks = session.config, session.config.hook
        restore = functools.partial(hooks.pytest_report_from_serializable, config=config)
        running = dict.fromkeys(workers)
        while running:
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            for ours in multiprocessing.connection.wait(list(running)):
                try:
                    name, arguments = ours.recv()
                except EOFError:
                    workers[ours].join()
                    if not workers[ours].exitcode:
                        del running[ours]
                        continue
                    how = f"{running[ours]} ended its process: {workers[ours].exitcode}"
                    raise session.Interrupted(how) from None
                if name == "pytest_runtest_logreport":
                    arguments["report"] = restore(data=arguments["report"])
                else:
                    running[ours] = arguments["nodeid"]
                getattr(hooks, name)(**arguments)

    def work(self, config, groups, queue, theirs):
        """Run tests in a process of their own, and tell what becomes of them."""
        plugins = config.pluginmanager
        reporter = plugins.unregister(name="terminalreporter")
        mute = type("Mute", (), {"_tw": reporter._tw})  # pytest asks it for the colours of a diff
        plugins.register(mute(), "terminalreporter")
        capture = plugins.getplugin("capturemanager")
        capture.stop_global_capturing()  # into files that the others have open too
        capture.start_global_capturing()
        self.config, self.tell = config, theirs.send

        def taken():
            while number := os.read(queue, 2):
                yield from groups[struct.unpack("H", number)[0]]

        items = taken()
        item = next(items, None)
        with contextlib.suppress(KeyboardInterrupt):
            while item is not None:
                following = next(items, None)  # which fixtures may stay
                item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
                item = following

    def pytest_runtest_logstart(self, nodeid, location):
        if self.tell:
            self.tell(("pytest_runtest_logstart", {"nodeid": nodeid, "location": location}))

    def pytest_runtest_logreport(self, report):
        if self.tell:
            hook = self.config.hook.pytest_report_to_serializable
            data = hook(config=self.config, report=report)
            self.tell(("pytest_runtest_logreport", {"report": data}))

    def pytest_runtest_logfinish(self, nodeid, location):
        if self.tell:
            self.tell(("pytest_runtest_logfinish", {"nodeid": nodeid, "location": location}))


def may_be_shared(arguments):
    """Tell whether they only say what is shown, when to stop, and which warnings are errors."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for flag in ("-q", "-v", "-x", "-l"):
        parser.add_argument(flag, action="count")
    for option in ("-W", "-r", "--tb", "--color", "--durations", "--maxfail"):
        parser.add_argument(option)
    return not parser.parse_known_args(arguments)[1]


def pytest_collection_finish(session):
    """Have all tests shared: by a process for each processor, and one for when those wait."""
    config = session.config
    if hasattr(os, "fork") and may_be_shared(config.invocation_params.args):
        config.pluginmanager.register(Sharing(min(os.cpu_count() or 1, 4) + 1))
