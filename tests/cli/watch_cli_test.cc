// `rollcall watch`: runs the job unchanged, and reports its state while it runs.

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "tests/catch.h"
#include "tests/shell.h"
#include "tests/two_hosts.h"
#include "traces/formats/ring.h"

namespace rollcall::test::watch_cli_test {
namespace {

namespace fs = std::filesystem;

// Returns a Python that has torch.distributed and for which the condition holds; empty if there is none.
std::string python_with_torch(const std::string& condition = "True") {
  for (const std::string python : {"python3", "/usr/bin/python3"}) {
    const std::string question = " -c 'import torch, torch.distributed as d; assert d.is_available() and " +
                                 condition + "' >/dev/null 2>&1";
    if (std::system((python + question).c_str()) == 0) {
      return python;
    }
  }
  return "";
}

// Each kind of call that the observer distinguishes, and some that torch refuses.
constexpr const char* calls_of_one_rank = R"(
import os, sys
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="28490")
import torch
import torch.distributed as dist
dist.init_process_group("gloo", rank=0, world_size=1)
print("native", "rollcall_recorder.native" in sys.modules)

def helper(tensor):
    dist.all_reduce(tensor)

def refused(call, *arguments):
    try:
        call(*arguments)
    except Exception:
        pass

group = dist.new_group([0])
for turn in range(3):
    helper(torch.ones(turn))
    helper(torch.ones(2, 3, dtype=torch.int64))
    dist.all_reduce(torch.nn.Parameter(torch.ones(4)).detach(), group=group)
    dist.broadcast(torch.ones(5), 0)
    dist.reduce(torch.ones(5), 0)
    dist.all_gather([torch.ones(2), ], torch.ones(2))
    dist.gather(torch.ones(2), [torch.ones(2)])
    dist.scatter(torch.ones(2), [torch.ones(2)])
    dist.all_gather_object([None], {"turn": turn})
    dist.barrier()
    works = [dist.all_reduce(torch.ones(1), async_op=True) for _ in range(3)]
    for work in works:
        work.wait()
    for work in works:
        work.wait()
    dist.all_reduce(torch.ones(1), async_op=True).wait()
    refused(dist.all_reduce, torch.ones(3, dtype=torch.complex64).to_sparse())
    refused(dist.all_gather, [torch.ones(3)], torch.ones(2))
    refused(dist.broadcast, torch.ones(3), 7)
dist.monitored_barrier()
dist.destroy_process_group()
)";

// Returns for each call its number, operation and place, group, number in the group, flags, and whether it is over.
std::vector<std::string> calls_in_ring(const std::string& bytes) {
  const traces::RingHeader header = traces::ring_header(bytes);
  const std::string table = bytes.substr(header.table_begin);
  std::vector<std::string> calls;
  for (std::uint64_t number = 1;; ++number) {
    const traces::RingRecord record = traces::ring_record(bytes, header, number);
    if (record.number != number) {
      return calls;
    }
    const std::size_t begin = table.find(fmt::format("{{\"call\":{},", record.call));
    calls.push_back(fmt::format("{} {} {} {} {} {}", number, record.group, record.seq, record.flags,
                                record.finished_ns != 0,
                                table.substr(begin, table.find('\n', begin) - begin)));
  }
}

// Not a Python with torch that may be in another root.
std::string python_of_system() { return fs::exists("/usr/bin/python3") ? "/usr/bin/python3" : "python3"; }

// Returns what watch_jobs.py says about these jobs; empty if that is not possible here.
std::string watched(const Shell& shell, const std::string& options, const std::string& cases) {
  const std::string python = python_with_torch();
  if (python.empty()) {
    WARN("skipped: no Python with torch.distributed");
    return "";
  }
  const std::string script = ROLLCALL_SOURCE_DIR "/tests/real_jobs/watch_jobs.py";
  return shell
      .run(fmt::format("USE_LIBUV=0 {0} '{1}' --python {2} {3} '{4}' jobs {5}", python_of_system(), script,
                       python, options, ROLLCALL_CLI, cases))
      .out;
}

