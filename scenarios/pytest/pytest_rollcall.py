"""Scenarios of rollcall as tests of pytest.

    pip install .            (in this folder), or
    pytest -p pytest_rollcall            with this file on the path

Every file whose name ends with .rollcall.json, or matches a pattern of the ini option `rollcall_files`, is
collected like a test module, and each scenario in it is a test. It passes when the scenario comes out as its
"expect" says. When it does not, the failure is rollcall's report: who is missing, where, why.

Options (command line, or ini file):

    --rollcall PROGRAM   rollcall_program    the program; otherwise $ROLLCALL, otherwise `rollcall` on the path
                         rollcall_files      patterns of file names or paths, one a line
                         rollcall_args       more arguments for every run, such as --seed 7
                         rollcall_timeout    seconds of wall-clock time for one scenario; 60
"""

import fnmatch
import os
import shutil
import subprocess

import pytest

EXPECTED, DIFFERS, INTERRUPTED, INTERNAL_ERROR, INVALID, NOTHING_SELECTED, SKIPPED = 0, 1, 2, 3, 4, 5, 77


def pytest_addoption(parser):
    group = parser.getgroup("rollcall")
    group.addoption("--rollcall", metavar="PROGRAM", help="the rollcall program")
    parser.addini("rollcall_program", "the rollcall program", default="")
    parser.addini("rollcall_files", "patterns of scenario files", type="linelist", default=["*.rollcall.json"])
    parser.addini("rollcall_args", "more arguments for every run", type="args", default=[])
    parser.addini("rollcall_timeout", "seconds for one scenario", default="60")


def pytest_configure(config):
    config.addinivalue_line("markers", "rollcall: a scenario of rollcall")


def pytest_collect_file(file_path, parent):
    for pattern in parent.config.getini("rollcall_files"):
        if fnmatch.fnmatch(file_path.name, pattern) or file_path.match(pattern):
            return ScenarioFile.from_parent(parent, path=file_path)
    return None


def program(config):
    """The path of rollcall. Raises CollectError when there is none."""
    wanted = (
        config.getoption("rollcall")
        or config.getini("rollcall_program")
        or os.environ.get("ROLLCALL")
        or "rollcall"
    )
    found = shutil.which(wanted)
    if found is None:
        raise pytest.Collector.CollectError(
            f"there is no program '{wanted}': install rollcall, or say where it is with --rollcall PROGRAM"
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
    """The scenario came out otherwise. The text is the report."""


def relative(node):
    """The file, relative to where pytest was started, as pytest's own messages are: a replay can be pasted."""
    return os.path.relpath(node.path, node.config.invocation_params.dir)


def run(config, arguments, timeout):
    """Runs rollcall where pytest was started."""
    return subprocess.run(
        [program(config), *arguments],
        cwd=config.invocation_params.dir,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=timeout,
    )
