#include "traces/logs/job_log.h"

#include <fmt/core.h>

#include "sim/diagnose/log_judge.h"
#include "tests/unit/traces/folder.h"

namespace rollcall::traces::job_log_test {
namespace {

using test::diagnosis_of;
using test::Folder;

std::string wrapper_line(int rank, int other, const std::string& mine, const std::string& theirs) {
  return fmt::format(
      "RuntimeError: Detected mismatch between collectives on ranks. Rank {} is running collective: "
      "CollectiveFingerPrint({}), but Rank {} is running collective: CollectiveFingerPrint({}).Collectives "
      "differ in the following aspects: \t Op type: ALLREDUCEvs BROADCAST\n",
      rank, mine, other, theirs);
}

std::string print(const std::string& op, const std::string& shape, int seq) {
  return fmt::format(
      "SequenceNumber={}, OpType={}, TensorShape=[{}], TensorDtypes=Float, TensorDeviceTypes="
      "TensorOptions(dtype=float (default), device=cpu, layout=Strided (default))",
      seq, op, shape);
}

std::string watchdog_line(int rank, int seq) {
  return fmt::format(
      "[rank{0}]:[E1121 10:00:00 ProcessGroupNCCL.cpp:616] [Rank {0}] Watchdog caught collective "
      "operation timeout: WorkNCCL(SeqNum={1}, OpType=ALLREDUCE, NumelIn=1048576, NumelOut=1048576, "
      "Timeout(ms)=600000) ran for 600021 milliseconds before timing out.\n",
      rank, seq);
}

std::string enqueued_line(int rank, int seq) {
  return fmt::format(
      "[rank{0}]:[E1121 10:00:01 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank {0}] "
      "Received a dump signal due to a collective timeout from  rank 0 and we will try our best to dump "
      "the debug info. Last enqueued NCCL work: {1}, last completed NCCL work: {2}.\n",
      rank, seq, 12);
}

void copy_dumps(const Folder& folder, const std::string& set) {
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(ROLLCALL_SOURCE_DIR) / "tests/data/flight_recorder" / set / "pickle")) {
    std::filesystem::copy_file(entry.path(), folder.path(entry.path().filename().string()));
  }
}

}  // namespace

TEST_CASE("ProcessGroupWrapper's lines of all ranks together say who is odd", "[traces]") {
  const Folder folder;
  folder.write("rank0.log",
               "step 3\n" + wrapper_line(0, 2, print("ALLREDUCE", "100", 7), print("BROADCAST", "100", 7)));
  folder.write("rank1.log", wrapper_line(1, 2, print("ALLREDUCE", "100", 7), print("BROADCAST", "100", 7)));
  folder.write("rank2.log", wrapper_line(2, 0, print("BROADCAST", "100", 7), print("ALLREDUCE", "100", 7)));
  const Diagnosis diagnosis = diagnosis_of(folder);
  CHECK(diagnosis.finding.kind == FindingKind::op_type_mismatch);
  CHECK(diagnosis.finding.culprits == RankSet{2});
  CHECK(diagnosis.finding.at->call.seq == 7);
}

TEST_CASE("ProcessGroupWrapper finds sizes that differ, and calls without tensors", "[traces]") {
  const Folder folder;
  folder.write("job.log",
               wrapper_line(0, 1, print("ALLREDUCE", "2, 3", 7), print("ALLREDUCE", "2, 4", 7)) +
                   wrapper_line(2, 1, print("ALLREDUCE", "2, 3", 7), print("ALLREDUCE", "2, 4", 7)));
  Diagnosis diagnosis = diagnosis_of(folder);
  CHECK(diagnosis.finding.kind == FindingKind::size_mismatch);
  CHECK(diagnosis.finding.culprits == RankSet{1});
  folder.write("job.log", wrapper_line(0, 1, print("ALLREDUCE", "2", 7), "SequenceNumber=7OpType=BARRIER"));
  diagnosis = diagnosis_of(folder);
  CHECK(diagnosis.finding.kind == FindingKind::op_type_mismatch);
  CHECK(diagnosis.finding.tie);  // two fingerprints are not a majority
}

