// The same job, recorded by other recorders: other backend names, TorchComms' numbers, other rings, other pickles. The
// diagnosis must not change.

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "sim/diagnose/dump_judge.h"
#include "tests/catch.h"
#include "tests/folder.h"
#include "traces/formats/recordings.h"
#include "traces/values/file_bytes.h"

namespace rollcall::traces::other_recorders_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

const fs::path data = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data";

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

Diagnosis diagnose(const std::string& folder) {
  const ReadResult input = read_recordings({folder});
  CHECK(input.problems.empty());
  return check::judge_dump(input.job);
}

std::string answer(const Diagnosis& diagnosis) {
  return fmt::format("{} {}", to_string(diagnosis.finding.kind), to_string(diagnosis.finding.culprits));
}

// Diagnoses a set after changing every dump.
template <typename Change>
Diagnosis diagnose_after(const fs::path& set, Change&& change) {
  const test::Folder folder;
  FileBytes bytes;
  for (const fs::path& file : entries_of(set / "json")) {
    Json dump = Json::parse(bytes.read(file.string()));
    change(dump);
    folder.write(file.stem().string(), dump.dump());
  }
  return diagnose(folder.path());
}

// Checks for every set except `but_not` that the answer is the same as without the change.
template <typename Change>
void check_all(Change&& change, const std::string& but_not = "") {
  for (const fs::path& set : entries_of(data / "flight_recorder")) {
    if (but_not.empty() || set.filename().string().find(but_not) == std::string::npos) {
      CAPTURE(set.filename().string());
      CHECK(answer(diagnose_after(set, change)) == answer(diagnose((set / "json").string())));
    }
  }
}

Json& entries(Json& dump) {
  static Json none = Json::array();
  return dump.contains("entries") ? dump["entries"] : none;
}

void rename_backend(Json& dump, const std::string& backend) {
  for (Json& entry : entries(dump)) {
    const std::string name = entry["profiling_name"];
    entry["profiling_name"] = backend + name.substr(name.find(':'));
  }
}

// torchcomms' FlightRecorder: one counter for all groups of a rank, from 0; members without blanks.
void number_like_torchcomms(Json& dump) {
  std::int64_t next = 0;
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> latest;  // by pg_id: enqueued, completed
  for (Json& entry : entries(dump)) {
    if (entry.value("is_p2p", false)) {
      continue;
    }
    auto& [enqueued, completed] = latest.try_emplace(entry["pg_id"].dump(), -1, -1).first->second;
    entry["collective_seq_id"] = enqueued = next++;
    completed = entry["state"] == "completed" ? enqueued : completed;
  }
  for (auto& [id, status] : dump["pg_status"].items()) {
    if (const auto found = latest.find(id); found != latest.end()) {
      status["last_enqueued_collective"] = std::to_string(found->second.first);
      status["last_completed_collective"] = std::to_string(found->second.second);
    }
  }
  for (auto& [name, group] : dump["pg_config"].items()) {
    std::string ranks = group["ranks"];
    std::erase(ranks, ' ');
    group["ranks"] = ranks;
  }
}

}  // namespace

TEST_CASE("Gloo's recorder says the same without durations and without a library", "[flight-recorder]") {
  const auto as_gloo = [](Json& dump) {
    rename_backend(dump, "gloo");
    dump.erase("nccl_version");
    dump.erase("comm_lib_version");
    for (Json& entry : entries(dump)) {
      entry.erase("duration_ms");
    }
  };
  check_all(as_gloo, "straggler");  // slow ranks show only in durations
}

TEST_CASE("hooked and vendors' backends are read under whatever name they have", "[flight-recorder]") {
  for (const char* backend : {"xccl", "hccl", "nccl2"}) {
    check_all([backend](Json& dump) { rename_backend(dump, backend); });
  }
}

TEST_CASE("TorchComms' one counter for all groups is taken apart again", "[flight-recorder]") {
  check_all(number_like_torchcomms);
}

// Without device events, TorchComms' recorder does not say when a call started or finished, and retires calls that are
// over. c10d's recorder retires, in the same form, calls that the watchdog has given up on.
TEST_CASE("TorchComms' recorder without events is read by what it retired", "[flight-recorder]") {
  const auto without_events = [](Json& dump) {
    number_like_torchcomms(dump);
    for (Json& entry : entries(dump)) {
      entry["retired"] = entry["state"] == "completed";
      entry["state"] = "scheduled";
      entry["time_discovered_started_ns"] = 0;
      entry["time_discovered_completed_ns"] = 0;
      entry.erase("duration_ms");
    }
  };
  for (const char* name : {"cpu_stuck_dataloader_4", "size_mismatch_4", "skipped_rank_branch_4"}) {
    const fs::path set = data / "flight_recorder" / name;
    const Diagnosis plain = diagnose((set / "json").string());
    const Diagnosis changed = diagnose_after(set, without_events);
    CAPTURE(name, changed.finding.headline);
    CHECK(changed.finding.kind == plain.finding.kind);
    CHECK(changed.finding.culprits == plain.finding.culprits);
  }
}

// With less of the past to compare, both ends of a message may be named.
TEST_CASE("rings that have wrapped are lined up by groups and counters", "[flight-recorder]") {
  for (const fs::path& set : entries_of(data / "flight_recorder")) {
    const Diagnosis whole = diagnose((set / "json").string());
    const Diagnosis cut = diagnose_after(set, [](Json& dump) {
      Json& all = entries(dump);
      constexpr std::size_t kept = 12;
      if (all.size() > kept) {
        all.erase(all.begin(), all.end() - kept);
      }
    });
    CAPTURE(set.filename().string(), answer(cut), answer(whole));
    CHECK(cut.finding.kind == whole.finding.kind);
    CHECK(cut.finding.culprits.contains(whole.finding.culprits));
  }
}

TEST_CASE("numbers of records say nothing across ranks", "[flight-recorder]") {
  std::int64_t offset = 0;
  check_all([&offset](Json& dump) {
    offset += 1'234'567;
    for (Json& entry : entries(dump)) {
      entry["record_id"] = entry["record_id"].get<std::int64_t>() + offset;
    }
  });
}

TEST_CASE("pickles that Python has saved again are read in the protocols 2 to 5",
          "[flight-recorder][pickle]") {
  const std::string expected =
      answer(diagnose((data / "flight_recorder/skipped_rank_branch_4/pickle").string()));
  for (const fs::path& folder : entries_of(data / "pickle_protocols")) {
    CAPTURE(folder.filename().string());
    CHECK(answer(diagnose(folder.string())) == expected);
  }
}

}  // namespace rollcall::traces::other_recorders_test