// Returns what node 0 says about a job whose rank 2, on node 1, does not arrive. `before` are words before a node's
// command.
std::string said_by_node_0(const Shell& shell, const std::string& python,
                           const std::function<std::string(int node)>& before, const std::string& meet,
                           const std::string& port) {
  const auto node = [&](int number, const char* ranks) {
    return fmt::format(
        "{0} NODE_RANK={1} RANKS={2} USE_LIBUV=0 ROLLCALL_TOKEN='a secret of this test' timeout -s INT 60 "
        "'{3}' watch --after 3s --node {4} --records node{1} -- {5} '{6}/tests/real_jobs/watched.py' "
        "stuck_in_loader {7} > out{1} 2> err{1} & P{1}=$!; ",
        before(number), number, ranks, ROLLCALL_CLI, meet, python, ROLLCALL_SOURCE_DIR, port);
  };
  shell.run(node(0, "0,1") + node(1, "2,3") +
            "for i in $(seq 300); do grep -q 'Python stacks' err0 && break; sleep 0.1; done; "
            "kill $P0 $P1; wait; exit 0");
  return contents(shell.path("err0"));
}

}  // namespace

TEST_CASE("a watched command keeps its output, its input and its exit code", "[watch][cli]") {
  const Shell shell;
  const Outcome outcome = shell.rollcall("watch -- sh -c 'echo out; echo err >&2; exit 7'");
  CHECK(outcome.code == 7);
  CHECK(outcome.out == "out\n");
  CHECK(outcome.err == "err\n");
  CHECK(shell.run("echo text | '" ROLLCALL_CLI "' watch -- cat").out == "text\n");
  CHECK(shell.rollcall("watch -- sh -c 'kill -TERM $$'").code == 128 + 15);
}

TEST_CASE("a watched command that cannot be started says so", "[watch][cli]") {
  const Shell shell;
  const Outcome outcome = shell.rollcall("watch -- no-such-launcher --nproc 4");
  CHECK(outcome.code == 127);
  CHECK(outcome.err == "rollcall: 'no-such-launcher' cannot be started, or has exited with code 127\n");
}

TEST_CASE("watch refuses what it cannot do before anything is started", "[watch][cli]") {
  const Shell shell;
  CHECK(shell.rollcall("watch").code == 4);
  CHECK(shell.rollcall("watch").err.find("watch needs the command that starts the job") != std::string::npos);
  const Outcome unit = shell.rollcall("watch --after 5 -- touch started");
  CHECK(unit.code == 4);
  CHECK(unit.err.starts_with("rollcall: error: --after 5: "));
  CHECK(shell.rollcall("watch --after 1ms -- touch started").code == 4);
  shell.write("file", "");
  CHECK(shell.rollcall("watch --records file/rings -- touch started").code == 4);
  CHECK_FALSE(fs::exists(shell.path("started")));
}

TEST_CASE("a signal for the supervisor reaches the job", "[watch][cli]") {
  const Shell shell;
  const Outcome outcome = shell.run(
      "'" ROLLCALL_CLI
      "' watch -- sh -c 'trap \"echo got it; exit 3\" TERM; touch ready; while :; do sleep 0.05; done' & "
      "until [ -e ready ]; do sleep 0.05; done; kill -TERM $!; wait $!; echo code $?");
  CHECK(outcome.out == "got it\ncode 3\n");
}

TEST_CASE("a signal that comes as the job begins reaches it", "[watch][cli]") {
  const Shell shell;
  for (int i = 0; i < 20; ++i) {
    const Outcome outcome = shell.run("'" ROLLCALL_CLI
                                      "' watch -- sh -c 'trap \"echo got it; exit 3\" TERM; kill -TERM "
                                      "$PPID; while :; do sleep 0.05; done'; echo code $?");
    CHECK(outcome.out == "got it\ncode 3\n");
  }
}

TEST_CASE("what nohup starts lives on when its terminal is closed", "[watch][cli]") {
  const Shell shell;
  const Outcome outcome =
      shell.run("trap '' HUP; '" ROLLCALL_CLI
                "' watch -- sh -c 'kill -HUP $PPID $$; sleep 0.2; echo alive'; echo code $?");
  CHECK(outcome.out == "alive\ncode 0\n");
}

