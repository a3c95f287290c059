#!/usr/bin/env python3
"""Watches the jobs of watched.py and compares the reports with the truth: which ranks, and how soon after the last
move.

    python3 watch_jobs.py ROLLCALL FOLDER [--seconds 20] [--together 1] [CASE ...]
    python3 watch_jobs.py ROLLCALL FOLDER --seconds 3600 --together 12 hour

A CASE is a name, or the prefix of several. The rings stay in a folder per case. The exit code is 1 if a culprit is
wrong or late, or if a healthy job gets an alarm or ends.
"""
import argparse
import concurrent.futures
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
    parser.add_argument("--seconds", type=float, default=20, help="from the job's first move")
    parser.add_argument("--python", default="python3")
    parser.add_argument("--together", type=int, default=1, help="jobs that run at the same time")
    parser.add_argument("--after")
    parser.add_argument("--port", type=int, default=29300 + os.getpid() % 400)
    parser.add_argument("cases", nargs="*")
    return parser.parse_intermixed_args()


OPTIONS = options()
HERE = pathlib.Path(__file__).resolve().parent
LATEST_S = 10
LATEST_START_S = 120  # a busy machine takes long to import torch


def truths():
    command = [OPTIONS.python, str(HERE / "watched.py"), "--truth"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return json.loads(text.splitlines()[-1])


def last_event(folder):
    """Returns when something last moved, according to the rings."""
    last = 0
    for path in folder.glob("*.ring"):
        data = path.read_bytes()
        if len(data) < 4096:
            continue  # it is being made
        capacity, = struct.unpack_from("<I", data, 28)
        for index in range(capacity):
            last = max(last, *struct.unpack_from("<2Q", data, 4096 + index * 64 + 8))
    return last / 1e9


def end_all(job):
    """Ends the supervisor first, gracefully, so that it removes its folders."""
    if job.poll() is None:
        job.send_signal(signal.SIGTERM)
    try:
        job.wait(5)
    except subprocess.TimeoutExpired:
        pass
    try:
        os.killpg(job.pid, signal.SIGKILL)  # the remaining processes
    except ProcessLookupError:
        pass
    job.wait()


def watch(case, port):
    """Returns the reports, each with the seconds since the last move, and whether the job ran as long as it was
    watched."""
    folder = OPTIONS.folder / case
    folder.mkdir(parents=True, exist_ok=True)
    command = [OPTIONS.rollcall, "watch", "--format", "json", "--records", str(folder)]
    command += ["--after", OPTIONS.after] if OPTIONS.after else []
    for old in folder.iterdir():
        old.unlink()
    job = subprocess.Popen([*command, "--", OPTIONS.python, str(HERE / "watched.py"), case, str(port)],
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
    os.set_blocking(job.stderr.fileno(), False)
    begin, end = time.monotonic(), None
    said, reports = b"", []
    while time.monotonic() < (end or begin + LATEST_START_S):
        if end is None and last_event(folder) > 0:
            end = time.monotonic() + OPTIONS.seconds
        said += job.stderr.read() or b""
        while b"\n}" in said and b"{\n" in said[:said.index(b"\n}")]:
            first, stop = said.index(b"{\n"), said.index(b"\n}") + 2
            reports.append((time.time() - last_event(folder), json.loads(said[first:stop])))
            said = said[stop:]
        names_ranks = any(report["culprits"] for _, report in reports)
        if job.poll() is not None or (names_ranks and not case.startswith("recovers")):
            break
        time.sleep(0.05)
    ran = job.poll() is None
    end_all(job)
    said += job.stderr.read() or b""
    (folder / "said.txt").write_bytes(said)
    return reports, ran


def chosen(truth):
    """Returns all cases except those that are meant to run for an hour."""
    asked = OPTIONS.cases or [case for case in truth if not case.startswith("hour_")]
    return [case for each in asked for case in truth if (case == each if each in truth else case.startswith(each))]


def compare(case, expected, port):
    """Returns whether the reports are right, and a description."""
    begin = time.monotonic()
    reports, ran = watch(case, port)
    culprits = [expected["culprits"], *expected["accept_culprits"]]
    verdicts = [expected["verdict"], *expected["accept"]]
    if not reports:
        right = ran and (not expected["culprits"] or [] in culprits)
        text = f"nothing was said for {time.monotonic() - begin:.0f} s" + ("" if ran else ", and the job ended")
    else:
        # A machine that is busy may halt all ranks for a moment. What is said then blames nobody.
        after, report = next((said for said in reports if said[1]["culprits"]), reports[0])
        named, verdict = report["culprits"], report["verdict"]
        right = named in culprits and after <= LATEST_S and expected["verdict"] != "no_fault"
        exact = "" if verdict in verdicts else f" (kind, not {expected['verdict']})"
        text = f"{verdict} {named} after {after:.1f} s{exact}"
    return right, f"{case}: {text}; truth {expected['verdict']} {expected['culprits']}"


def main():
    truth = truths()
    wrong = 0
    with concurrent.futures.ThreadPoolExecutor(OPTIONS.together) as pool:
        jobs = [pool.submit(compare, case, truth[case], OPTIONS.port + number)
                for number, case in enumerate(chosen(truth))]
        for job in jobs:
            right, text = job.result()
            wrong += not right
            print(f"{'right' if right else 'WRONG'}  {text}", flush=True)
    print(f"{wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
