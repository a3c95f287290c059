// Fuzz targets for the files of a job: each is read, judged and shown, as `rollcall diagnose` does.

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "scenarios/record/live_ends.h"
#include "scenarios/record/merged_programs.h"
#include "scenarios/record/script_notes.h"
#include "scenarios/record/script_statements.h"
#include "scenarios/recordings/recorded_programs.h"
#include "sim/diagnose/dump_judge.h"
#include "sim/diagnose/dump_replay.h"
#include "sim/report/diagnosis.h"
#include "sim/values/pickle.h"
#include "tests/fuzz/targets.h"
#include "traces/dumps/dump_report.h"
#include "traces/formats/formats.h"
#include "traces/formats/script_record.h"
#include "traces/values/json_value.h"
#include "viz/html/html_diagnosis.h"
#include "viz/json/json_diagnosis.h"
#include "viz/text/text_diagnosis.h"

namespace rollcall::fuzz {

namespace {

constexpr std::size_t judged_bytes_max = 16384;  // a slow judge teaches a fuzzer nothing
constexpr Rank shown_ranks_max = 256;            // nor do long pages

// Two ranks with the same records, the second of which stopped halfway: enough for the judge to compare.
check::JobDump job_of_two(const traces::RankRecording& decoded) {
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
  for (check::DumpGroup& group : job.groups) {  // as read_recordings ensures
    group.members.insert(group.members.end(), {0, 1});
    std::sort(group.members.begin(), group.members.end());
    group.members.erase(std::unique(group.members.begin(), group.members.end()), group.members.end());
  }
  check::replay_states(job);
  return job;
}

// Judges the job, shows it in every way, and makes a scenario of it. The scenario is not run, because sanitizers do not
// understand fibers.
void judge(const check::JobDump& job) {
  const Diagnosis diagnosis = check::judge_dump(job);
  viz::json_diagnosis(diagnosis, {});
  viz::text_diagnosis(diagnosis, {});
  if (!job.ranks.empty() && diagnosis.world_size <= shown_ranks_max) {
    std::ostringstream page;
    viz::html_diagnosis(diagnosis, traces::report_of(job, diagnosis, "fuzz").report, {}, page);
    scenario::recorded_programs(job, diagnosis, {});
  }
}

void decode(const traces::SourceFile& file) {
  const traces::Format* format = traces::format_of(file);
  if (format == nullptr) {
    return;
  }
  const traces::RankRecording decoded = format->decode(file);
  if (file.bytes.size() <= judged_bytes_max) {
    judge(job_of_two(decoded));
  }
}

using ReadValue = traces::Value (*)(std::string_view bytes, traces::Arena& arena);

void read_dump(std::string_view bytes, ReadValue read) {
  try {
    traces::Arena arena(tree_bytes_max);
    decode({bytes, read(bytes, arena), 0});
  } catch (const traces::BadFile& refused) {
    // its error for such files
  }
}

}  // namespace

void read_pickle_dump(std::string_view bytes) { read_dump(bytes, values::read_pickle); }

void read_json_dump(std::string_view bytes) { read_dump(bytes, traces::read_json_sequence); }

// Kineto traces, execution traces, PARAM traces, and Chakra as JSON: the same reader, which starts from other files.
void read_job_trace(std::string_view bytes) { read_dump(bytes, traces::read_json_sequence); }

void read_chakra(std::string_view bytes) {
  try {
    decode({bytes, {}, 0});
  } catch (const traces::BadFile& refused) {
    // its error for such files
  }
}

// Also binary: the same reader, which starts from other files.
void read_ring(std::string_view bytes) { read_chakra(bytes); }

// Turns the records of two equal ranks into programs. They are not run.
void read_script(std::string_view bytes) {
  try {
    traces::ScriptRecord record;
    record.ranks.push_back(traces::read_script_rank(std::string(bytes)));
    if (const traces::ScriptRank& first = record.ranks.front(); first.rank + 1 < first.world_size) {
      traces::ScriptRank second = first;
      ++second.rank;
      record.ranks.push_back(std::move(second));
    }
    scenario::settle_live_ends(record);
    const std::vector<scenario::CallNotes> notes = scenario::script_notes(record, {.labels = true});
    std::vector<scenario::RankProgram> programs;
    for (std::size_t i = 0; i < record.ranks.size(); ++i) {
      programs.push_back({{record.ranks[i].rank}, scenario::script_statements(record.ranks[i], notes[i])});
    }
    scenario::merge_programs(programs);
  } catch (const traces::BadFile& refused) {
    // its error for such files
  }
}

}  // namespace rollcall::fuzz
