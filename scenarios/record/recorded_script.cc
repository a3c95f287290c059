#include "scenarios/record/recorded_script.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string_view>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "scenarios/format/scenario.h"
#include "scenarios/import/roll_up.h"
#include "scenarios/json/diagnostic.h"
#include "scenarios/record/live_ends.h"
#include "scenarios/record/merged_programs.h"
#include "scenarios/record/recorded_outcome.h"
#include "scenarios/record/script_notes.h"
#include "scenarios/record/script_statements.h"
#include "scenarios/run/runner.h"
#include "scenarios/run/source_lines.h"
#include "sim/c10d/backend_traits.h"
#include "sim/report/blame.h"
#include "sim/torch/torch_traits.h"

namespace rollcall::scenario {
namespace {

using traces::ScriptEnd;
using traces::ScriptRank;
using traces::ScriptRecord;

bool has_begun(const ScriptRank& rank) { return !rank.backend.empty(); }

// init_process_group waits for every rank of the job, so it matters only if one does not call it.
OrderedJson rendezvous(const ScriptRank& rank) {
  OrderedJson arguments = {{"label", "init_process_group"}};
  if (const std::string place = place_text(rank, rank.init_site); !place.empty()) {
    arguments["site"] = place;
  }
  return {{"barrier", arguments}};
}

std::vector<OrderedJson> statements_of(const ScriptRank& rank, const CallNotes& notes, bool all_initialize) {
  std::vector<OrderedJson> statements = script_statements(rank, notes);
  if (!all_initialize && has_begun(rank)) {
    statements.insert(statements.begin(), rendezvous(rank));
  }
  return statements;
}

// Only GPUs have kernels, and only a cluster determines how long they take.
bool keeps_kernels(const ScriptRecord& record, const OrderedJson* cluster) {
  return cluster != nullptr && std::ranges::any_of(record.ranks, [](const ScriptRank& rank) {
           const BackendTraits* backend = find_backend_traits(rank.backend);
           return backend != nullptr && backend->device == DeviceType::cuda;
         });
}

// The programs of all ranks, equal ones once.
std::vector<RankProgram> programs_of(const ScriptRecord& record, const NoteOptions& options) {
  const std::vector<CallNotes> notes = script_notes(record, options);
  const bool all_initialize = std::ranges::all_of(record.ranks, has_begun);
  std::map<std::string, std::uint32_t> numbers;  // of statements
  std::vector<OrderedJson> statements;
  std::map<std::vector<std::uint32_t>, std::size_t> known;
  std::vector<RankProgram> programs;
  for (std::size_t i = 0; i < record.ranks.size(); ++i) {
    std::vector<std::uint32_t> program;
    for (OrderedJson& statement : statements_of(record.ranks[i], notes[i], all_initialize)) {
      const auto [number, is_new] =
          numbers.emplace(statement.dump(), static_cast<std::uint32_t>(statements.size()));
      if (is_new) {
        statements.push_back(std::move(statement));
      }
      program.push_back(number->second);
    }
    const auto [place, is_new] = known.emplace(program, programs.size());
    if (is_new) {
      programs.push_back({{}, roll_up({statements, std::move(program)})});
    }
    programs[place->second].ranks.insert(record.ranks[i].rank);
  }
  return programs;
}

std::string_view how_recorded(std::string_view mode) {
  if (mode == "fake") {
    return "each rank ran alone";
  }
  return mode == "live" ? "as it ran" : "all ranks, in the simulator";
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

class ScenarioBuilder {
 public:
  ScenarioBuilder(const ScriptRecord& record, std::string file, bool timeline, const OrderedJson* cluster)
      : record_(record),
        world_size_(record.ranks.front().world_size),
        file_(std::move(file)),
        timeline_(timeline),
        cluster_(cluster) {
    const bool went_on_after_timeouts = limit_of_waits(record).has_value();
    for (const ScriptRank& rank : record.ranks) {
      const BackendTraits* own = find_backend_traits(rank.backend);
      backend_ = own != nullptr && own->device == DeviceType::cuda ? own->name : backend_;
      recorded_.insert(rank.rank);
      const bool is_open = rank.end.how == ScriptEnd::How::unknown;
      if (is_open && record.was_interrupted && !rank.waits) {
        interrupted_.insert(rank.rank);
      } else if (is_open && !went_on_after_timeouts) {
        stalled_.insert(rank.rank);
      }
    }
    if (record.was_interrupted) {
      interrupted_.insert(difference(RankSet::range(0, world_size_ - 1), recorded_));
    }
  }

  // Returns the scenario with one program for all ranks, or one for each set of equal ranks, whichever is shorter.
  // `reservation`: what it fails to show of the script; may be empty.
  std::string text(const NoteOptions& options, const std::string& reservation = {}) const {
    std::vector<RankProgram> programs = programs_of(record_, options);
    if (const RankSet lost = difference(RankSet::range(0, world_size_ - 1), recorded_); !lost.empty()) {
      programs.push_back({lost, {}});
      if (!record_.was_interrupted) {  // otherwise they had not begun
        programs.back().statements.push_back({{"raise", "left no record"}});
      }
    }
    const std::string apart = scenario_text(apart_from(programs), comment() + reservation);
    const std::string merged = scenario_text(merged_from(programs), comment() + reservation);
    return merged.size() <= apart.size() && is_sound(merged) ? merged : apart;
  }

  Report run(const std::string& text) const {
    return scenario::run(parse_scenario(text, file_), {.timeline = timeline_});
  }

 private:
  OrderedJson header() const {
    const ScriptRank& first = record_.ranks.front();
    OrderedJson header{{"version", 1},
                       {"name", base_name(first.script)},
                       {"world_size", world_size_},
                       {"backend", backend_}};
    if (const std::optional<TorchRelease> torch = nearest_torch_release(first.torch)) {
      header["torch"] = traits_of(*torch).name;
    }
    const auto is_eager = [](const ScriptRank& rank) { return rank.is_eager || !has_begun(rank); };
    // A first call holds up the thread that makes it, and a program has one thread for the calls of all.
    const bool has_threads = traits_of(backend_).connects_at_first_use &&
                             std::ranges::any_of(record_.ranks, [](const ScriptRank& rank) {
                               return std::ranges::any_of(rank.calls, &traces::ScriptCall::is_aside);
                             });
    if (has_threads ||
        (std::ranges::any_of(record_.ranks, has_begun) && std::ranges::all_of(record_.ranks, is_eager))) {
      header["communicators"] = "eager";
    }
    if (cluster_ != nullptr) {
      header["cluster"] = *cluster_;
    }
    if (first.detail) {
      header["debug"] = "DETAIL";
    }
    if (first.ranks_per_host > 0 && first.ranks_per_host < world_size_) {
      for (Rank begin = 0; begin < world_size_; begin += first.ranks_per_host) {
        const Rank end = std::min(begin + first.ranks_per_host, world_size_) - 1;
        header["hosts"][fmt::format("node{}", begin / first.ranks_per_host)] =
            to_string(RankSet::range(begin, end));
      }
    }
    if (!interrupted_.empty()) {
      header["interrupted"] = to_string(interrupted_);
    }
    if (!stalled_.empty()) {
      header["stalled"] = to_string(stalled_);
    }
    if (const std::optional<double> limit = limit_of_waits(record_)) {
      header["timeout"] = duration_text(*limit);
    }
    return header;
  }

  OrderedJson apart_from(const std::vector<RankProgram>& programs) const {
    OrderedJson scenario = header();
    for (const RankProgram& program : programs) {
      scenario["programs"][to_string(program.ranks)] = program.statements;
    }
    return scenario;
  }

  OrderedJson merged_from(const std::vector<RankProgram>& programs) const {
    OrderedJson scenario = header();
    scenario["program"] = merge_programs(programs);
    return scenario;
  }

  // Blocks in a scenario have a maximum depth.
  bool is_sound(const std::string& text) const {
    try {
      parse_scenario(text, file_);
      return true;
    } catch (const InvalidScenario&) {
      return false;
    }
  }

  std::string comment() const {
    std::size_t calls = 0;
    for (const ScriptRank& rank : record_.ranks) {
      calls += static_cast<std::size_t>(std::ranges::count_if(rank.events, std::not_fn(traces::is_of_gpu)));
    }
    const ScriptRank& first = record_.ranks.front();
    const std::string how = record_.sampled.empty()
                                ? std::string(how_recorded(first.mode))
                                : fmt::format("{} ran alone, and the others are taken to do the same",
                                              ranks_phrase(record_.sampled));
    const std::string interrupted =
        record_.was_interrupted
            ? "The recording was interrupted: what the ranks would have called next is not known.\n"
            : "";
    return fmt::format("Recorded from {}, {} ranks, {} {} ({}).\n{}", first.script, world_size_, calls,
                       calls == 1 ? "call" : "calls and waits", how, interrupted);
  }

  const ScriptRecord& record_;
  Rank world_size_;
  std::string file_;
  bool timeline_;
  const OrderedJson* cluster_;
  std::string_view backend_ = default_backend(DeviceType::cpu).name;  // the one on GPUs, if ranks differ
  RankSet recorded_;
  RankSet interrupted_;  // what they would have called next is not known
  RankSet stalled_;      // the same, and they waited
};

// ---- Remarks ----

std::string last_place(const ScriptRank& rank) {
  for (auto event = rank.events.rbegin(); event != rank.events.rend(); ++event) {
    if (!event->calls.empty()) {
      const traces::ScriptCall& call = rank.calls[event->calls.back()];
      return fmt::format("; last call: {} at {}", call.op, place_text(rank, call.site));
    }
  }
  return "; it made no call before";
}

std::string end_phrase(const ScriptRank& rank) {
  const ScriptEnd& end = rank.end;
  const std::string place = place_text(rank, end.site);
  switch (end.how) {
    case ScriptEnd::How::finished:
      return rank.backend.empty() ? "finished without init_process_group" : "";
    case ScriptEnd::How::raised:
      return fmt::format("raised {}: {}{}{}", end.type, end.message.substr(0, end.message.find('\n')),
                         place.empty() ? "" : " at ", place);
    case ScriptEnd::How::exited:
      return fmt::format("exited with code {} in the middle of the script{}", end.code, last_place(rank));
    case ScriptEnd::How::killed:
      return fmt::format("{}{}",
                         end.code > 0 ? fmt::format("was killed by signal {}", end.code) : "was killed",
                         last_place(rank));
    case ScriptEnd::How::stopped:
      return fmt::format("made no call for too long; it was stopped at {}", place);
    case ScriptEnd::How::terminated:
      return fmt::format("was terminated by the launcher{}", last_place(rank));
    case ScriptEnd::How::unknown:
      return rank.stack.empty() ? fmt::format("did not finish{}", last_place(rank)) : "";  // else: its stack
  }
  return {};
}

// Each of the remarks applies to few records; the others get an empty text.

// An unknown release counts as the one before it.
std::string release_remark(const std::string& torch) {
  if (torch.empty() || parse_torch_release(torch)) {
    return {};
  }
  const TorchRelease taken_for = nearest_torch_release(torch).value_or(newest_torch);
  return fmt::format("PyTorch {} is not known here; the run is taken for one of {} (known: {})", torch,
                     traits_of(taken_for).name, names_of_torch_releases());
}

// A warning about a backend that has no row of its own.
std::string backend_remark(const ScriptRecord& record) {
  const auto unknown = std::ranges::find_if(record.ranks, [](const ScriptRank& rank) {
    return has_begun(rank) && find_backend_traits(rank.backend) == nullptr;
  });
  if (unknown == record.ranks.end()) {
    return {};
  }
  return fmt::format(
      "warning: the script asks for the backend {}, whose rules are not known here: the ranks ran by those "
      "of {}; what {} lets pass, refuses or reports may differ",
      unknown->backend, default_backend(DeviceType::cpu).name, unknown->backend);
}

// A warning about threads that share a group: the order of their calls was chance in this run, and is on every rank. It
// does not say on which ranks they were seen at the same time, which is chance, too.
std::string overlap_remark(const ScriptRecord& record) {
  const auto shown =
      std::ranges::find_if(record.ranks, [](const ScriptRank& rank) { return rank.overlap.has_value(); });
  if (shown == record.ranks.end()) {
    return {};
  }
  const traces::ScriptCall* main = &shown->calls[shown->overlap->first];
  const traces::ScriptCall* aside = &shown->calls[shown->overlap->second];
  if (main->is_aside) {
    std::swap(main, aside);
  }
  return fmt::format(
      "warning: two threads of a rank make calls on one group at the same time ({} at {} and {} at {}): "
      "chance decides which comes first, on each rank anew, so real ranks may hang or mix values; give one "
      "of the threads a group of its own (new_group)",
      main->op, place_text(*shown, main->site), aside->op, place_text(*shown, aside->site));
}

std::string sample_remark(const ScriptRecord& record) {
  return record.sampled.empty()
             ? ""
             : fmt::format(
                   "{} made the same calls; the other {} were not run, and are taken to make them, too",
                   ranks_phrase(record.sampled), record.ranks.size() - record.sampled.size());
}

std::vector<std::string> remarks_of(const ScriptRecord& record) {
  std::vector<std::string> remarks = {release_remark(record.ranks.front().torch),
                                      backend_remark(record),
                                      sample_remark(record),
                                      trained_alike(record),
                                      trained_on_their_own(record),
                                      overlap_remark(record)};
  std::erase(remarks, "");
  for (const traces::FileProblem& problem : record.problems) {
    remarks.push_back(fmt::format("{}: {}", problem.file, problem.message));
  }
  std::vector<std::pair<std::string, RankSet>> phrases;  // equal ones once
  for (const ScriptRank& rank : record.ranks) {
    const std::string phrase = end_phrase(rank);
    const auto same = std::ranges::find(phrases, phrase, &std::pair<std::string, RankSet>::first);
    if (!phrase.empty() && same == phrases.end()) {
      phrases.push_back({phrase, {rank.rank}});
    } else if (!phrase.empty()) {
      same->second.insert(rank.rank);
    }
  }
  for (const auto& [phrase, ranks] : phrases) {
    const bool are = ranks.size() > 1 && phrase.starts_with("was ");
    remarks.push_back(are ? fmt::format("{} were{}", ranks_phrase(ranks), phrase.substr(3))
                          : fmt::format("{} {}", ranks_phrase(ranks), phrase));
  }
  return remarks;
}

// A scenario has neither the calls that a rank which has joined makes for others, nor those on stores. So only the run
// itself shows where hooks and the other ranks' iterations get out of step, and who did not set a key.
bool only_the_run_shows(const Verdict& verdict) {
  const FindingKind kind = kind_of(verdict);
  return kind == FindingKind::join_hook_mismatch || kind == FindingKind::store_cycle ||
         kind == FindingKind::store_never_served;
}

// True if that replaces the report.
bool keep_what_only_the_run_shows(const Report* run, const std::string& file, Report& report) {
  const Finding* of_run = run != nullptr ? finding_of(run->verdict) : nullptr;
  const Finding* of_scenario = finding_of(report.verdict);
  if (of_run == nullptr || !only_the_run_shows(run->verdict) ||
      (of_scenario != nullptr && of_scenario->kind == of_run->kind &&
       of_scenario->culprits == of_run->culprits)) {
    return false;
  }
  const Report replaced = std::move(report);
  report = *run;
  read_sources(report, file);
  report.scenario = replaced.scenario;
  report.unmet = unmet({}, report);
  report.expected = report.unmet.empty();
  return true;
}

std::vector<const traces::ScriptCall*> calls_until_one_raised(const ScriptRank& rank) {
  std::vector<const traces::ScriptCall*> calls;
  for (const traces::ScriptEvent& event : rank.events) {
    for (const std::uint32_t number : event.calls) {
      calls.push_back(&rank.calls[number]);
    }
    if (event.has_raised) {
      break;
    }
  }
  return calls;
}

}  // namespace

RecordedScript recorded_script(ScriptRecord record, const std::string& file, const Report* run, bool timeline,
                               const OrderedJson* cluster) {
  settle_live_ends(record);
  if (!keeps_kernels(record, cluster)) {
    cluster = nullptr;
    for (ScriptRank& rank : record.ranks) {
      std::erase_if(rank.events, traces::is_of_gpu);
    }
  }
  RecordedScript result;
  if (record.ranks.empty()) {
    return result;  // a live command that failed before it started any rank
  }
  result.remarks = remarks_of(record);
  if (std::ranges::none_of(record.ranks, has_begun)) {
    if (run != nullptr && std::holds_alternative<Deadlock>(run->verdict)) {  // in a store of the script's own
      result.report = *run;
      read_sources(result.report, file);
      result.report.scenario = base_name(record.ranks.front().script);
    }
    return result;
  }
  const ScenarioBuilder builder(record, file, timeline, cluster);
  result.text = builder.text({.labels = false});
  result.report = builder.run(result.text);
  const bool is_comparable = run != nullptr && !record.was_interrupted;
  if (const auto difference = is_comparable ? contradiction(record, *run, result.report) : std::nullopt) {
    const std::string reservation = "scenario does not do what the script did: " + *difference;
    result.text = builder.text({.labels = false}, "This " + reservation + ".\n");
    result.report = *run;
    read_sources(result.report, file);
    result.report.scenario = base_name(record.ranks.front().script);
    result.is_only_in_run = true;
    result.reservation = "this " + reservation + "; the report is that of the recorded run";
    return result;
  }
  if (auto apart = trained_apart(record); apart && finding_of(result.report.verdict) == nullptr) {
    result.text = builder.text({.labels = false},
                               fmt::format("Not in this scenario: {}.\n", finding_of(*apart)->headline));
    result.is_only_in_run = true;
    result.report.verdict = *std::move(apart);
    read_sources(result.report, file);
    result.report.unmet = unmet({}, result.report);
    result.report.expected = result.report.unmet.empty();
    return result;
  }
  if (finding_of(result.report.verdict) != nullptr) {
    // Something is wrong: lines of the script may show where it began.
    result.text = builder.text({.labels = true});
    result.report = builder.run(result.text);
    result.is_only_in_run = keep_what_only_the_run_shows(run, file, result.report);
    if (record.ranks.front().mode == "fake") {
      result.remarks.emplace_back(
          "each rank ran alone, at another time: with --simulate they run together, and find the files that "
          "others write when real ranks would");
    }
  }
  return result;
}

std::vector<std::string> data_dependent_places(const ScriptRecord& record) {
  std::set<std::string> places;
  for (const ScriptRank& rank : record.ranks) {
    for (const traces::ScriptSite& site : rank.data_dependent) {
      places.insert(place_text(rank, site));
    }
  }
  return {places.begin(), places.end()};
}

std::vector<std::string> refused_places(const ScriptRecord& record) {
  std::set<std::string> places;
  for (const ScriptRank& rank : record.ranks) {
    for (const traces::ScriptCall& call : rank.calls) {
      if (has_odd_list(rank, call)) {
        places.insert(place_text(rank, call.site));
      }
    }
  }
  return {places.begin(), places.end()};
}

std::string lone_failure(const ScriptRecord& record) {
  const auto has_raised = [](const ScriptRank& rank) { return rank.end.how == ScriptEnd::How::raised; };
  const auto failed = std::ranges::find_if(record.ranks, has_raised);
  if (failed == record.ranks.end()) {
    return {};
  }
  const bool is_everywhere = std::ranges::all_of(record.ranks, [&](const ScriptRank& rank) {
    return has_raised(rank) && rank.end.type == failed->end.type && rank.end.site == failed->end.site;
  });
  return is_everywhere ? std::string()
                       : fmt::format("rank {} raised {} ({})", failed->rank, failed->end.type,
                                     place_text(*failed, failed->end.site));
}

bool goes_on_from(const ScriptRecord& record, const ScriptRecord& before) {
  return std::ranges::equal(record.ranks, before.ranks, [](const ScriptRank& rank, const ScriptRank& known) {
    const auto calls = calls_until_one_raised(rank);
    const auto first = calls_until_one_raised(known);
    return rank.rank == known.rank && first.size() <= calls.size() &&
           std::ranges::equal(first, std::span(calls).first(first.size()),
                              [](const auto* a, const auto* b) { return *a == *b; });
  });
}

}  // namespace rollcall::scenario