TEST_CASE("a supervisor that is killed leaves the job alone", "[watch][cli]") {
  const Shell shell;
  const Outcome outcome =
      shell.run("TMPDIR=$PWD '" ROLLCALL_CLI
                "' watch --records rings -- sh -c 'touch ready; sleep 0.5; echo alive > result' & "
                "until [ -e ready ]; do sleep 0.05; done; kill -KILL $!; "
                "until [ -e result ]; do sleep 0.05; done; cat result");
  CHECK(outcome.out == "alive\n");
}

TEST_CASE("a Python that uses no torch is not touched, and the user's own sitecustomize is found",
          "[watch][cli]") {
  if (std::system("python3 -c 1 >/dev/null 2>&1") != 0) {
    WARN("skipped: no Python");
    return;
  }
  const Shell shell;
  shell.write("mine/sitecustomize.py", "print('mine')\n");
  const Outcome outcome = shell.rollcall(
      "watch -- python3 -c 'import sys; print(\"torch\" in sys.modules, [m for m in sys.modules if "
      "\"rollcall\" in m])'",
      "PYTHONPATH=mine");
  CHECK(outcome.out == "mine\nFalse []\n");
  shell.write("broken/sitecustomize.py", "import nothing_of_this_name\n");
  CHECK(shell.rollcall("watch -- python3 -c 'print(1)'", "PYTHONPATH=broken")
            .err.find("nothing_of_this_name") != std::string::npos);
}

TEST_CASE("the module in C writes what the observer in Python writes", "[watch][real-jobs]") {
  const std::string python = python_with_torch();
  if (python.empty()) {
    WARN("skipped: no Python with torch.distributed");
    return;
  }
  const Shell shell;
  shell.write("calls.py", calls_of_one_rank);
  const auto written = [&](const std::string& records, const std::string& environment) {
    const Outcome outcome =
        shell.run(fmt::format("{} USE_LIBUV=0 GLOO_SOCKET_IFNAME=lo '{}' watch --records {} -- {} "
                              "\"$PWD/calls.py\"",
                              environment, ROLLCALL_CLI, records, python));
    INFO(outcome.err);
    CHECK(outcome.out == (environment.empty() ? "native True\n" : "native False\n"));
    return calls_in_ring(contents(shell.path(records + "/rank_0.ring")));
  };
  const std::vector<std::string> in_c = written("c", "");
  CHECK(in_c.size() > 40);
  CHECK(in_c == written("python", "ROLLCALL_NO_NATIVE=1"));
}

TEST_CASE("real jobs that hang are named while they hang", "[watch][real-jobs]") {
  const Shell shell;
  const std::string said =
      watched(shell, "--after 2s --seconds 40", "stuck_in_loader crossed_groups killed holds_gil_in_c");
  INFO(said);
  CHECK((said.empty() || said.find("\n0 wrong\n") != std::string::npos));
}

// Two ranks on a backend that does with GPUs' tensors what torch's NCCL does since 2.8: calls return no Work, and the
// current stream runs them. Rank 1 stays away from the third.
constexpr const char* calls_on_the_stream = R"(
import os, sys, time
import torch
import torch.distributed as dist

RANK = int(os.environ["RANK"])

class Event:
    def record(self, stream):
        Event.calls = self.call = getattr(Event, "calls", 0) + 1

    def query(self):
        return self.call < 3

class OnGpu(torch.Tensor):
    is_cuda = True
    device = "cuda:0"

class Group(dist.ProcessGroup):
    def allreduce(self, tensors, options=None):
        return None

    def getBackendName(self):
        return "its_nccl"

torch.cuda.Event = Event
torch.cuda.current_stream = lambda device: None
torch.cuda.is_current_stream_capturing = lambda: False
dist.Backend.register_backend("its_nccl", lambda store, rank, size, timeout: Group(rank, size))
dist.init_process_group("its_nccl", rank=RANK, world_size=2, store=dist.FileStore(sys.argv[1], 2))
group = dist.distributed_c10d._get_default_group()

