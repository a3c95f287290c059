#!/usr/bin/env python3
"""Measures what docs/performance.md tells, and writes its table anew.

    bench/performance.py build/release              everything but what needs 8 GiB
    bench/performance.py build/release --million    that as well
    bench/performance.py build/release --only traces

Run on a machine that does nothing else. Times are CPU time of the process measured, medians, except where a row says
wall. Nothing here passes or fails: a bar that is missed is a line in the table.
"""

import argparse
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- measured -->\n", "<!-- /measured -->\n"


class Usage:
    """What one process took: seconds of wall clock and CPU, MiB of memory at the most."""

    def __init__(self, wall, cpu, memory):
        self.wall, self.cpu, self.memory = wall, cpu, memory


def run(*command):
    """Runs a command; its output and its Usage. Exit codes 1 and 6 are other verdicts, not failures."""
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen([str(word) for word in command], stdout=out, stderr=subprocess.STDOUT)
        began = os.times().elapsed
        _, status, usage = os.wait4(process.pid, 0)
        wall = os.times().elapsed - began
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read().decode()
    if process.returncode not in (0, 1, 6):
        sys.exit(f"{' '.join(map(str, command))} ended with {process.returncode}:\n{text}")
    return text, Usage(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def median_usage(times, *command):
    usages = [run(*command)[1] for _ in range(times)]
    return Usage(*(statistics.median(getattr(each, name) for each in usages) for name in ("wall", "cpu", "memory")))


class Row:
    def __init__(self, what, bar, measured, holds):
        self.what, self.bar, self.measured, self.holds = what, bar, measured, holds

    def __str__(self):
        return f"| {self.what} | {self.bar} | {self.measured} | {'yes' if self.holds else '**no**'} |"


class Bench:
    def __init__(self, build, million, folder):
        self.build, self.million, self.folder = build, million, folder
        self.rollcall = build / "rollcall"

    def scenario(self, name, fields):
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps({"version": 1, "name": name, **fields}))
        return path

    # Rows of one subject each.

    def engine(self):
        options = ["--million"] if self.million else []
        text, _ = run(self.build / "engine_bench", "--benchmark_filter=all_reduce", *options)
        table = {}  # ranks: floor, engine, ratio, ns to create (floor, engine), bytes per rank (floor, engine)
        for line in text.splitlines():
            numbers = re.findall(r"[\d.]+", line)
            if re.match(r"^ +\d+ \|", line):
                table[int(numbers[0])] = [float(number) for number in numbers[1:]]
        for ranks, most in ((1000, 3), (100000, 2)):
            floor, engine, ratio = table[ranks][:3]
            yield Row(f"`all_reduce` of one float32, {ranks:,} ranks", f"{most} x the floor",
                      f"{engine:.0f} ns per rank and call, floor {floor:.0f} ns: {ratio:.2f} x", ratio <= most)
        yield Row("memory per rank, stack page included", "6 KiB", f"{table[100000][6] / 1024:.1f} KiB",
                  table[100000][6] <= 6 * 1024)
        start = table[1000][4] * 1024 / 1e6
        yield Row("start-up of 1,024 ranks", "10 ms", f"{start:.1f} ms", start < 10)
        if 1000000 in table:
            last = table[1000000]
            memory = last[6] * 1e6 / 2**30
            growth = last[1] / table[10000][1]
            yield Row("1,000,000 ranks x 10 collectives: memory", "8 GiB", f"{memory:.1f} GiB", memory < 8)
            yield Row("the same: creation", "3 s", f"{last[4] / 1e3:.1f} s", last[4] / 1e3 < 3)
            yield Row("the same: cost of a call against 10,000 ranks", "2.5 x", f"{growth:.1f} x", growth < 2.5)

    def in_flight(self):
        text, _ = run(self.build / "engine_bench", "--benchmark_filter=in_flight")
        flight = re.search(r"in_flight.*_median.*engine_ns=([\d.]+) floor_ns=([\d.]+)", text)
        engine, floor = map(float, flight.groups())
        yield Row("2,000 calls in flight, 3 groups, 4 streams (nccl), 1,000 ranks", "3 x the floor",
                  f"{engine:.0f} ns per rank and call, floor {floor:.0f} ns: {engine / floor:.2f} x",
                  engine <= 3 * floor)

    def messages(self):
        text, _ = run(self.build / "message_bench")
        cost = float(re.search(r"([\d.]+) ns per message", text).group(1))
        yield Row("a message sent and received, 1,000 ranks", "150 ns", f"{cost:.0f} ns", cost <= 150)

    def startup(self):
        four = self.scenario("four", {"world_size": 4, "program": [{"all_reduce": {}}]})
        usage = median_usage(15, self.rollcall, "run", "-q", four)
        yield Row("`rollcall run` of 4 ranks, whole process", "20 ms", f"{usage.cpu * 1e3:.0f} ms", usage.cpu < 0.02)

    def many_ranks(self):
        """The bar is a page of stack for each rank, and half of one for all else: a second page would show."""
        count = 100000
        many = self.scenario("many", {"world_size": count, "backend": "gloo",
                                      "program": [{"repeat": 10, "do": [{"all_reduce": {}}]}]})
        usage = median_usage(3, self.rollcall, "run", "-q", many)
        memory = usage.memory * 2**20 / count
        yield Row(f"`rollcall run` of {count:,} ranks x 10 collectives, memory", "6 KiB per rank",
                  f"{memory / 1024:.1f} KiB per rank, {usage.cpu:.1f} s", memory < 6 * 1024)

    def reading(self):
        calls = [{"all_reduce": {"numel": 1000 + i % 7, "label": f"layer{i % 50}.weight"}} for i in range(26000)]
        text = json.dumps(calls)
        path = self.folder / "lowered.json"
        with open(path, "w") as out:
            out.write('{"version": 1, "name": "lowered", "world_size": 64, "backend": "gloo", "programs": {')
            out.write(",\n".join(f'"{rank}": {text}' for rank in range(64)) + "}}")
        size = path.stat().st_size / 2**20
        usage = median_usage(3, self.rollcall, "run", "-q", path)
        path.unlink()
        yield Row(f"reading {size:.0f} MiB of programs of 64 ranks, and running them", "3 s per 100 MiB",
                  f"{usage.cpu:.1f} s, {usage.memory:.0f} MiB", usage.cpu / size * 100 < 3)

    def training(self):
        text = (ROOT / "bench" / "ddp_join.json").read_text()
        for backend in ("nccl", "gloo"):
            path = self.folder / f"ddp_{backend}.json"
            path.write_text(re.sub(r'"backend": *"\w+"', f'"backend": "{backend}"', text))
            usage = median_usage(3, self.rollcall, "run", "-q", path)
            yield Row(f"10,000 DDP ranks x 50 batches x 20 buckets under Join, {backend}", "10 s, 2 GB",
                      f"{usage.cpu:.1f} s, {usage.memory:.0f} MiB", usage.cpu < 10 and usage.memory < 2000)

    def traces(self):
        text, _ = run(self.build / "trace_bench")
        for name, slices, seconds in re.findall(r"^(\S+) +(\d+) +([\d.]+)", text, re.MULTILINE):
            if slices == "1000000":
                yield Row(f"1,000,000 slices as {name}", "1.5 s", f"{seconds} s", float(seconds) < 1.5)

    def diagnosis(self):
        for ranks, most, memory in ((64, 0.3, 1000), (1024, 3, 1000)):
            dumps = self.folder / f"dumps{ranks}"
            dumps.mkdir()
            run(self.build / "write_dumps", dumps, ranks, 2000)
            usage = median_usage(3, self.rollcall, "diagnose", "-q", dumps)
            for file in dumps.iterdir():
                file.unlink()
            yield Row(f"`diagnose`, {ranks:,} ranks x 2,000 records, wall", f"{most} s, 1 GB",
                      f"{usage.wall:.2f} s, {usage.memory:.0f} MiB", usage.wall < most and usage.memory < memory)

    def judging(self):
        """The slowest of ten kinds of jobs; a text line for each is printed by the tests."""
        text, _ = run(self.build / "rollcall_tests", "[large-jobs]")
        costs = [float(ms) for ms in re.findall(r"([\d.]+) ms +\d+ lines", text)]
        lines = [int(count) for count in re.findall(r" ms +(\d+) lines", text)]
        yield Row("4,096 ranks, one culprit: from the end of the run to the text", "100 ms, 40 lines",
                  f"{max(costs):.0f} ms, {max(lines)} lines", max(costs) < 100 and max(lines) < 40)

    def testing(self):
        folder = self.folder / "thousand"
        folder.mkdir()
        for i in range(1000):
            fields = {"version": 1, "name": f"case {i}", "world_size": 2 + i % 7, "inputs": [3 + i % 5] * (2 + i % 7),
                      "program": [{"for_each_input": "x", "do": [{"all_reduce": {"numel": 10 + i}}]}]}
            (folder / f"{i}.json").write_text(json.dumps(fields))
        usage = median_usage(3, self.rollcall, "test", "-q", "-j", 2, folder)
        yield Row("`rollcall test -j 2` of 1,000 scenarios, wall", "5 s", f"{usage.wall:.1f} s", usage.wall < 5)

    def instructions(self):
        """Of one configuration: they do not depend on load."""
        if subprocess.run(["which", "valgrind"], capture_output=True).returncode != 0:
            return
        small, large = (self.counted(calls) for calls in (100, 1100))
        yield Row("instructions per rank and `all_reduce`, 200 ranks", "", f"{(large - small) / (200 * 1000):.0f}", True)

    def counted(self, calls):
        path = self.scenario("counted", {"world_size": 200, "backend": "gloo",
                                         "program": [{"repeat": calls, "do": [{"all_reduce": {"numel": 1}}]}]})
        text, _ = run("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", self.rollcall, "run", "-q", path)
        return int(re.search(r"Collected : (\d+)", text).group(1))


# Reading is last: its text stays in this process, and a child's peak begins with its parent's.
SUBJECTS = ("engine", "in_flight", "messages", "startup", "many_ranks", "training", "traces", "diagnosis", "judging",
            "testing", "instructions", "reading")


def machine():
    names = re.findall(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return f"{len(names)} x {names[0] if names else platform.machine()}, {platform.system()} {platform.release()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="a build folder of the release preset")
    parser.add_argument("--million", action="store_true", help="with a million ranks: 8 GiB and a minute")
    parser.add_argument("--only", choices=SUBJECTS, help="print this subject's rows, and leave the page as it is")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments.build.resolve(), arguments.million, pathlib.Path(folder))
        rows = []
        for subject in [arguments.only] if arguments.only else SUBJECTS:
            for row in getattr(bench, subject)():
                print(row, flush=True)
                rows.append(row)
    if arguments.only:
        return
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True).stdout
    head = f"{machine()}; commit {commit.strip()}.\n\n| what | bar | measured | holds |\n|---|---|---|---|\n"
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(before + BEGIN + head + "\n".join(map(str, rows)) + "\n" + END + after)


if __name__ == "__main__":
    main()