TEST_CASE("monitored_barrier names the ranks that did not come", "[traces]") {
  const Folder folder;
  folder.write("out.txt",
               "[Rank 0]: Ranks 1, 2 failed to pass monitoredBarrier in 2000 ms\nRank 3 successfully reached "
               "monitoredBarrier, but received errors while waiting for send/recv from rank 0.\n");
  const Diagnosis diagnosis = diagnosis_of(folder);
  CHECK(diagnosis.finding.kind == FindingKind::stuck_host);
  CHECK(diagnosis.finding.culprits == RankSet{1, 2});
}

TEST_CASE("the watchdogs say who had not even enqueued what timed out", "[traces]") {
  const Folder folder;
  folder.write("job.err",
               watchdog_line(0, 13) + watchdog_line(1, 13) + watchdog_line(3, 13) + enqueued_line(2, 12));
  Diagnosis diagnosis = diagnosis_of(folder);
  CHECK(diagnosis.finding.culprits == RankSet{2});
  CHECK(diagnosis.finding.at->waiting == RankSet{0, 1, 3});
  folder.write("job.err", watchdog_line(0, 13) + watchdog_line(1, 13) + watchdog_line(3, 13));
  diagnosis = diagnosis_of(folder);
  CHECK(diagnosis.finding.culprits == RankSet{2});
  CHECK(diagnosis.confidence == Diagnosis::Confidence::low);
  folder.write("job.err", watchdog_line(0, 13) + watchdog_line(1, 13));
  CHECK(diagnosis_of(folder).finding.kind == FindingKind::no_fault);  // blames no rank
}

TEST_CASE(
    "a rank's silence says nothing of groups of some, where lines are left out, or of a watchdog that is "
    "stuck",
    "[traces]") {
  const Folder folder;
  const std::string all_but_2 = watchdog_line(0, 13) + watchdog_line(1, 13) + watchdog_line(3, 13);
  const auto accuses = [&folder](const std::string& log) {
    folder.write("job.err", log);
    return !diagnosis_of(folder).finding.culprits.empty();
  };
  CHECK(accuses(all_but_2));
  CHECK_FALSE(accuses(all_but_2 + "(Worker pid=7) [rank0]: a warning [repeated 3x across cluster]\n"));
  CHECK_FALSE(
      accuses(all_but_2 +
              "[rank2]:[E1121 10:08:00 ProcessGroupNCCL.cpp:1743] [PG ID 0 PG GUID 0(default_pg) Rank 2] "
              "ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress.\n"));
  CHECK_FALSE(
      accuses(all_but_2 +
              "[rank3]:[E1121 10:00:01 ProcessGroupNCCL.cpp:1785] [PG ID 4 PG GUID 20(mesh_tp) Rank 2] "
              "Exception (either an error or timeout) detected by watchdog at work: 13, last enqueued NCCL "
              "work: 13, last completed NCCL work: 12.\n"));
}

TEST_CASE("a rank's silence says nothing beside ranks in different calls without numbers", "[traces]") {
  const auto line = [](int rank, const char* op) {  // of torch 1.11
    return fmt::format(
        "[E ProcessGroupNCCL.cpp:566] [Rank {}] Watchdog caught collective operation timeout: WorkNCCL("
        "OpType={}, Timeout(ms)=1800000) ran for 1802170 milliseconds before timing out.\n",
        rank, op);
  };
  const Folder folder;
  folder.write("job.err", line(0, "ALLREDUCE") + line(1, "ALLREDUCE") + line(3, "ALLREDUCE"));
  CHECK(diagnosis_of(folder).finding.culprits == RankSet{2});
  folder.write("job.err", line(0, "ALLREDUCE") + line(1, "BROADCAST") + line(3, "ALLREDUCE"));
  CHECK(diagnosis_of(folder).finding.culprits.empty());
}

