"""Runs scenarios of rollcall as pytest tests.

    pip install .            (in this folder), or
    pytest -p pytest_rollcall            with this file on the path

Every file whose name ends with .rollcall.json, or matches a pattern of the ini option `rollcall_files`, is
collected like a test module, and each scenario in it is a test. It passes when the scenario meets its
"expect". Otherwise the failure is rollcall's report: which rank is missing, where and why.

A PyTorch training script, or a function, is tested on simulated ranks:

    def test_training(rollcall_world):
        assert rollcall_world(4).run("train.py", "--epochs", "1").ok
        assert rollcall_world(4).run(train, 0.1).culprits == []     # train(0.1), on every rank

Options (command line, or ini file):

    --rollcall PROGRAM   rollcall_program    the program; by default $ROLLCALL, or `rollcall` on the path
                         rollcall_files      patterns of file names or paths, one per line
                         rollcall_args       extra arguments for every run, such as --seed 7
                         rollcall_timeout    seconds of wall-clock time for one scenario; 60
"""

import fnmatch
import json
import os
import shutil
import subprocess
import sys

import pytest

EXPECTED, DIFFERS, INTERRUPTED, INTERNAL_ERROR, INVALID, NOTHING_SELECTED, SKIPPED = 0, 1, 2, 3, 4, 5, 77


def pytest_addoption(parser):
    group = parser.getgroup("rollcall")
    group.addoption("--rollcall", metavar="PROGRAM", help="the rollcall program")
    parser.addini("rollcall_program", "the rollcall program", default="")
    parser.addini("rollcall_files", "patterns of scenario files", type="linelist", default=["*.rollcall.json"])
    parser.addini("rollcall_args", "extra arguments for every run", type="args", default=[])
    parser.addini("rollcall_timeout", "seconds for one scenario", default="60")


def pytest_configure(config):
    config.addinivalue_line("markers", "rollcall: a scenario of rollcall")


def pytest_collect_file(file_path, parent):
    for pattern in parent.config.getini("rollcall_files"):
        if fnmatch.fnmatch(file_path.name, pattern) or file_path.match(pattern):
            return ScenarioFile.from_parent(parent, path=file_path)
    return None


def program(config):
    """The path of rollcall. Raises CollectError if it is not found."""
    wanted = (
        config.getoption("rollcall")
        or config.getini("rollcall_program")
        or os.environ.get("ROLLCALL")
        or "rollcall"
    )
    beside_python = os.path.join(os.path.dirname(sys.executable), wanted)
    found = shutil.which(wanted) or (shutil.which(beside_python) if os.sep not in wanted else None)
    if found is None:
        raise pytest.Collector.CollectError(
            f"cannot find the program '{wanted}'; install rollcall, or pass its path as --rollcall PROGRAM"
        )
    return found


class ScenarioFile(pytest.File):
    """A file with one scenario, or with several cases of one."""

    def collect(self):
        listed = run(self.config, ["test", "--list", relative(self)], timeout=None)
        if listed.returncode != EXPECTED:
            raise self.CollectError(listed.stderr.strip())
        for address in listed.stdout.splitlines():
            yield Scenario.from_parent(self, name=address.partition("::")[2])


class Scenario(pytest.Item):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.add_marker("rollcall")

    def runtest(self):
        color = "always" if self.config.get_terminal_writer().hasmarkup else "never"
        arguments = ["test", f"{relative(self)}::{self.name}", "--color", color, *self.config.getini("rollcall_args")]
        try:
            result = run(self.config, arguments, timeout=float(self.config.getini("rollcall_timeout")))
        except subprocess.TimeoutExpired as error:
            raise ScenarioFailed(f"no verdict after {error.timeout:g} s of wall-clock time: see rollcall_timeout")
        if result.returncode == SKIPPED:
            pytest.skip(result.stderr.strip() or "not possible on this machine")
        if result.returncode == INTERRUPTED:
            raise KeyboardInterrupt
        if result.returncode != EXPECTED:
            raise ScenarioFailed(result.stdout + result.stderr)
        self.add_report_section("call", "rollcall", result.stdout)

    def repr_failure(self, excinfo):
        if isinstance(excinfo.value, ScenarioFailed):
            return str(excinfo.value).rstrip()
        return super().repr_failure(excinfo)

    def reportinfo(self):
        return self.path, 0, f"{self.path.name}: {self.name}"


class ScenarioFailed(Exception):
    """The scenario did not meet its expectations. The text is the report."""


def relative(node):
    """The file relative to the folder where pytest was started, like pytest's messages: a replay can be pasted."""
    return os.path.relpath(node.path, node.config.invocation_params.dir)


def run(config, arguments, timeout):
    """Runs rollcall in the folder where pytest was started."""
    return subprocess.run(
        [program(config), *arguments],
        cwd=config.invocation_params.dir,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=timeout,
    )


@pytest.fixture
def rollcall_world(request, tmp_path):
    """A job of this many ranks in the simulator: rollcall_world(4).run(script or function, arguments...)."""
    return lambda world_size: World(request, tmp_path, world_size)


class World:
    def __init__(self, request, folder, world_size):
        self._request, self._folder, self._world_size = request, folder, world_size

    def run(self, script, *arguments, answers="simulate"):
        """Runs a script with arguments, or a function of a module, on every rank, and returns the result.

        If the test fails, the report is below its traceback. `answers`: "simulate", or "fake": each rank alone.
        Skips the test if there is no Python with torch.
        """
        if callable(script):
            arguments = [json.dumps(list(arguments))]
            script = self._script_for(script)
        scenario, report, config = self._folder / "recorded.json", self._folder / "report.json", self._request.config
        line = ["record", "--world-size", str(self._world_size), f"--{answers}", "-o", str(scenario)]
        result = run(config, [*line, "--report", f"json={report}", str(script), *map(str, arguments)],
                     timeout=float(config.getini("rollcall_timeout")))
        if result.returncode == SKIPPED:
            pytest.skip(result.stderr.strip())
        if result.returncode not in (EXPECTED, DIFFERS):
            raise ScenarioFailed(result.stdout + result.stderr)
        self._request.node.add_report_section("call", "rollcall", result.stdout)
        return Recorded(json.loads(report.read_text(encoding="utf-8")), scenario, result.stdout, result.stderr)

    def _script_for(self, function):
        """A script that imports the function's module from its file, and calls it."""
        module = sys.modules[function.__module__]
        script = self._folder / "call.py"
        script.write_text(
            "import importlib.util, json, sys\n"
            f"spec = importlib.util.spec_from_file_location({module.__name__!r}, {module.__file__!r})\n"
            "module = importlib.util.module_from_spec(spec)\n"
            f"sys.modules[{module.__name__!r}] = module\n"
            "spec.loader.exec_module(module)\n"
            f"module.{function.__qualname__}(*json.loads(sys.argv[1]))\n"
        )
        return script


class Recorded:
    """The result of a script. `report`: rollcall's JSON report; `text`: the same for people; `scenario`: a file for
    `rollcall run`; `output`: what the ranks printed, and rollcall's remarks."""

    def __init__(self, report, scenario, text, output):
        self.report, self.scenario, self.text, self.output = report, scenario, text, output
        self.verdict = report["verdict"]
        self.culprits = report.get("culprits", [])
        self.ok = self.verdict == "ok"

    def __repr__(self):
        """The sentence that an assert shows: `assert False, where False = <it>.ok`."""
        place = self.report.get("at", {}).get("site", "")
        return f"<{self.text.partition(chr(10))[0]}{', at ' + place if place else ''}>"
