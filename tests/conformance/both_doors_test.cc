// The same small programs through both interfaces, as a scenario and in C++: the reports must say the same.

#include <functional>
#include <regex>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "scenarios/format/scenario.h"
#include "scenarios/run/runner.h"
#include "sim/dist.h"
#include "sim/engine/simulate.h"
#include "sim/train/sampler.h"
#include "tests/catch.h"

namespace rollcall::conformance::both_doors_test {
namespace {

// A program in both languages. The C++ program has the scenario's header in its options.
struct Twin {
  std::string name;
  std::string head;     // of the scenario, besides version, name and world_size
  std::string program;  // statements
  sim::Options options;
  sim::Program body;
  FindingKind kind = FindingKind::ok;  // of both
};

// Returns what a report says, without places, which are lines of different files.
std::vector<std::string> said(const Report& report) {
  std::vector<std::string> lines{std::string(verdict_word(report.verdict))};
  if (const Finding* finding = finding_of(report.verdict)) {
    lines.push_back(fmt::format("kind {}", to_string(finding->kind)));
    lines.push_back("culprits " + to_string(finding->culprits) + (finding->tie ? ", a tie" : ""));
    for (const Rank rank : finding->suspects) {
      lines.push_back(fmt::format("suspect {}", rank));
    }
    lines.insert(lines.end(), {finding->suspicion, finding->headline, finding->cause, finding->advice,
                               finding->on_backend});
    lines.insert(lines.end(), finding->chain.begin(), finding->chain.end());
  }
  for (const OutputLine& line : report.output) {
    lines.push_back(fmt::format("rank {}: {}", line.rank, line.text));
  }
  static const std::regex place(R"([\w.]+:\d+:\d+)");
  for (std::string& line : lines) {
    line = std::regex_replace(line, place, "PLACE");
  }
  return lines;
}

void reduce(const std::string& label, std::int64_t numel, Site site = Site::here()) {
  const Scope scope(label);
  all_reduce(Tensor::zeros({numel}), {}, site);
}

// A Joinable whose hook leaves out the second of two calls.
class Metrics final : public Joinable {
 public:
  void operator()() {
    Join::notify_join_context(*this);
    const Scope scope("metrics.forward", "metrics");
    all_reduce(Tensor::ones({1}));
    all_reduce(Tensor::ones({1}));
  }

  std::unique_ptr<JoinHook> join_hook(const Kwargs&) override { return std::make_unique<Hook>(); }
  Device join_device() const override { return cpu_device; }
  ProcessGroup join_process_group() const override { return world(); }
  std::string name() const override { return "metrics"; }

 private:
  struct Hook final : JoinHook {
    void main_hook() override {
      const Scope scope("metrics.main_hook", "metrics");
      all_reduce(Tensor::zeros({1}));
    }
  };
};

std::vector<Twin> twins() {
  return {
      {"a message to the wrong rank",
       R"("backend": "gloo")",
       R"({"if": "rank == 0", "do": [{"send": {"numel": 4, "dst": 2}}]},
          {"if": "rank == 1", "do": [{"recv": {"numel": 4, "src": 0}}]})",
       {.world_size = 3, .backend = "gloo"},
       [](Rank rank) {
         const Tensor tensor = Tensor::zeros({4});
         if (rank == 0) {
           send(tensor, 2);
         } else if (rank == 1) {
           recv(tensor, 0);
         }
       },
       FindingKind::wrong_peer},
      {"half of the ranks on a path of their own",
       R"("backend": "gloo")",
       R"({"all_reduce": {"numel": 1000, "label": "gradients"}},
          {"all_reduce": {"numel": 1000, "label": "gradients"}},
          {"if": "rank < 2", "do": [{"barrier": {}}]})",
       {.world_size = 4, .backend = "gloo"},
       [](Rank rank) {
         reduce("gradients", 1000);
         reduce("gradients", 1000);
         if (rank < 2) {
           barrier();
         }
       },
       FindingKind::missing_participant},
      {"one of two breaks the pattern",
       R"("backend": "gloo")",
       R"({"all_reduce": {"numel": 8, "label": "a"}}, {"all_reduce": {"numel": 4, "label": "b"}},
          {"all_reduce": {"numel": 8, "label": "a"}},
          {"if": "rank == 0", "do": [{"all_reduce": {"numel": 4, "label": "b"}}],
           "else": [{"all_reduce": {"numel": 8, "label": "a"}}]})",
       {.world_size = 2, .backend = "gloo"},
       [](Rank rank) {
         reduce("a", 8);
         reduce("b", 4);
         reduce("a", 8);
         if (rank == 0) {
           reduce("b", 4);
         } else {
           reduce("a", 8);
         }
       },
       FindingKind::numel_mismatch},
      {"a key that no program sets",
       R"("backend": "gloo")",
       R"({"if": "rank == 0", "do": [{"store_get": "raedy"}]}, {"barrier": {}})",
       {.world_size = 2, .backend = "gloo"},
       [](Rank rank) {
         if (rank == 0) {
           Store().get("raedy");
         }
         barrier();
       },
       FindingKind::store_never_served},
      {"a hook that is too short",
       R"("backend": "gloo", "inputs": [1, 3], "objects": {"metrics": {"kind": "joinable",
          "forward": [{"all_reduce": {"value": 1}}, {"all_reduce": {"value": 1}}],
          "main_hook": [{"all_reduce": {"value": 0}}]}})",
       R"({"join": ["metrics"], "do": [{"for_each_input": "i", "do": [{"forward": "metrics"}]}]})",
       {.world_size = 2, .backend = "gloo"},
       [](Rank rank) {
         Metrics metrics;
         Join({metrics}).run([&] {
           for (int i = 0; i < (rank == 0 ? 1 : 3); ++i) {
             metrics();
           }
         });
       },
       FindingKind::join_hook_mismatch},
      {"groups in different orders",
       R"("backend": "gloo", "groups": {"a": "0-1", "b": "0-1"})",
       R"({"if": "rank == 0",
           "do": [{"all_reduce": {"numel": 4, "group": "a", "async_op": true}},
                  {"all_reduce": {"numel": 4, "group": "b", "async_op": true}}],
           "else": [{"all_reduce": {"numel": 4, "group": "b", "async_op": true}},
                    {"all_reduce": {"numel": 4, "group": "a", "async_op": true}}]},
          {"synchronize": true})",
       {.world_size = 2, .backend = "gloo", .groups = {{"a", {0, 1}}, {"b", {0, 1}}}},
       [](Rank rank) {
         const Tensor tensors[] = {Tensor::zeros({4}), Tensor::zeros({4})};
         const ProcessGroup groups[] = {find_group("a"), find_group("b")};
         const int first = rank == 0 ? 0 : 1;
         const Work one = all_reduce(tensors[0], {.group = groups[first], .async_op = true});
         const Work other = all_reduce(tensors[1], {.group = groups[1 - first], .async_op = true});
         one.wait();
         other.wait();
       },
       FindingKind::ok},
      {"samplers with seeds of their own",
       R"("backend": "gloo", "inputs": {"dataset": 100, "sampler": {"seed": [0, 0, 7, 0]}})",
       R"({"for_each_input": "i", "do": [{"all_reduce": {"numel": 4}}]})",
       {.world_size = 4,
        .backend = "gloo",
        .samples = sample_use({.dataset = 100, .num_replicas = 4}, {0, 0, 7, 0})},
       [](Rank) {
         for (int i = 0; i < 25; ++i) {
           all_reduce(Tensor::zeros({4}));
         }
       },
       FindingKind::samples_repeated},
  };
}