TEST_CASE("a timeout after which the writer's group has nothing left is of another group", "[traces]") {
  const auto line = [](int rank, const char* of) {
    return fmt::format(
        "[rank{0}]:[E1121 10:00:01 ProcessGroupNCCL.cpp:1890] [PG ID 0 PG GUID 0(default_pg) Rank {0}] "
        "Received a "
        "dump signal due to a collective timeout from {1} and we will try our best to dump the debug info. "
        "Last "
        "enqueued NCCL work: 12, last completed NCCL work: 12.\n",
        rank, of);
  };
  const std::string others = line(0, " rank 1") + line(2, " rank 1") + line(3, " rank 1");
  const Folder folder;
  folder.write("job.err", others);
  CHECK(diagnosis_of(folder).finding.culprits == RankSet{1});  // its call may be the next of this group
  folder.write("job.err", others + line(1, "this local rank"));
  CHECK(diagnosis_of(folder).finding.culprits.empty());
}

TEST_CASE("ranks that share a GPU are named, unless they count within a group", "[traces]") {
  const auto line = [](int writer, int rank, int other, const char* bus) {
    return fmt::format("[rank{}]: Duplicate GPU detected : rank {} and rank {} both on CUDA device {}\n",
                       writer, rank, other, bus);
  };
  const Folder folder;
  folder.write("job.err", line(2, 2, 0, "1000") + line(3, 3, 2, "1000") + line(8, 8, 9, "1000"));
  Diagnosis diagnosis = diagnosis_of(folder);
  CHECK(diagnosis.finding.kind == FindingKind::duplicate_gpu);
  CHECK(diagnosis.finding.culprits == RankSet{0, 2, 3});  // those of another machine have another GPU
  CHECK(diagnosis.confidence == Diagnosis::Confidence::high);
  folder.write("job.err", line(6, 2, 0, "1000"));
  diagnosis = diagnosis_of(folder);
  CHECK(diagnosis.finding.culprits.empty());
  CHECK_THAT(diagnosis.finding.headline, Contains("ranks of one group use one GPU"));
}

TEST_CASE("a rank whose number of parameters did not arrive may have failed, and its own error comes first",
          "[traces]") {
  const auto line = [](int rank) {
    return fmt::format(
        "[rank{0}]: RuntimeError: DDP expects same model across all ranks, but Rank {0} has 161 params, "
        "while rank 0 "
        "has inconsistent 0 params.\n",
        rank);
  };
  const Folder folder;
  folder.write("job.err", line(1) + line(2));
  Diagnosis diagnosis = diagnosis_of(folder);
  CHECK(diagnosis.finding.culprits == RankSet{0});
  CHECK(diagnosis.confidence == Diagnosis::Confidence::low);
  const std::string traceback =
      "[rank0]: Traceback (most recent call last):\n[rank0]:   File \"train.py\", line 9, in <module>\n"
      "[rank0]:     load()\n[rank0]: KeyError: 'weights'\n";
  folder.write("job.err", traceback + line(1) + line(2));
  diagnosis = diagnosis_of(folder);
  CHECK(diagnosis.finding.kind == FindingKind::crashed_rank);
  CHECK(diagnosis.finding.culprits == RankSet{0});
  CHECK_THAT(diagnosis.finding.cause, Contains("KeyError"));
}

TEST_CASE("a call of one job of Ray is not compared with those of another", "[traces]") {
  const auto line = [](const char* job, int rank, int enqueued) {
    return fmt::format(
        "({} pid={}) [rank{}]:[E1121 10:00:01 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank "
        "{}] "
        "Exception (either an error or timeout) detected by watchdog at work: {}, last enqueued NCCL work: "
        "{}, last "
        "completed NCCL work: {}.\n",
        job, 70 + rank, rank, rank, enqueued, enqueued, enqueued - 1);
  };
  const Folder folder;
  folder.write("job.err", line("Actor", 0, 900) + line("Actor", 1, 900) + line("Critic", 0, 12) +
                              line("Critic", 1, 12) + line("Critic", 2, 12));
  CHECK(diagnosis_of(folder).finding.culprits.empty());
}