def next_batch():
    time.sleep(7)

for step in range(3):
    if step == 2 and RANK == 1:
        next_batch()
        break
    group.allreduce([torch.ones(4).as_subclass(OnGpu)])
time.sleep(7)
os._exit(0)
)";

TEST_CASE("calls that a GPU's stream runs are not over when they return", "[watch][real-jobs]") {
  const std::string python = python_with_torch();
  if (python.empty()) {
    WARN("skipped: no Python with torch.distributed");
    return;
  }
  for (const std::string environment : {"", "ROLLCALL_NO_NATIVE=1"}) {
    const Shell shell;
    shell.write("train.py", calls_on_the_stream);
    const Outcome outcome = shell.run(fmt::format(
        "{} WORLD_SIZE=2 '{}' watch --after 2s -- sh -c 'RANK=0 {} train.py store & RANK=1 {} train.py "
        "store; wait'",
        environment, ROLLCALL_CLI, python, python));
    INFO(outcome.err);
    CHECK(outcome.err.find("error[stuck_host]: rank 1 never issued all_reduce #3") != std::string::npos);
    CHECK(outcome.err.find("in next_batch") != std::string::npos);
  }
}

TEST_CASE(
    "a watched job of two ranks that follows one of three is judged alone, and in color where that is wanted",
    "[watch][real-jobs]") {
  const std::string python = python_with_torch();
  if (python.empty()) {
    WARN("skipped: no Python with torch.distributed");
    return;
  }
  const Shell shell;
  shell.write("job.py", R"(
import sys
import torch, torch.distributed as dist
dist.init_process_group("gloo", init_method="file://" + sys.argv[3], rank=int(sys.argv[1]), world_size=int(sys.argv[2]))
dist.all_reduce(torch.ones(4))
if sys.argv[4] == "fails" and dist.get_rank() == 1:
    sys.exit(3)
dist.all_reduce(torch.ones(4))
)");
  shell.write("jobs.py", R"(
import os, subprocess, sys, time
for number, (ranks, end) in enumerate([(3, "ends"), (2, "ends"), (2, "fails")]):
    meet = os.path.abspath(f"meet{number}")
    job = [subprocess.Popen([sys.argv[1], os.path.abspath("job.py"), str(rank), str(ranks), meet, end],
                            stderr=subprocess.DEVNULL) for rank in range(ranks)]
    for process in job:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    time.sleep(0.5)  # as a launcher that looks now and then
    code = max(process.wait() for process in job)
sys.exit(code)
)");
  const std::string said = shell
                               .rollcall("watch --color always --records rings -- " + python_of_system() +
                                             " jobs.py '" + python + "'",
                                         "USE_LIBUV=0")
                               .err;
  CHECK_THAT(said, Contains("\x1b[1;31merror[crashed_rank]"));
  CHECK_THAT(said, Contains("the process of rank 1 is gone: exited with code 3"));
}

TEST_CASE("a job that somebody ends has not failed", "[watch][real-jobs]") {
  const Shell shell;
  const std::string python = python_with_torch();
  if (python.empty()) {
    WARN("skipped: no Python with torch.distributed");
    return;
  }
  const Outcome outcome = shell.run(fmt::format(
      "USE_LIBUV=0 '{}' watch --records rings -- {} '{}/tests/real_jobs/watched.py' healthy_steps 28480 & "
      "until [ -e rings/rank_3.ring ]; do sleep 0.1; done; sleep 1; kill -TERM $!; wait $!; echo code $?",
      ROLLCALL_CLI, python, ROLLCALL_SOURCE_DIR));
  CHECK(outcome.out == "code 143\n");
  CHECK(outcome.err.find("rollcall:") == std::string::npos);
}

