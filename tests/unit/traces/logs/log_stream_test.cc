#include "traces/logs/log_stream.h"

#include <map>
#include <string>

#include "tests/catch.h"

namespace rollcall::traces::log_stream_test {

namespace {

// By rank, its lines; those of each unknown process end with "/".
std::map<Rank, std::string> texts_of(const std::string& log, Rank file_rank = -1) {
  std::map<Rank, std::string> texts;
  for (const LogStream& stream : log_streams(log, file_rank)) {
    for (const LogLine& line : stream.lines) {
      texts[stream.rank] += std::string(line.text) + "|";
    }
    texts[stream.rank] += stream.rank < 0 ? "/" : "";
  }
  return texts;
}

using Texts = std::map<Rank, std::string>;

}  // namespace

TEST_CASE("the lines of a console are told apart by the prefixes of launchers", "[job-log]") {
  CHECK(texts_of("[rank1]: a\n[rank0]:[E1] b\n[rank1]: c\n") == Texts{{0, "[E1] b|"}, {1, "a|c|"}});
  CHECK(texts_of("3: a\n11: b\n3:   c\n") == Texts{{3, "a|  c|"}, {11, "b|"}});              // srun --label
  CHECK(texts_of("[1,3]<stderr>:a\n[1,11]<stdout>:b\n") == Texts{{3, "a|"}, {11, "b|"}});    // mpirun
  CHECK(texts_of("[1,mpirank:9,algo-2]<stderr>:a\n") == Texts{{9, "a|"}});                   // SageMaker
  CHECK(texts_of("2026-11-25T10:00:01.5Z stderr F [rank2]: a\n") == Texts{{2, "a|"}});       // containers
  CHECK(texts_of("[default0]:a\n[default1]:b\n[default0]:c\n") == Texts{{-1, "a|c|/b|/"}});  // torchrun --tee
  CHECK(texts_of("a\n[rank1]: b\n", 4) == Texts{{1, "b|"}, {4, "a|"}});                      // a rank's file
}

TEST_CASE("prefixes that people make for torchrun name the rank", "[job-log]") {
  CHECK(texts_of("[3]:a\n[11]: b\n") == Texts{{3, "a|"}, {11, " b|"}});  // "[${rank}]:"
  CHECK(texts_of("[trainer22|6]:a\n[trainer3|3]:b\n") ==
        Texts{{3, "b|"}, {22, "a|"}});  // with the local rank
  CHECK(texts_of("Root Cause:\n[1]:\n  rank : 0\n").count(1) ==
        0);  // the title of a part of torchrun's summary
}

TEST_CASE("ranks of several jobs of Ray are told apart, and the classes of one job are one", "[job-log]") {
  const auto jobs = [](const std::string& log) {
    std::map<std::string, std::string> texts;
    for (const LogStream& stream : log_streams(log, -1)) {
      texts[stream.job] += std::to_string(stream.rank) + ":" + std::string(stream.lines.front().text) + " ";
    }
    return texts;
  };
  using Jobs = std::map<std::string, std::string>;
  CHECK(jobs("(Actor pid=7) [rank0]: a\n(Critic pid=9, ip=10.0.0.2) [rank0]: b\n(Critic pid=9, ip=10.0.0.2) "
             "c\n") == Jobs{{"Actor", "0:a "}, {"Critic", "0:b "}});
  CHECK(jobs("(Worker_TP0 pid=7) [rank0]: a\n(Worker_TP1 pid=9) [rank1]: b\n") == Jobs{{"", "0:a 1:b "}});
}

TEST_CASE("a prefix that also stands before torch's own says whose the other lines are", "[job-log]") {
  CHECK(texts_of("[default1]:a\n[default1]:[rank5]: b\n[default0]:c\n") == Texts{{4, "c|"}, {5, "a|b|"}});
  CHECK(texts_of("worker-1 | a\nworker-1 | [rank5]: b\nworker-10 | c\n") ==
        Texts{{-1, "worker-10 | c|/"}, {5, "a|b|"}});
  CHECK(texts_of("(Worker pid=7, ip=10.0.0.2) a\n(Worker pid=7, ip=10.0.0.2) [rank3]: b\n") ==
        Texts{{3, "a|b|"}});
  const std::string pod = "[pod/job-1/torch] 2026-11-25T10:00:0";
  CHECK(texts_of(pod + "1Z [rank1]: a\n" + pod + "2Z b\n") == Texts{{1, "a|b|"}});
}

TEST_CASE("a prefix that stands before lines of several ranks is not of one of them", "[job-log]") {
  CHECK(texts_of("node7: [rank0]: a\nnode7: [rank1]: b\nnode7: c\n") ==
        Texts{{-1, "c|/"}, {0, "a|"}, {1, "b|"}});
}

TEST_CASE("numbers before lines are those of nodes if torch's ranks say so", "[job-log]") {
  CHECK(texts_of("0: [default0]:[rank0]: a\n1: [default0]:[rank8]: b\n1: [default0]:c\n1: d\n") ==
        Texts{{-1, "d|/"}, {0, "a|"}, {8, "b|c|"}});
}

TEST_CASE("the text of a line is not taken for a prefix", "[job-log]") {
  CHECK(texts_of("ValueError: x\n[Rank 0]: y\n  File \"a.py\"\n\n123456: z\n") ==
        Texts{{-1, "ValueError: x|[Rank 0]: y|  File \"a.py\"||123456: z|/"}});
}

}  // namespace rollcall::traces::log_stream_test