TEST_CASE("the desync report names who did not join", "[traces]") {
  const Folder folder;
  folder.write("job.log",
               "\t - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:\n"
               "\t   - [0, 2] joined but didn't finish collective #14 (count from 1)\n"
               "\t     [1] finished collective #13, but didn't join collective #14 (count from 1)\n");
  const Diagnosis diagnosis = diagnosis_of(folder);
  CHECK(diagnosis.finding.culprits == RankSet{1});
  CHECK(diagnosis.finding.at->call.seq == 14);
}

TEST_CASE("NCCL RAS names ranks behind and ranks ahead", "[traces]") {
  const std::string head =
      "#0-0 (27a079b828ff1a75) MISMATCH\n  Communicator ranks have different collective operation counts\n";
  const Folder folder;
  folder.write("ras.txt", head +
                              "  26 ranks have launched up to operation 6650\n"
                              "  2 ranks have launched up to operation 6649\n"
                              "  Rank 4 -- GPU 4 managed by process 483072 on node 172.16.64.210\n"
                              "  Rank 6 -- GPU 6 managed by process 483074 on node 172.16.64.210\n");
  Diagnosis diagnosis = diagnosis_of(folder);
  CHECK(diagnosis.finding.kind == FindingKind::stuck_host);
  CHECK(diagnosis.finding.culprits == RankSet{4, 6});
  folder.write("ras.txt",
               head +
                   "  7 ranks have launched up to operation 64\n"
                   "  Rank 7 has launched up to operation 65 -- GPU 3 managed by process 1 on node n1\n");
  diagnosis = diagnosis_of(folder);
  CHECK(diagnosis.finding.kind == FindingKind::extra_collective);
  CHECK(diagnosis.finding.culprits == RankSet{7});
}

TEST_CASE("a log settles what dumps leave open, and strengthens what they say", "[traces]") {
  const Folder open;
  copy_dumps(open, "wrong_root_broadcast_4");
  CHECK(diagnosis_of(open).finding.culprits.empty());
  open.write("job.log", wrapper_line(0, 2, print("BROADCAST", "4", 19), print("REDUCE", "4", 19)) +
                            wrapper_line(1, 2, print("BROADCAST", "4", 19), print("REDUCE", "4", 19)));
  const Diagnosis settled = diagnosis_of(open);
  CHECK(settled.finding.kind == FindingKind::op_type_mismatch);
  CHECK(settled.finding.culprits == RankSet{2});
  CHECK(settled.records > 0);

  const Folder known;
  copy_dumps(known, "only_active_host_lock_8");
  CHECK(diagnosis_of(known).confidence == Diagnosis::Confidence::medium);
  known.write("ras.log",
              "  7 ranks have launched up to operation 64\n"
              "  Rank 5 has launched up to operation 60 -- GPU 3 managed by process 1 on node node1\n");
  const Diagnosis agreed = diagnosis_of(known);
  CHECK(agreed.finding.kind == FindingKind::stuck_host);
  CHECK(agreed.confidence == Diagnosis::Confidence::high);
}

TEST_CASE("a call that DETAIL refused is not an error that the program handled", "[traces]") {
  const Folder folder;
  folder.write("job.log", wrapper_line(0, 2, print("BROADCAST", "4", 19), print("REDUCE", "4", 19)) +
                              wrapper_line(1, 2, print("BROADCAST", "4", 19), print("REDUCE", "4", 19)));
  folder.write("rank_2.log",
               "Traceback (most recent call last):\n  File \"train.py\", line 7, in main\nValueError: bad\n");
  const std::string set = ROLLCALL_SOURCE_DIR "/tests/data/fr_healthy/logs_a_handled_error";
  const ReadResult read = read_recordings({set + "/pickle", set + "/pickle_later", folder.path()});
  const Diagnosis diagnosis = check::judge_dump(read.job);
  CHECK(is_alarm(diagnosis));
  CHECK(diagnosis.finding.culprits == RankSet{2});
}

