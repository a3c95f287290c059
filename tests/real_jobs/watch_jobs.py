#!/usr/bin/env python3
"""Watches the jobs of watched.py and compares what is said with the truth: who, and how long after nothing moved.

    python3 watch_jobs.py ROLLCALL FOLDER [--seconds 20] [CASE ...]

A folder per case is left, with the rings. Exit code 1 if a culprit is wrong or late, or a healthy job gets an alarm.
"""
import argparse
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import time


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("rollcall")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--python", default="python3")
    parser.add_argument("--after")
    parser.add_argument("--port", type=int, default=29300 + os.getpid() % 400)
    parser.add_argument("cases", nargs="*")
    return parser.parse_args()


OPTIONS = options()
HERE = pathlib.Path(__file__).resolve().parent
LATEST_S = 10


def truths():
    command = [OPTIONS.python, str(HERE / "watched.py"), "--truth"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return json.loads(text.splitlines()[-1])


def last_event(folder):
    """When something last moved, by the rings."""
    last = 0
    for path in folder.glob("*.ring"):
        data = path.read_bytes()
        capacity, = struct.unpack_from("<I", data, 28)
        for index in range(capacity):
            last = max(last, *struct.unpack_from("<2Q", data, 4096 + index * 64 + 8))
    return last / 1e9


def end_all(job):
    """The supervisor first, politely: it takes its folders with it."""
    if job.poll() is None:
        job.send_signal(signal.SIGTERM)
    try:
        job.wait(5)
    except subprocess.TimeoutExpired:
        pass
    try:
        os.killpg(job.pid, signal.SIGKILL)  # whoever is left
    except ProcessLookupError:
        pass
    job.wait()


def watch(case, port):
    """The reports, each with the seconds since something moved."""
    folder = OPTIONS.folder / case
    folder.mkdir(parents=True, exist_ok=True)
    command = [OPTIONS.rollcall, "watch", "--format", "json", "--records", str(folder)]
    command += ["--after", OPTIONS.after] if OPTIONS.after else []
    for old in folder.iterdir():
        old.unlink()
    job = subprocess.Popen([*command, "--", OPTIONS.python, str(HERE / "watched.py"), case, str(port)],
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
    os.set_blocking(job.stderr.fileno(), False)
    end = time.monotonic() + OPTIONS.seconds
    said, reports = b"", []
    while time.monotonic() < end:
        said += job.stderr.read() or b""
        while b"\n}" in said and b"{\n" in said[:said.index(b"\n}")]:
            begin, stop = said.index(b"{\n"), said.index(b"\n}") + 2
            reports.append((time.time() - last_event(folder), json.loads(said[begin:stop])))
            said = said[stop:]
        if job.poll() is not None or (reports and not case.startswith("recovers")):
            break
        time.sleep(0.05)
    end_all(job)
    said += job.stderr.read() or b""
    (folder / "said.txt").write_bytes(said)
    return reports


def main():
    truth = truths()
    wrong = 0
    for number, case in enumerate(OPTIONS.cases or truth):
        expected = truth[case]
        reports = watch(case, OPTIONS.port + number)
        culprits = [expected["culprits"], *expected["accept_culprits"]]
        verdicts = [expected["verdict"], *expected["accept"]]
        if not reports:
            right, text = not expected["culprits"] or [] in culprits, "nothing was said"
        else:
            after, report = reports[0]
            named, verdict = report["culprits"], report["verdict"]
            right = named in culprits and after <= LATEST_S and expected["verdict"] != "no_fault"
            exact = "" if verdict in verdicts else f" (kind, not {expected['verdict']})"
            text = f"{verdict} {named} after {after:.1f} s{exact}"
        wrong += not right
        print(f"{'right' if right else 'WRONG'}  {case}: {text}; truth {expected['verdict']} {expected['culprits']}",
              flush=True)
    print(f"{wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
