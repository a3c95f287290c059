// Fuzz targets for what a job leaves without recordings: logs, stacks, counters. They need nothing that runs ranks.

#include <optional>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/diagnose/dump_judge.h"
#include "sim/report/diagnosis.h"
#include "tests/fuzz/targets.h"
#include "traces/logs/host_stacks.h"
#include "traces/logs/job_evidence.h"
#include "traces/values/json_value.h"
#include "viz/json/json_diagnosis.h"
#include "viz/text/text_diagnosis.h"

namespace rollcall::fuzz {

namespace {

using Facts = std::vector<check::LogFact>;

// Judges the facts of two ranks that say the same, and of one that says nothing, and shows the verdict.
void judge_facts(Facts of_one, const Facts& of_another) {
  check::JobDump job;
  job.facts = std::move(of_one);
  job.facts.insert(job.facts.end(), of_another.begin(), of_another.end());
  if (!job.facts.empty()) {  // otherwise there is nothing to judge
    job.facts.push_back(traces::rank_wrote(0, "rank0.log"));
    const Diagnosis diagnosis = check::judge_dump(job);
    viz::json_diagnosis(diagnosis, {});
    viz::text_diagnosis(diagnosis, {});
  }
}

}  // namespace

void read_log(std::string_view bytes) {
  if (std::optional<Facts> facts = traces::read_text_evidence(bytes, 1, "rank1.log")) {
    judge_facts(*std::move(facts), *traces::read_text_evidence(bytes, 2, "rank2.log"));
  }
}

void read_stacks(std::string_view bytes) {
  judge_facts(traces::read_host_stacks(traces::log_of_one(bytes, 1)),
              traces::read_host_stacks(traces::log_of_one(bytes, 2)));
}

// torchrun's error.json, NCCL's RAS and Inspector.
void read_job_json(std::string_view bytes) {
  try {
    traces::Arena arena(tree_bytes_max);
    const traces::Value value = traces::read_json_sequence(bytes, arena);
    if (std::optional<Facts> facts = traces::read_json_evidence(value, 1, "1/error.json")) {
      judge_facts(*std::move(facts), *traces::read_json_evidence(value, 2, "2/error.json"));
    }
  } catch (const traces::BadFile& refused) {
    // its error for such files
  }
}

}  // namespace rollcall::fuzz