TEST_CASE("a log that disagrees with sure dumps is evidence, no verdict", "[traces]") {
  const Folder folder;
  copy_dumps(folder, "size_mismatch_4");
  folder.write("job.log", "[Rank 0]: Rank 1 failed to pass monitoredBarrier in 2000 ms\n");
  const Diagnosis diagnosis = diagnosis_of(folder);
  CHECK(diagnosis.finding.kind == FindingKind::size_mismatch);
  CHECK(diagnosis.finding.culprits == RankSet{3});
  CHECK_THAT(diagnosis.evidence.back(), Contains("rank 1 instead"));
}

TEST_CASE("logs that say nothing of a hang are passed over", "[traces]") {
  const Folder folder;
  folder.write("train.log", "step 1 loss 2.3\nstep 2 loss 2.2\n");
  const ReadResult result = read_recordings({folder.path()});
  CHECK(result.job.facts.empty());
  CHECK(result.problems.empty());
}

namespace {

std::string watchdog(int rank, const std::string& call, const std::string& prefix = "") {
  return "[rank" + std::to_string(rank) + "]:[E816 01:45:40.1 ProcessGroupNCCL.cpp:616] " + prefix +
         "Watchdog caught collective operation timeout: WorkNCCL(" + call +
         ", Timeout(ms)=600000) ran for 600013 "
         "milliseconds before timing out.\n";
}

std::string at_work(int rank, const std::string& group, int late, int enqueued, int completed) {
  return "[rank" + std::to_string(rank) + "]:[E816 01:45:40.1 ProcessGroupNCCL.cpp:1785] [PG ID 1 PG GUID " +
         group + " Rank 0] Exception (either an error or timeout) detected by watchdog at work: " +
         std::to_string(late) + ", last enqueued NCCL work: " + std::to_string(enqueued) +
         ", last completed NCCL work: " + std::to_string(completed) + ".\n";
}

Diagnosis diagnosis_of_log(const std::string& text, const std::string& name = "job.log") {
  const Folder folder;
  folder.write(name, text);
  return check::judge_dump(read_recordings({folder.path()}).job);
}

}  // namespace

TEST_CASE("calls of different groups are not compared by their numbers", "[traces]") {
  // Ranks 0 and 1 share a group, and so do 0 and 2, and 1 and 3. Rank 0 stopped. c10d writes a timeout twice.
  const std::string all_reduce = "SeqNum=5000, OpType=ALLREDUCE, NumelIn=100, NumelOut=100";
  const std::string all_gather = "SeqNum=12, OpType=_ALLGATHER_BASE, NumelIn=100, NumelOut=400";
  const Diagnosis diagnosis = diagnosis_of_log(
      watchdog(1, all_reduce) + watchdog(1, all_reduce) + at_work(1, "3", 5000, 5000, 4999) +
      watchdog(2, all_gather) + at_work(2, "5", 12, 12, 11) + watchdog(3, all_gather) +
      at_work(3, "6", 12, 12, 11) +
      "[rank0]:[E816 01:45:40.2 ProcessGroupNCCL.cpp:1484] [PG ID 1 PG GUID 3 Rank 0] Received a "
      "dump signal. Last enqueued NCCL work: 4999, last completed NCCL work: 4999.\n");
  CHECK(diagnosis.finding.culprits == RankSet{0});
  CHECK(diagnosis.finding.kind == FindingKind::stuck_host);
}

TEST_CASE("timed-out calls with one number that differ are a mismatch", "[traces]") {
  const std::string usual = "SeqNum=7, OpType=ALLREDUCE, NumelIn=100, NumelOut=100";
  const Diagnosis op = diagnosis_of_log(watchdog(0, usual) + watchdog(1, usual) +
                                        watchdog(2, "SeqNum=7, OpType=BROADCAST, NumelIn=5, NumelOut=5"));
  CHECK(op.finding.kind == FindingKind::op_type_mismatch);
  CHECK(op.finding.culprits == RankSet{2});
  const Diagnosis size =
      diagnosis_of_log(watchdog(0, usual) + watchdog(1, usual) +
                       watchdog(2, "SeqNum=7, OpType=ALLREDUCE, NumelIn=120, NumelOut=120"));
  CHECK(size.finding.kind == FindingKind::size_mismatch);
  CHECK(size.finding.culprits == RankSet{2});
}