TEST_CASE("watches of two nodes name the rank that is missing on the other one", "[watch][real-jobs]") {
  const Shell shell;
  const std::string python = python_with_torch();
  if (python.empty()) {
    WARN("skipped: no Python with torch.distributed");
    return;
  }
  const std::string said = said_by_node_0(
      shell, python, [](int) { return std::string(); }, "--meet 127.0.0.1:28471", "28470");
  INFO(said);
  CHECK(said.find("error[stuck_host]: rank 2 never issued all_reduce #10") != std::string::npos);
  CHECK(said.find("  rank 2:\n") != std::string::npos);
  CHECK(contents(shell.path("err1")).find("error[") == std::string::npos);
}

TEST_CASE("watches of two hosts meet over the network, where the launcher's variables say",
          "[watch][real-jobs]") {
  const TwoHosts hosts;
  const std::string python = python_with_torch();
  if (python.empty() || !hosts.made()) {
    WARN("skipped: no Python with torch.distributed, or no right to make network namespaces");
    return;
  }
  const Shell shell;
  const std::string said = said_by_node_0(
      shell, python, [&](int node) { return hosts.on(node) + " GLOO_SOCKET_IFNAME=wire"; }, "", "");
  INFO(said << contents(shell.path("err1")));
  CHECK_THAT(said, Contains("error[stuck_host]: rank 2 never issued all_reduce #10"));
}

TEST_CASE("attach sees that a job has not moved between two looks", "[watch][real-jobs]") {
  const std::string python = python_with_torch();
  if (python.empty()) {
    WARN("skipped: no Python with torch.distributed");
    return;
  }
  const Shell shell;
  const Outcome outcome = shell.run(fmt::format(
      "USE_LIBUV=0 '{0}' watch --after 1h --records rings -- {1} '{2}/tests/real_jobs/watched.py' "
      "stuck_in_loader 28492 2> err & "
      "for i in $(seq 600); do grep -aq all_reduce rings/rank_3.ring 2> /dev/null && break; sleep 0.1; done; "
      "sleep 4; '{0}' attach $! $!; code=$?; kill -TERM $!; wait $!; exit $code",
      ROLLCALL_CLI, python, ROLLCALL_SOURCE_DIR));
  INFO(outcome.err << contents(shell.path("err")));
  CHECK_THAT(outcome.out, Contains("error[stuck_host]: rank 2 never issued all_reduce #10"));
  CHECK_THAT(outcome.out, Contains("nothing moved between them"));
  CHECK_THAT(outcome.err, !Contains("not used") && Contains("--records DIR keeps them"));
  CHECK_THAT(outcome.out + outcome.err,
             !Contains("taken to be rank"));  // the second time, its ranks are known
}

// The torchrun of 1.13 fails in Python 3.11 (torch/distributed/elastic/multiprocessing/api.py, to_map).
TEST_CASE("ranks that torchrun starts are watched as they are", "[watch][real-jobs]") {
  const std::string python = python_with_torch("torch.__version__ >= \"2\"");
  if (python.empty()) {
    WARN("skipped: no Python with torch 2");
    return;
  }
  const Shell shell;
  shell.run(fmt::format(
      "USE_LIBUV=0 TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 timeout -s INT 60 '{}' watch --after 3s --records "
      "rings -- {} -m torch.distributed.run --nproc_per_node 4 --rdzv_backend c10d --rdzv_endpoint "
      "rendezvous --rdzv_conf store_type=file --local_addr 127.0.0.1 '{}/tests/real_jobs/watched.py' "
      "stuck_in_loader 28474 > out 2> err & P=$!; for i in $(seq 300); do grep -q 'Python stacks' err && "
      "break; sleep 0.1; done; kill $P; wait; exit 0",
      ROLLCALL_CLI, python, ROLLCALL_SOURCE_DIR));
  const std::string said = contents(shell.path("err"));
  INFO(said);
  CHECK_THAT(said, Contains("error[stuck_host]: rank 2 never issued all_reduce #10"));
}

TEST_CASE("a real job at work gets no alarm, and one that fails is explained", "[watch][real-jobs]") {
  const Shell shell;
  const std::string said = watched(shell, "--seconds 14", "healthy_steps raises_and_dies");
  INFO(said);
  CHECK((said.empty() || said.find("\n0 wrong\n") != std::string::npos));
}

}  // namespace rollcall::test::watch_cli_test