Report run_scenario(const Twin& twin) {
  return scenario::run(scenario::parse_scenario(
      fmt::format(R"({{"version": 1, "name": "twin", "world_size": {}, {}, "program": [{}]}})",
                  twin.options.world_size, twin.head, twin.program),
      "twin.json"));
}

}  // namespace

TEST_CASE("a program in C++ is told the same as the scenario that does the same", "[both-doors][fiber]") {
  for (const Twin& twin : twins()) {
    INFO(twin.name);
    const Report in_cpp = sim::run(twin.options, twin.body);
    CHECK(kind_of(in_cpp.verdict) == twin.kind);
    CHECK(said(in_cpp) == said(run_scenario(twin)));
  }
}

TEST_CASE("an exception that ends a rank is reported with its place, in C++ as in a scenario",
          "[both-doors][fiber]") {
  const Twin twin{
      "a rank that raises",
      R"("backend": "gloo")",
      R"({"if": "rank == 1", "do": [{"raise": {"type": "ValueError", "message": "bad sample"}}]})",
      {.world_size = 2, .backend = "gloo"},
      [](Rank rank) {
        if (rank == 1) {
          raise(ValueError("bad sample"), {"twin.json", 1, 2});
        }
      },
      FindingKind::raised};
  const auto without_place = [](const Report& report) {
    const Finding& finding = *finding_of(report.verdict);
    CHECK(finding.at->call.op == "raise");
    const std::size_t place = finding.cause.find("twin.json");
    REQUIRE(place != std::string::npos);
    return finding.headline + finding.cause.substr(0, place) + finding.advice;
  };
  CHECK(without_place(sim::run(twin.options, twin.body)) == without_place(run_scenario(twin)));
}

TEST_CASE("a program that is run again leaves the process as it was", "[both-doors][fiber]") {
  int calls = 0;
  const Report report = sim::run({.world_size = 3, .backend = "gloo"}, [&](Rank rank) {
    ++calls;
    const Tensor tensor = Tensor::full({1}, 1);
    if (rank == 0) {
      send(tensor, 2);
    } else if (rank == 1) {
      recv(tensor, 0);
    }
  });
  CHECK(kind_of(report.verdict) == FindingKind::wrong_peer);
  CHECK(calls == 3);
}

TEST_CASE("a program that dies where nobody answers is judged by its one run", "[both-doors][fiber]") {
  const Report report = sim::run({.world_size = 3, .backend = "gloo"}, [](Rank rank) {
    Tensor tensor = Tensor::full({1}, 0);
    broadcast(rank == 0 ? Tensor::full({1}, 1) : tensor, 0);
    if (rank != 0 && tensor.item() != 1) {
      std::abort();  // as a wrong index from a missing rank could
    }
    if (rank == 0) {
      send(tensor, 2);
    } else if (rank == 1) {
      recv(tensor, 0);
    }
  });
  CHECK(kind_of(report.verdict) == FindingKind::unmatched_send);
}

TEST_CASE("a program that must not be run again is judged by its one run", "[both-doors][fiber]") {
  const Report report = sim::run({.world_size = 3, .backend = "gloo", .may_run_again = false}, [](Rank rank) {
    const Tensor tensor = Tensor::zeros({4});
    if (rank == 0) {
      send(tensor, 2);
    } else if (rank == 1) {
      recv(tensor, 0);
    }
  });
  CHECK(kind_of(report.verdict) == FindingKind::unmatched_send);
}

}  // namespace rollcall::conformance::both_doors_test