TEST_CASE("a process that its watchdog aborted did not fail first, whatever torchrun saw", "[traces]") {
  const std::string usual = "SeqNum=7, OpType=ALLREDUCE, NumelIn=100, NumelOut=100";
  const std::string summary =
      "Root Cause (first observed failure):\n[0]:\n  time      : 2026-09-11_09:17:37\n  rank      : 1 "
      "(local_rank: 1)\n"
      "  exitcode  : -6 (pid: 71)\n  traceback : Signal 6 (SIGABRT) received by PID 71\n=====\n";
  const Diagnosis diagnosis =
      diagnosis_of_log(watchdog(0, usual) + watchdog(1, usual) + watchdog(3, usual) + summary);
  CHECK(diagnosis.finding.culprits == RankSet{2});
  CHECK(diagnosis.finding.kind == FindingKind::stuck_host);
  CHECK(diagnosis_of_log(summary).finding.headline == "the process of rank 1 failed first");
}

TEST_CASE("what a watchdog's thread died of is an error of its rank", "[traces]") {
  const Diagnosis diagnosis = diagnosis_of_log(
      watchdog(0, "SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1") +
      "[rank7]:[E816 01:45:40.1 ProcessGroupNCCL.cpp:1414] [PG ID 0 PG GUID 0(default_pg) Rank 7] Process "
      "group "
      "watchdog thread terminated with exception: CUDA error: an illegal memory access was encountered\n");
  CHECK(diagnosis.finding.culprits == RankSet{7});
  CHECK(diagnosis.finding.cause == "CUDA error: an illegal memory access was encountered");
}

TEST_CASE("the desync report says which call differs, and who did not finish", "[traces]") {
  const std::string head =
      watchdog(0, "SeqNum=5, OpType=ALLREDUCE, NumelIn=1, NumelOut=1") +
      "\t - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:\n"
      "\t   - [1] joined but didn't finish collective #5 (count from 1)\n";
  const Diagnosis alone = diagnosis_of_log(head);
  CHECK(alone.finding.kind == FindingKind::stuck_device);
  CHECK(alone.finding.culprits == RankSet{1});
  const Diagnosis different =
      diagnosis_of_log(head +
                       "\t - Snapshot of ranks' latest states: \n\t   #5 started ranks: \n"
                       "\t     [0, 2] started ALLREDUCE\n\t     [1] started BROADCAST\n");
  CHECK(different.finding.kind == FindingKind::op_type_mismatch);
  CHECK(different.finding.culprits == RankSet{1});
}

TEST_CASE("a number in a log's name is not a rank if its lines name others", "[traces]") {
  const std::string lost =
      "RuntimeError: [./gloo/transport/tcp/pair.cc:534] Connection closed by peer [::1]:1\n";
  std::string text;
  for (const char* rank : {"0", "1", "2"}) {
    const std::string prefix = std::string(" ") + rank + ": ";  // srun --label aligns its numbers
    text += prefix + "Traceback (most recent call last):\n" + prefix + "  File \"a.py\", line 1, in f\n" +
            prefix + lost;
  }
  text +=
      "srun: error: gpu018: tasks 0-2: Exited with exit code 1\nsrun: error: gpu018: task 3: Segmentation "
      "fault\n";
  const Diagnosis diagnosis = diagnosis_of_log(text, "slurm-1235.out");
  CHECK(diagnosis.finding.culprits == RankSet{3});
  CHECK(diagnosis.finding.cause == "Segmentation fault");
  CHECK(diagnosis.world_size == 4);
}

}  // namespace rollcall::traces::job_log_test
