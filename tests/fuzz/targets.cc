#include "tests/fuzz/targets.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/json/diagnostic.h"
#include "scenarios/json/source.h"
#include "scenarios/program/expression.h"
#include "scenarios/report_reader.h"
#include "scenarios/scenario.h"
#include "sim/check/dump_judge.h"
#include "sim/check/dump_replay.h"
#include "sim/dist/error.h"
#include "traces/formats.h"
#include "traces/json_value.h"
#include "traces/pickle.h"
#include "viz/json_report.h"
#include "viz/text_report.h"

namespace rollcall::fuzz {

namespace {

constexpr std::size_t tree_bytes_max = std::size_t{256} << 20;
constexpr std::size_t judged_bytes_max = 16384;  // a fuzzer learns nothing from a slow judge

// Two ranks with the same records, the second of which stopped half way: enough for the judge to compare.
void judge(const traces::RankRecording& decoded) {
  check::JobDump job;
  traces::DumpTables tables;
  for (const Rank rank : {0, 1}) {
    check::RankDump dump = decoded.dump;
    tables.absorb(decoded.tables, dump);
    dump.rank = rank;
    dump.records.resize(rank == 0 ? dump.records.size() : dump.records.size() / 2);
    job.ranks.push_back(std::move(dump));
  }
  job.calls = std::move(tables.calls.things());
  job.stacks = std::move(tables.stacks.things());
  job.groups = std::move(tables.groups.things());
  for (check::DumpGroup& group : job.groups) {  // as read_recordings sees to it
    group.members.insert(group.members.end(), {0, 1});
    std::sort(group.members.begin(), group.members.end());
    group.members.erase(std::unique(group.members.begin(), group.members.end()), group.members.end());
  }
  check::replay_states(job);
  check::judge_dump(job);
}

using ReadValue = traces::Value (*)(std::string_view bytes, traces::Arena& arena);

void read_dump(std::string_view bytes, ReadValue read) {
  try {
    traces::Arena arena(tree_bytes_max);
    const traces::Value value = read(bytes, arena);
    const traces::SourceFile file{bytes, value, 0};
    const traces::Format* format = traces::format_of(file);
    if (format == nullptr) {
      return;
    }
    const traces::RankRecording decoded = format->decode(file);
    if (bytes.size() <= judged_bytes_max) {
      judge(decoded);
    }
  } catch (const traces::BadFile& refused) {
    // what it says of such files
  }
}

}  // namespace

void read_pickle_dump(std::string_view bytes) { read_dump(bytes, traces::read_pickle); }

void read_json_dump(std::string_view bytes) { read_dump(bytes, traces::read_json); }

void read_scenario(std::string_view bytes) {
  try {
    scenario::parse_scenario(std::string(bytes), "fuzz.json");
  } catch (const scenario::InvalidScenario& refused) {
    // what it says of such files
  }
}

void read_expression(std::string_view bytes) {
  const std::vector<std::string> names = {"rank", "world_size", "unset", "text"};
  const std::vector<scenario::Variable> variables = {{3, scenario::Variable::State::number},
                                                     {8, scenario::Variable::State::number},
                                                     {0, scenario::Variable::State::unset},
                                                     {0, scenario::Variable::State::not_a_number}};
  const auto look_up = [&names](std::string_view name) -> scenario::NameLookup {
    for (std::size_t slot = 0; slot < names.size(); ++slot) {
      if (names[slot] == name) {
        return {static_cast<scenario::Slot>(slot), {}};
      }
    }
    return {{}, {0, "unknown name", ""}};
  };
  try {
    scenario::compile_expression(bytes, look_up).evaluate(variables, names);
  } catch (const scenario::ExpressionError& refused) {
    // what it says of such texts
  } catch (const Error& raised) {
    // what the expression comes to
  }
}

void read_report(std::string_view bytes) {
  try {
    const scenario::SourceText source = scenario::check_source("fuzz.json", std::string(bytes));
    if (const std::optional<Report> report = scenario::read_report(source)) {
      viz::json_report(*report);
      viz::text_report(*report, {});
    }
  } catch (const scenario::InvalidScenario& refused) {
    // what it says of such files
  }
}

}  // namespace rollcall::fuzz
