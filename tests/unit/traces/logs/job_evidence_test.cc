// The files of a job besides its recordings: every kind in tests/data/job_artifacts, and lines of each.

#include "traces/logs/job_evidence.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include <fmt/core.h>

#include "sim/diagnose/dump_judge.h"
#include "sim/diagnose/log_judge.h"
#include "tests/catch.h"
#include "tests/unit/traces/folder.h"
#include "traces/formats/recordings.h"

namespace rollcall::traces::job_evidence_test {
namespace {

namespace fs = std::filesystem;
using check::LogFact;
using Kind = LogFact::Kind;

Diagnosis diagnosis_of(const std::string& path) { return check::judge_dump(read_recordings({path}).job); }

// What a log says, apart from who wrote it. `rank`: -1 if the lines say whose they are.
std::optional<std::vector<LogFact>> facts_in(const std::string& log, Rank rank, const std::string& file) {
  std::optional<std::vector<LogFact>> facts = read_text_evidence(log, rank, file);
  if (facts) {
    std::erase_if(*facts, [](const LogFact& fact) { return fact.kind == Kind::wrote; });
  }
  return facts;
}

LogFact only_fact(const std::string& log, Rank rank, const std::string& file) {
  const auto facts = facts_in(log, rank, file);
  REQUIRE(facts);
  REQUIRE(facts->size() == 1);
  return facts->front();
}

}  // namespace

TEST_CASE("everything that jobs leave is read and blames whom it should", "[flight-recorder][job-log]") {
  const fs::path data = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data/job_artifacts";
  for (const fs::directory_entry& set : fs::directory_iterator(data)) {
    std::ifstream in(set.path() / "truth.json");
    const nlohmann::json truth = nlohmann::json::parse(in);
    auto verdicts = truth.value("accept", std::set<std::string>());
    verdicts.insert(truth.at("verdict"));
    const Diagnosis diagnosis = diagnosis_of(set.path().string());
    CAPTURE(set.path().filename().string(), diagnosis.finding.headline);
    CHECK(verdicts.contains(std::string(to_string(diagnosis.finding.kind))));
    CHECK(diagnosis.finding.culprits == RankSet::of(truth.at("culprits").get<std::vector<Rank>>()));
  }
}

TEST_CASE("lines of ranks that alternate, behind times and in color, are read rank by rank", "[job-log]") {
  const std::string log =
      "2026-11-25T10:00:01Z [rank0]: Traceback (most recent call last):\n"
      "2026-11-25T10:00:01Z \033[31m[rank1]: Traceback (most recent call last):\033[0m\n"
      "2026-11-25T10:00:02Z [rank0]:   File \"/home/me/train.py\", line 7, in main\n"
      "2026-11-25T10:00:02Z [rank1]:   File \"/home/me/train.py\", line 9, in load\n"
      "2026-11-25T10:00:03Z [rank0]: RuntimeError: Connection closed by peer [127.0.0.1]:1\n"
      "2026-11-25T10:00:03Z [rank1]: IndexError: list index out of range\n";
  const auto facts = facts_in(log, -1, "job.log");
  REQUIRE(facts);
  REQUIRE(facts->size() == 2);
  CHECK((facts->at(0).kind == Kind::lost_peer && facts->at(0).ranks == RankSet{0}));
  CHECK((facts->at(1).kind == Kind::raised && facts->at(1).ranks == RankSet{1}));
  CHECK(facts->at(1).site == "/home/me/train.py:9");
}

TEST_CASE("a traceback behind the times of a collector of logs is read", "[job-log]") {
  for (const std::string time : {"2026-11-25T10:00:01.123456789Z ", "2026-11-25T10:00:01.1+01:00 stderr F ",
                                 "2026-11-25 10:00:01,123 "}) {
    const std::string log = time + "Traceback (most recent call last):\n" + time +
                            "  File \"/home/me/train.py\", line 7, in main\n" + time + "    x = y[3]\n" +
                            time + "IndexError: list index out of range\n";
    const LogFact fact = only_fact(log, 2, "rank_2.log");
    CHECK((fact.kind == Kind::raised && fact.site == "/home/me/train.py:7"));
    CHECK(fact.text == "IndexError: list index out of range");
  }
}

TEST_CASE("colors inside colors are no deeper than their text is long", "[job-log]") {
  constexpr std::size_t deep = 1'000'000;
  const std::string nested = std::string(deep, '\033') + std::string(2 * deep, '[');
  CHECK_FALSE(read_text_evidence(nested, 1, "rank_1.log"));
}

TEST_CASE("an error that a rank has logged and survived is not the one that it ended with", "[job-log]") {
  const std::string handled =
      "ERROR:root:a bad sample\nTraceback (most recent call last):\n  File \"train.py\", line 7, in load\n"
      "ValueError: bad sample\n";
  const std::string last =
      "step 2\nTraceback (most recent call last):\n  File \"train.py\", line 9, in main\n"
      "RuntimeError: Connection closed by peer\n";
  const auto of = [](const std::string& log) {
    std::vector<Kind> kinds;
    const auto facts = read_text_evidence(log, 1, "rank_1.log");
    for (const LogFact& fact : facts.value()) {
      kinds.push_back(fact.kind);
    }
    return kinds;
  };
  CHECK(of(handled + last) == std::vector{Kind::lost_peer});
  CHECK(of(handled) == std::vector{Kind::raised});
  const std::string chain = "\nDuring handling of the above exception, another exception occurred:\n\n";
  CHECK(of(handled + chain + last.substr(7)) == std::vector{Kind::raised, Kind::lost_peer});
}

TEST_CASE("a program's own error is told from one that others cause", "[job-log]") {
  const std::string own =
      "Traceback (most recent call last):\n  File \"train.py\", line 7, in main\n    x = y[3]\n"
      "IndexError: list index out of range\n";
  const std::string lost =
      "[rank1]: Traceback (most recent call last):\n"
      "[rank1]:   File \"/lib/python3/torch/distributed/distributed_c10d.py\", line 9, in all_reduce\n"
      "[rank1]: RuntimeError: [pair.cc:547] Connection closed by peer [127.0.0.1]:1\n";
  const LogFact of_own = only_fact(own, 0, "rank_0.log");
  CHECK(of_own.kind == Kind::raised);
  CHECK(of_own.text == "IndexError: list index out of range");
  CHECK(of_own.site == "train.py:7");
  CHECK(of_own.place() == "rank_0.log:4");
  const LogFact of_lost = only_fact(lost, -1, "job.log");
  CHECK(of_lost.kind == Kind::lost_peer);
  CHECK(of_lost.ranks == RankSet{1});
  CHECK(of_lost.op == "all_reduce");
}

TEST_CASE("a rank whose log goes on after an error as before it has survived the error", "[job-log]") {
  const std::string before = "setting up\nepoch 0 step 10: loss 2.31\nepoch 0 step 20: loss 2.25\n";
  const std::string error =
      "ERROR: a bad sample\nTraceback (most recent call last):\n  File \"train.py\", line 7, in load\n"
      "ValueError: bad sample\n";
  const auto kind_of = [](const std::string& log) { return only_fact(log, 1, "rank_1.log").kind; };
  CHECK(kind_of(before + error + "epoch 1 step 5: loss 1.97\n") == Kind::logged);
  CHECK(kind_of(before + error) == Kind::raised);
  CHECK(kind_of(before + error + "[W1125 10:00:01.1 ProcessGroupNCCL.cpp:1250] Warning: not destroyed\n") ==
        Kind::raised);
  CHECK(kind_of("[W1 a.cpp:1] Warning: x\n" + error + "[W2 a.cpp:1] Warning: x\n") == Kind::raised);
  CHECK(kind_of(error + "summary: 12 steps\nsummary: 13 steps\n") == Kind::raised);
  const auto survived = check::judge_log(*read_text_evidence(before + error + before, 1, "rank_1.log"));
  REQUIRE(survived);
  CHECK((survived->finding.kind == FindingKind::no_fault && survived->may_be_healthy));
}

TEST_CASE("an error of a network that the program reads from is its own, and c10d's is not", "[job-log]") {
  const auto kind_of = [](const std::string& frame, const std::string& error) {
    const std::string log =
        "Traceback (most recent call last):\n  File \"train.py\", line 7, in main\n    load(timeout=3)\n" +
        frame + error + "\n";
    return only_fact(log, 1, "rank_1.log").kind;
  };
  const auto in = [](const std::string& file) { return "  File \"" + file + "\", line 9, in f\n"; };
  CHECK(kind_of("", "ConnectionResetError: [Errno 104] Connection reset by peer") == Kind::raised);
  CHECK(kind_of(in("/lib/python3/ssl.py"), "TimeoutError: The read operation timed out") == Kind::raised);
  CHECK(kind_of(in("/x/urllib3/response.py"), "urllib3.exceptions.ReadTimeoutError: Read timed out.") ==
        Kind::raised);
  CHECK(kind_of(in("/x/torch/utils/data/dataloader.py"),
                "RuntimeError: DataLoader timed out after 3 seconds") == Kind::raised);
  CHECK(kind_of("", "RuntimeError: Socket Timeout") == Kind::gave_up);
  CHECK(kind_of("", "torch.distributed.DistStoreError: wait timeout after 300000ms, keys: /k") ==
        Kind::gave_up);
  CHECK(kind_of(in("/x/torch/distributed/rendezvous.py"),
                "TimeoutError: The client socket has timed out after 3s") == Kind::gave_up);
  CHECK(kind_of(in("/x/torch/autograd/graph.py"), "RuntimeError: [pair.cc:547] Connection closed by peer") ==
        Kind::lost_peer);
}

TEST_CASE("an error that answers the loss of a peer is not the rank's own", "[job-log]") {
  const std::string of_c10d =
      "Traceback (most recent call last):\n  File \"train.py\", line 7, in step\n"
      "RuntimeError: Connection closed by peer\n";
  const std::string own =
      "Traceback (most recent call last):\n  File \"train.py\", line 9, in main\n"
      "TrainingFailed: step 3\n";
  const std::string cause = "\nThe above exception was the direct cause of the following exception:\n\n";
  const LogFact fact = only_fact(of_c10d + cause + own, 1, "rank_1.log");
  CHECK(fact.kind == Kind::lost_peer);
  const auto reversed = read_text_evidence(own + cause + of_c10d, 1, "rank_1.log");
  REQUIRE(reversed);
  CHECK(reversed->front().kind == Kind::raised);
}

TEST_CASE("torchrun's summary says what the first rank to fail raised, or its exit code", "[job-log]") {
  const fs::path console =
      fs::path(ROLLCALL_SOURCE_DIR) / "tests/data/job_artifacts/torchelastic/console.log";
  CHECK(diagnosis_of(console.string()).finding.cause == "ValueError: bad batch in rank 2");
  const LogFact fact = only_fact(
      "Root Cause (first observed failure):\n[0]:\n  rank      : 3 (local_rank: 1)\n  exitcode  : -9 (pid: "
      "71)\n"
      "  error_file: <N/A>\n  traceback : Signal 9 (SIGKILL) received by PID 71\n=====\n",
      -1, "console.log");
  CHECK(fact.ranks == RankSet{3});
  CHECK(fact.text == "exit code -9 (pid: 71)");
}

TEST_CASE("torch.multiprocessing.spawn says which of its processes failed", "[job-log]") {
  // What torch 1.13 prints, without lines of sockets and carets.
  const std::string parent =
      "Traceback (most recent call last):\n  File \"/home/me/train.py\", line 12, in <module>\n"
      "    mp.spawn(main, nprocs=3)\n"
      "  File \"/usr/lib/python3/dist-packages/torch/multiprocessing/spawn.py\", line 198, in "
      "start_processes\n"
      "    while not context.join():\n";
  const std::string raised =
      "torch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 1 terminated with the following "
      "error:\n"
      "Traceback (most recent call last):\n"
      "  File \"/usr/lib/python3/dist-packages/torch/multiprocessing/spawn.py\", line 69, in _wrap\n"
      "    fn(i, *args)\n  File \"/home/me/train.py\", line 7, in main\n    raise ValueError(\"bad batch\")\n"
      "ValueError: bad batch\n\n";
  const std::string killed =
      "torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGKILL\n";
  const LogFact of_raised = only_fact(parent + raised, -1, "job.log");
  CHECK((of_raised.kind == Kind::raised && of_raised.ranks == RankSet{1}));
  CHECK(of_raised.site == "/home/me/train.py:7");
  const LogFact of_killed = only_fact(parent + killed, -1, "job.log");
  CHECK((of_killed.kind == Kind::ended && of_killed.ranks == RankSet{1}));
  CHECK(of_killed.text == "terminated with signal SIGKILL");
}

TEST_CASE("launchers' prefixes say whose a line is", "[job-log]") {
  const std::string text =
      "[default1]:[rank5]: Traceback (most recent call last):\n"
      "[default1]:[rank5]:   File \"a.py\", line 1, in f\n[default1]:[rank5]: ValueError: x\n"
      "7: Traceback (most recent call last):\n7:   File \"a.py\", line 1, in f\n7: ValueError: y\n";
  const auto facts = facts_in(text, -1, "slurm.out");
  REQUIRE(facts);
  REQUIRE(facts->size() == 2);
  CHECK(facts->front().ranks == RankSet{5});
  CHECK(facts->back().ranks == RankSet{7});
  CHECK(facts->back().text == "ValueError: y");
}

TEST_CASE("the number of a batch job is no rank", "[job-log]") {
  const test::Folder folder;
  folder.write("slurm-123456.out",
               "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nValueError: x\n");
  const std::vector<LogFact> facts = read_recordings({folder.path()}).job.facts;
  REQUIRE(facts.size() == 1);
  CHECK((facts.front().kind == Kind::unplaced && facts.front().ranks.empty()));
}

TEST_CASE("errors beside the main thread accuse nobody", "[job-log]") {
  const std::string error =
      "Traceback (most recent call last):\n  File \"a.py\", line 7, in f\nAssertionError: can only test a "
      "child\n";
  CHECK(only_fact("Exception ignored in: <function D.__del__ at 0x7>\n" + error, 1, "rank_1.log").kind ==
        Kind::logged);
  CHECK(only_fact("Exception in thread Thread-2 (feed):\n" + error, 1, "rank_1.log").kind == Kind::logged);
  CHECK(only_fact(error, 1, "rank_1.log").kind == Kind::raised);
}

TEST_CASE("c10d's errors are told apart by what they say, not by their class", "[job-log]") {
  const auto kind_of = [](const std::string& error) {
    return only_fact(
               "Traceback (most recent call last):\n  File \"/x/torch/distributed/distributed_c10d.py\", "
               "line 7, in f\n"
               "torch.distributed." +
                   error + "\n",
               1, "rank_1.log")
        .kind;
  };
  CHECK(kind_of("DistStoreError: use_libuv was requested but PyTorch was built without libuv support") ==
        Kind::raised);
  CHECK(kind_of("DistStoreError: Timed out after 61 seconds waiting for clients. 2/4 clients joined.") ==
        Kind::gave_up);
  CHECK(kind_of("DistNetworkError: The server socket has failed to listen on any local network address. "
                "EADDRINUSE") == Kind::raised);
  CHECK(kind_of("DistBackendError: store->get('0') got error: Failed to recv, got 0 bytes") ==
        Kind::lost_peer);
  CHECK(kind_of("DistBackendError: Last error: socketProgress: Connection closed by remote peer n<1>") ==
        Kind::lost_peer);
}

TEST_CASE("launchers say which of their processes failed first", "[job-log]") {
  CHECK(only_fact("mpirun noticed that process rank 3 with PID 71 on node n exited on signal 9 (Killed).\n",
                  -1, "a.log")
            .text == "exited on signal 9 (Killed).");
  CHECK(only_fact("[rank: 1] Child process with PID 42 terminated with code -11.\n", -1, "a.log").ranks ==
        RankSet{1});
  const LogFact victim = only_fact(
      "Root Cause (first observed failure):\n[0]:\n  rank      : 0 (local_rank: 0)\n  exitcode  : 1 (pid: "
      "71)\n"
      "  traceback : Traceback (most recent call last):\n    File \"a.py\", line 1, in f\n"
      "  RuntimeError: [pair.cc:5] Connection closed by peer [::1]:1\n=====\n",
      -1, "a.log");
  CHECK(victim.kind == Kind::lost_peer);
  const test::Folder folder;
  for (const char* rank : {"1", "5"}) {
    folder.write(std::string("node") + rank + ".log",
                 "Root Cause (first observed failure):\n[0]:\n  rank      : " + std::string(rank) +
                     " (local_rank: 1)\n  exitcode  : 1 (pid: 71)\n=====\n");
  }
  const Diagnosis two = diagnosis_of(folder.path());
  CHECK((two.finding.tie && two.finding.culprits == RankSet{1, 5}));
}

TEST_CASE("of the summaries of several nodes, the earliest counts, and a signal before its consequences",
          "[job-log]") {
  const auto summary = [](const char* rank, const char* second, const char* code) {
    return std::string("Root Cause (first observed failure):\n[0]:\n  time      : 2024-09-11_09:17:") +
           second + "\n  host      : n\n  rank      : " + rank + " (local_rank: 1)\n  exitcode  : " + code +
           " (pid: 71)\n=====\n";
  };
  const auto blamed = [&](const std::string& one, const std::string& other) {
    const test::Folder folder;
    folder.write("node0.log", one);
    folder.write("node1.log", other);
    return diagnosis_of(folder.path()).finding.culprits;
  };
  CHECK(blamed(summary("1", "45", "1"), summary("5", "31", "2")) == RankSet{5});
  CHECK(blamed(summary("1", "31", "2"), summary("5", "45", "2")) == RankSet{1});
  CHECK(blamed(summary("1", "31", "2"), summary("5", "32", "2")) == RankSet{1, 5});  // clocks differ
  CHECK(blamed(summary("1", "31", "1"), summary("5", "32", "-9")) == RankSet{5});
}

TEST_CASE("of torchrun's attempts the last one is judged", "[job-log]") {
  const test::Folder folder;
  const std::string lost =
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n"
      "RuntimeError: [pair.cc:5] Connection closed by peer [::1]:1\n";
  const std::string error =
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nValueError: x\n";
  for (const char* rank : {"0", "1", "2"}) {
    folder.write(fmt::format("run/attempt_0/{}/stderr.log", rank), *rank == '1' ? error : lost);
    folder.write(fmt::format("run/attempt_1/{}/stderr.log", rank), *rank == '2' ? error : lost);
  }
  const ReadResult read = read_recordings({folder.path()});
  REQUIRE(read.problems.size() == 1);
  CHECK(read.problems.front().file.ends_with("run/attempt_0"));
  CHECK(check::judge_dump(read.job).finding.culprits == RankSet{2});
}

TEST_CASE("a local rank that several nodes have says nothing about the rank, and torch's own label does", "[job-log]") {
  const std::string lost =
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n"
      "RuntimeError: [pair.cc:5] Connection closed by peer [::1]:1\n";
  const auto diagnosed = [&](const std::string& before) {
    const test::Folder folder;
    folder.write("node0/attempt_0/0/stderr.log", lost);
    folder.write("node0/attempt_0/1/stderr.log", lost);
    folder.write("node1/attempt_0/0/stderr.log", lost);
    folder.write("node1/attempt_0/1/stderr.log", before + "Traceback (most recent call last):\n" + before +
                                                     "  File \"a.py\", line 1, in f\n" + before +
                                                     "ValueError: x\n");
    return diagnosis_of(folder.path());
  };
  const Diagnosis unknown = diagnosed("");
  CHECK(unknown.finding.culprits.empty());
  CHECK(unknown.finding.cause == "ValueError: x");
  CHECK(diagnosed("[rank3]: ").finding.culprits == RankSet{3});
}

TEST_CASE("a log may begin with a dictionary, and may hold zeros", "[job-log]") {
  const test::Folder folder;
  const std::string error =
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nValueError: x\n";
  folder.write("rank_1.log", "{'loss': 0.1156, 'epoch': 0.2}\n" + error);
  folder.write("rank_2.log", "step 1\n" + std::string(4, '\0') + "step 2\n" + error);
  folder.write("rank_0.log.1", error);  // as logrotate names it
  CHECK(diagnosis_of(folder.path()).finding.culprits == RankSet{0, 1, 2});
}

TEST_CASE("a barrier in the store says how many came, and which ranks if all who came say so", "[job-log]") {
  const auto line = [](Rank rank, int key, int size, int count) {
    return fmt::format(
        "RuntimeError: Timed out initializing process group in store based barrier on rank: {}, for key: "
        "store_based_barrier_key:{} (world_size={}, worker_count={}, timeout=0:00:30)\n",
        rank, key, size, count);
  };
  const auto judged = [](const std::string& log) {
    return *check::judge_log(*read_text_evidence(log, -1, "train.log"));
  };
  const Diagnosis known = judged(line(0, 1, 4, 3) + line(1, 1, 4, 2) + line(3, 1, 4, 3));
  CHECK(known.finding.kind == FindingKind::stuck_host);
  CHECK(known.finding.culprits == RankSet{2});
  CHECK(known.finding.headline == "rank 2 did not come to init_process_group");
  const Diagnosis unknown = judged(line(7, 32, 8, 4) + line(5, 32, 8, 4));
  CHECK(unknown.finding.kind == FindingKind::partial_subgroup);
  CHECK(unknown.finding.culprits.empty());
  CHECK(unknown.finding.headline == "4 of 8 ranks did not come to new_group");
  const Diagnosis crowded = judged(line(0, 1, 4, 8));
  CHECK(crowded.finding.kind == FindingKind::group_args_mismatch);
  CHECK(crowded.finding.headline == "8 processes came to init_process_group, which is for 4");
  const std::string through =
      "INFO: Rank 0: Completed store-based barrier for key:store_based_barrier_key:1 with 4 nodes.\n";
  CHECK_FALSE(check::judge_log(*read_text_evidence(line(0, 1, 4, 3) + through, -1, "train.log")));
}

TEST_CASE("a line of torch.multiprocessing that is cut says nothing of how a process ended", "[job-log]") {
  const std::string log =
      "Traceback (most recent call last):\n  File \"train.py\", line 3, in main\n"
      "torch.multiprocessing.spawn.ProcessExitedException: process 1 termi";
  CHECK_FALSE(check::judge_log(*read_text_evidence(log, -1, "train.log")));
}

TEST_CASE("an empty log of a rank says that it had nothing to report", "[job-log]") {
  const test::Folder folder;
  const std::string late =
      "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n"
      "RuntimeError: [unbound_buffer.cc:78] Timed out waiting 4000ms for recv operation to complete\n";
  folder.write("rank_0.log", late);
  folder.write("rank_1.log", late);
  folder.write("rank_2.log", "");
  const Diagnosis diagnosis = diagnosis_of(folder.path());
  CHECK(diagnosis.finding.kind == FindingKind::stuck_host);
  CHECK(diagnosis.finding.culprits == RankSet{2});
}

TEST_CASE("NCCL's calls, its Inspector and the kernel say who is behind, or that a GPU failed", "[job-log]") {
  const test::Folder calls;
  for (int rank = 0; rank < 4; ++rank) {
    const std::string count = rank == 2 ? "1e" : "1f";
    calls.write(
        "rank_" + std::to_string(rank) + ".log",
        "h:7:9 [0] NCCL INFO comm 0x5a rank " + std::to_string(rank) +
            " nRanks 4 nNodes 1 cudaDev 0 commId 0x77 - Init COMPLETE\n"
            "h:7:9 [0] NCCL INFO AllReduce: opCount " +
            count +
            " sendbuff 0x1 recvbuff 0x1 count 64 datatype 7 op 0 root 0 comm 0x5a [nranks=4] stream 0x2\n");
  }
  CHECK(diagnosis_of(calls.path()).finding.culprits == RankSet{2});

  const test::Folder inspector;
  for (int rank = 0; rank < 4; ++rank) {
    const std::string line = R"({"header":{"id":"0x7","rank":)" + std::to_string(rank) +
                             R"(,"n_ranks":4},"metadata":{},"coll_perf":{"coll":"AllReduce","coll_sn":)";
    inspector.write("nccl-inspector-" + std::to_string(rank) + ".jsonl",
                    line + "1}}\n" + line + (rank == 1 ? "8" : "9") + "}}\n");
  }
  CHECK(diagnosis_of(inspector.path()).finding.culprits == RankSet{1});

  const test::Folder kernel;
  kernel.write("dmesg.txt",
               "[  12.3] NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.\n");
  const Diagnosis xid = diagnosis_of(kernel.path());
  CHECK(xid.finding.kind == FindingKind::stuck_device);
  CHECK(xid.finding.culprits.empty());
  CHECK_THAT(xid.evidence.front(), Contains("fallen off the bus"));
}

TEST_CASE("a stack that changed while it was read is not compared with others from its outermost frame on",
          "[job-log]") {
  const LogFact fact = only_fact(
      "Thread 0x00007f4e5d946200 [python3] (most recent call first):\n"
      "  File \"/usr/lib/python3/dist-packages/torch/_library/autograd.py\", line 31 in make_autograd_impl\n"
      "  File \"__init__\", line ??? in __init__\n"
      "  <invalid frame>\n",
      2, "rank_2.txt");
  CHECK(fact.kind == Kind::stack);
  CHECK(fact.text == "make_autograd_impl");
  CHECK(fact.frames.empty());
}

TEST_CASE("a job that a signal or the scheduler ended accuses no rank, and says what ended it", "[job-log]") {
  const auto judge = [](const std::string& log) {
    const test::Folder folder;
    folder.write("job.log", log);
    return diagnosis_of(folder.path());
  };
  const std::string signal =
      "W0920 09:10:41.194000 84933 site-packages/torch/distributed/elastic/agent/server/api.py:719] Received "
      "1 death "
      "signal, shutting down workers\n";
  const Diagnosis hung_up = judge(signal);
  CHECK(hung_up.finding.culprits.empty());
  CHECK(hung_up.finding.cause == "torchrun received SIGHUP");
  CHECK_THAT(hung_up.finding.advice, Contains("tmux"));
  const Diagnosis out_of_time = judge(
      "50%|##### slurmstepd: error: *** STEP 6053.0 ON n1 CANCELLED AT 2024-04-23T12:18:08 DUE TO TIME LIMIT "
      "***\n"
      "srun: error: n1: task 0: Terminated\n");
  CHECK(out_of_time.finding.cause == "Slurm: CANCELLED DUE TO TIME LIMIT");
  CHECK_THAT(out_of_time.finding.advice, Contains("--time"));
  // That may be why it was ended.
  const Diagnosis raised = judge(
      "[rank2]: Traceback (most recent call last):\n[rank2]:   File \"t.py\", line 4, in f\n"
      "[rank2]: KeyError: 'x'\n" +
      signal);
  CHECK(raised.finding.culprits == RankSet{2});
}

TEST_CASE("where srun names many ranks first, none of them is the one that failed", "[job-log]") {
  const auto judge = [](const std::string& log) {
    const test::Folder folder;
    folder.write("job.log", log);
    return diagnosis_of(folder.path());
  };
  const Diagnosis many = judge(
      "srun: error: n0: tasks 2-7: Exited with exit code 1\nsrun: error: n1: tasks 8-13,15: Exited with exit "
      "code 1\n"
      "srun: error: n1: task 14: Exited with exit code 1\n");
  CHECK(many.finding.culprits == RankSet::range(2, 15));
  CHECK(many.finding.tie);
  CHECK(many.confidence == Diagnosis::Confidence::low);
  const Diagnosis one = judge(
      "srun: error: n1: task 14: Exited with exit code 1\nsrun: error: n0: tasks 2-7: Exited with exit code "
      "1\n");
  CHECK(one.finding.culprits == RankSet{14});
}

// As py-spy shows them on GPUs (huggingface/accelerate#3104).
TEST_CASE("a program that waits in backward is where the thread of autograd is", "[job-log]") {
  const auto stack_in = [](const std::string& hook) {
    return "Process 42: python train.py\nPython v3.10.12 (/usr/bin/python3.10)\n\n"
           "Thread 42 (idle): \"MainThread\"\n    backward (torch/autograd/__init__.py:266)\n"
           "    backward (torch/_tensor.py:522)\n    <module> (train.py:12)\n"
           "Thread 928 (idle): \"Thread-1\"\n    wait (threading.py:324)\n    _bootstrap (threading.py:973)\n"
           "Thread 4076 (idle)\nThread 4079 (active)\n" +
           hook;
  };
  const std::string gather =
      "    all_gather_into_tensor (torch/distributed/distributed_c10d.py:2709)\n"
      "    fetch (hooks.py:9)\n";
  const LogFact fact = only_fact(stack_in(gather), 0, "rank_0.txt");
  CHECK(fact.op == "all_gather_into_tensor");
  CHECK(fact.site == "hooks.py:9");
  CHECK(fact.frames.front() == "<module> at train.py:12");
  CHECK(only_fact(stack_in(""), 0, "rank_0.txt").op == "backward");
  const std::string untitled = stack_in(gather).substr(stack_in(gather).find("Thread 42"));
  CHECK(only_fact(untitled, 0, "rank_0.txt").op == "all_gather_into_tensor");
  const test::Folder folder;
  for (int rank = 0; rank < 4; ++rank) {
    const std::string name = "rank_" + std::to_string(rank) + ".txt";
    folder.write(name, stack_in(rank == 2 ? "    partition (hooks.py:20)\n" : gather));
  }
  const Diagnosis diagnosis = diagnosis_of(folder.path());
  CHECK(diagnosis.finding.culprits == RankSet{2});
  CHECK_THAT(diagnosis.finding.headline, Contains("partition at hooks.py:20"));
}

TEST_CASE("stacks that torch.distributed.debug collected name their ranks themselves", "[job-log]") {
  const test::Folder folder;
  std::string text;
  for (int rank = 0; rank < 3; ++rank) {
    text += "=== Rank " + std::to_string(rank) +
            ": http://h:1 ===\nThread 0x1 [python3] (most recent call first):\n";
    text += rank == 1 ? "  File \"/job/data.py\", line 4 in load\n"
                      : "  File \"/x/torch/distributed/distributed_c10d.py\", line 8 in all_reduce\n";
    text += "  File \"/job/train.py\", line 9 in <module>\n";
  }
  folder.write("stacks_20260101.txt", text);
  const Diagnosis diagnosis = diagnosis_of(folder.path());
  CHECK(diagnosis.finding.kind == FindingKind::stuck_host);
  CHECK(diagnosis.finding.culprits == RankSet{1});
  CHECK_THAT(diagnosis.finding.advice, Contains("data.py:4"));
}

TEST_CASE("a text that nobody understands is named as that, not as broken JSON", "[job-log]") {
  const test::Folder folder;
  folder.write("notes_1.txt", "[I don't know what this is]\n");
  const ReadResult result = read_recordings({folder.path("notes_1.txt")});
  REQUIRE(result.problems.size() == 1);
  CHECK_THAT(result.problems.front().message, Contains("unknown format") && Contains("py-spy"));
}

}  // namespace rollcall::traces::job_evidence_test
