// Compares every schedule of torch.distributed.pipelining with real PyTorch 2.14: the same calls, batches and waits on
// every rank, in the same order.

#include <algorithm>
#include <optional>
#include <regex>

#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/c10d/device_mesh.h"
#include "sim/dist.h"
#include "sim/pipeline/schedule.h"
#include "tests/catch.h"
#include "tests/conformance/call_lines.h"

namespace rollcall::golden::pipelining_test {
namespace {

PipelineShape shape_of(const RecordedCalls& calls) {
  const nlohmann::json& params = *calls.params;
  const std::optional<ScheduleKind> kind = find_schedule(params.at("schedule").get<std::string>());
  REQUIRE(kind);
  return {.schedule = *kind,
          .ranks = calls.world_size / params.value("groups", 1),
          .stages_per_rank = params.at("stages"),
          .microbatches = params.at("microbatches"),
          .defers_recv = params.value("defer_pp_recv", false)};
}

// Does what the Python program of the same name in tests/data/torch_2_14/record.py does.
void run_pipeline(CallLines& lines, const RecordedCalls& calls, const PipelinePlan& plan) {
  const int groups = calls.params->value("groups", 1);
  const DeviceMesh mesh = init_device_mesh({.sizes = {groups, plan.shape.ranks}, .dim_names = {"dp", "pp"}});
  PipelineSchedule schedule(plan,
                            {.group = mesh.get_group("pp"),
                             .tensors = {{.shape = {2, 4}}},
                             .has_shapes = calls.params->value("static", true)},
                            {});
  for (int i = 0; i < calls.params->value("steps", 1); ++i) {
    lines.mark("step " + std::to_string(i));
    schedule.step();
  }
  for (int i = 0; i < calls.params->value("evals", 0); ++i) {
    lines.mark("eval " + std::to_string(i));
    schedule.eval();
  }
}

// The sizes of pickled shapes are Python's; c10d waits for messages of objects, not the schedule.
Lines comparable(Lines lines, bool has_shapes) {
  for (std::string& line : lines) {
    static const std::regex pickled(R"x("dtype":"uint8"(.*)"numel":\d+)x");
    line = std::regex_replace(line, pickled, R"("dtype":"uint8"$1"numel":"pickled")");
  }
  std::erase_if(lines, [](const std::string& line) { return line.find("new_group") != std::string::npos; });
  if (!has_shapes) {
    std::erase(lines, R"({"op":"wait"})");
  }
  return lines;
}

// Adjacent RESHARDs free memory in no particular order, because Python iterates over a set there.
std::vector<std::string> with_reshards_sorted(std::vector<std::string> actions) {
  const auto is_reshard = [](const std::string& action) { return action.ends_with("RESHARD"); };
  for (auto begin = actions.begin(); begin != actions.end(); ++begin) {
    auto end = begin;
    while (end != actions.end() && is_reshard(*end) && !end->ends_with("UNSHARD")) {
      ++end;
    }
    std::sort(begin, end);
  }
  return actions;
}

}  // namespace

TEST_CASE("every pipeline schedule issues the calls of real PyTorch 2.14", "[fiber][pipelining]") {
  for (const std::string& name : recorded_call_cases("pipelining")) {
    DYNAMIC_SECTION(name) {
      const RecordedCalls calls = read_recorded_calls("pipelining", name);
      const nlohmann::json& error = calls.notes->front().at("error");
      if (error.is_string()) {
        try {
          make_pipeline_plan(shape_of(calls));
          FAIL("expected " << error);
        } catch (const Error& raised) {
          CHECK(std::string(raised.type()) + ": " + raised.what() == error.get<std::string>());
        }
        continue;
      }
      const PipelinePlan plan = make_pipeline_plan(shape_of(calls));
      CallLines lines(calls.world_size);
      const Report report = lines.run([&](Rank) { run_pipeline(lines, calls, plan); });
      CHECK(std::holds_alternative<Completed>(report.verdict));
      const bool has_shapes = calls.params->value("static", true);
      for (std::size_t rank = 0; rank < calls.ranks.size(); ++rank) {
        INFO("rank " << rank);
        CHECK(to_text(comparable(lines.ranks()[rank], has_shapes)) ==
              to_text(comparable(calls.ranks[rank], has_shapes)));
      }
    }
  }
}

TEST_CASE("every pipeline schedule has the actions of real PyTorch 2.14", "[pipelining]") {
  for (const std::string& name : recorded_call_cases("pipelining")) {
    const RecordedCalls calls = read_recorded_calls("pipelining", name);
    if (!calls.notes->front().contains("actions") || calls.params->value("groups", 1) > 1) {
      continue;
    }
    const PipelinePlan plan = make_pipeline_plan(shape_of(calls));
    for (std::size_t rank = 0; rank < calls.notes->size(); ++rank) {
      INFO(name << ", rank " << rank);
      std::vector<std::string> actions;
      for (const Step& step : plan.orders[rank]) {
        actions.push_back(to_string(step));
      }
      CHECK(with_reshards_sorted(actions) ==
            with_reshards_sorted((*calls.notes)[rank].at("actions").get<std::vector<std::string>>()));
    }
  }
}

}  // namespace rollcall::golden::pipelining_test
