#include "traces/formats/recordings.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <map>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "sim/diagnose/dump_replay.h"
#include "sim/values/pickle.h"
#include "traces/formats/formats.h"
#include "traces/formats/launcher_folders.h"
#include "traces/formats/rank_in_name.h"
#include "traces/logs/job_evidence.h"
#include "traces/logs/log_stream.h"
#include "traces/logs/nccl_counters.h"
#include "traces/values/file_bytes.h"
#include "traces/values/json_value.h"
#include "traces/values/unpack.h"

namespace rollcall::traces {

namespace {

namespace fs = std::filesystem;
using check::DumpGroup;
using check::DumpRecord;
using check::JobDump;
using check::RankDump;

constexpr Rank log_ranks_max = 4096;                          // a larger number in a log's name is a job id
constexpr std::size_t tree_bytes_max = std::size_t{2} << 30;  // of one file, per thread

struct Candidate {
  std::string path;
  bool is_named = false;     // by the user, rather than found in a folder
  std::size_t argument = 0;  // the index of the argument that is this file, or the folder it was found in
};

// The content of a file, or the reason that it has none.
struct Outcome {
  std::optional<RankRecording> recording;
  std::string problem;
  std::vector<check::LogFact> facts = {};
  bool is_json = false;
  std::size_t digest = 0;    // of its bytes
  std::size_t argument = 0;  // see Candidate
  bool is_unknown = false;   // of a kind that no reader knows
};

std::vector<Candidate> candidates_of(const std::vector<std::string>& paths) {
  std::vector<Candidate> files;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    std::error_code unreadable;  // reading the file reports it
    if (!fs::is_directory(paths[i], unreadable)) {
      files.push_back({paths[i], true, i});
      continue;
    }
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(paths[i])) {
      if (entry.is_regular_file()) {
        files.push_back({entry.path().generic_string(), false, i});
      }
    }
  }
  const auto by_path = [](const Candidate& a, const Candidate& b) {
    return std::tie(a.path, b.is_named, a.argument) < std::tie(b.path, a.is_named, b.argument);
  };
  std::sort(files.begin(), files.end(), by_path);
  const auto same = [](const Candidate& a, const Candidate& b) { return a.path == b.path; };
  files.erase(std::unique(files.begin(), files.end(), same), files.end());
  return files;
}

bool looks_like_json(std::string_view bytes) {
  const std::size_t first = bytes.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (bytes[first] == '{' || bytes[first] == '[');
}

// True for files that people read.
bool is_text(const std::string& path) {
  const std::string extension = fs::path(path).extension().string();
  return extension == ".txt" || is_named_like_log(path);
}

// False for logs, many of which are empty.
bool is_named_like_dump(const std::string& path) {
  const std::string extension = fs::path(path).extension().string();
  return extension.empty() || extension == ".json" || extension == ".et" || extension == ".gz" ||
         extension == ".zst";
}

std::string unknown_format(std::string_view bytes) {
  if (bytes.empty()) {
    return "empty: its writer was stopped before it wrote anything";
  }
  std::vector<std::string_view> names;
  std::ranges::transform(formats(), std::back_inserter(names), &Format::name);
  std::ranges::copy(evidence_names(), std::back_inserter(names));
  return fmt::format("unknown format (known are: {})", fmt::join(names, ", "));
}

// The state that one thread uses to read file after file.
class FileReader {
 public:
  FileReader(const LauncherFolders& launchers, bool is_alone) : launchers_(launchers), is_alone_(is_alone) {}

  Outcome read(const Candidate& file) {
    if (launchers_.is_of_earlier_attempt(file.path)) {
      return {};
    }
    try {
      return decode(file);
    } catch (const BadFile& error) {
      return {std::nullopt, error.text(), {}};
    }
  }

 private:
  Outcome decode(const Candidate& file) {
    const std::string_view bytes = bytes_.read(file.path);
    if (const std::string_view packing = other_packing(bytes); !packing.empty()) {
      return not_read(file.is_named ? std::string(packing) : "");  // checkpoints are archives, too
    }
    if (bytes.empty() && file.path.ends_with(".held") && !file.is_named) {
      return {};  // of `watch`: for the stacks of an interpreter that did not answer, if there had been one
    }
    arena_.reset();
    const Rank rank = rank_of(file.path, bytes);
    // Lines of logs may begin with a bracket. Dumps may be large, and are not searched for what texts say.
    if (!bytes.starts_with('{') && !values::looks_like_pickle(bytes)) {
      if (std::optional<std::vector<check::LogFact>> facts = facts_of(file.path, bytes, rank)) {
        return {std::nullopt, "", *std::move(facts)};
      }
    }
    const std::optional<Value> value = value_of(bytes, file.path);
    if (!value) {  // the first line of a log may be a dictionary
      std::optional<std::vector<check::LogFact>> facts = facts_of(file.path, bytes, rank);
      return facts ? Outcome{std::nullopt, "", *std::move(facts)}
                   : Outcome{std::nullopt, unknown_format(bytes), {}};
    }
    if (std::optional<std::vector<check::LogFact>> facts = read_json_evidence(*value, rank, file.path)) {
      return {std::nullopt, "", *std::move(facts)};
    }
    SourceFile source{bytes, *value, rank};
    const Format* format = format_of(source);
    if (format == nullptr) {
      std::optional<std::vector<check::LogFact>> facts =
          looks_like_json(bytes) ? facts_of(file.path, bytes, rank) : std::nullopt;
      if (facts) {
        return {std::nullopt, "", *std::move(facts)};  // each line is an object with a message
      }
      const bool was_meant =
          file.is_named ||
          (rank >= 0 && (bytes.empty() ? is_named_like_dump(file.path) : is_text(file.path)));
      return not_read(was_meant ? unknown_format(bytes) : "");
    }
    Outcome outcome{format->decode(source),
                    "",
                    {},
                    !values::looks_like_pickle(bytes),
                    std::hash<std::string_view>()(bytes),
                    file.argument};
    RankRecording& recording = *outcome.recording;
    if (recording.names_groups_only) {
      return outcome;
    }
    if (!recording.rank) {
      recording.rank = rank_in_name(file.path, recording.tables.groups.things());
    }
    if (!recording.rank) {
      return {std::nullopt, "the file's name has no rank; rename it to end with the rank's number", {}};
    }
    recording.dump.rank = *recording.rank;
    recording.dump.file = file.path;
    return outcome;
  }

  // For a file of no known format. `problem`: empty if nobody meant it to be read.
  static Outcome not_read(std::string problem) {
    Outcome outcome{std::nullopt, std::move(problem), {}};
    outcome.is_unknown = outcome.problem.empty();
    return outcome;
  }

  // What a log or another text says; the log of a rank says at least that there is one. Empty for other files.
  static std::optional<std::vector<check::LogFact>> facts_of(const std::string& path, std::string_view bytes,
                                                             Rank rank) {
    std::optional<std::vector<check::LogFact>> facts = read_text_evidence(bytes, rank, path);
    if (rank >= 0 && is_named_like_log(path)) {
      facts = facts ? std::move(facts) : std::vector<check::LogFact>();
      facts->push_back(rank_wrote(rank, path));
    }
    return facts;
  }

  // Empty if the file looks like JSON but is not JSON, and its name does not say that it is.
  std::optional<Value> value_of(std::string_view bytes, const std::string& path) {
    if (values::looks_like_pickle(bytes)) {
      return values::read_pickle(bytes, arena_);
    }
    if (!looks_like_json(bytes)) {
      return Value();
    }
    try {
      return read_json_sequence(bytes, arena_);
    } catch (const BadFile&) {
      if (const std::optional<std::string> mended = mended_ras_json(bytes)) {
        return read_json_sequence(*mended, arena_);
      }
      if (is_text(path)) {
        return std::nullopt;
      }
      throw;
    }
  }

  // The rank in the file's name; -1: none. torchrun gives each rank a folder: "attempt_0/2/stderr.log". A number alone
  // may be that of a job, "slurm-1235.out", and is not a rank's where no other file has one.
  Rank rank_of(const std::string& path, std::string_view bytes) const {
    if (launcher_folder(path) && !launchers_.local_ranks_are_ranks()) {
      return rank_named_in(bytes).value_or(-1);
    }
    const fs::path name(path);
    const std::string file = name.filename().string();
    const bool is_torchruns = file == "error.json" || file == "stderr.log" || file == "stdout.log";
    const Rank rank =
        rank_in_name(is_torchruns ? name.parent_path().generic_string() : path, {}).value_or(-1);
    const bool is_named = is_torchruns || file.find("rank") != std::string::npos;
    if (rank < 0 || is_named || !is_text(path)) {
      return rank;
    }
    return rank < log_ranks_max && !is_alone_ && !names_only_others(bytes, rank) ? rank : -1;
  }

  const LauncherFolders& launchers_;
  bool is_alone_;  // the only file
  FileBytes bytes_;
  Arena arena_{tree_bytes_max};
};

std::vector<Outcome> read_all(const std::vector<Candidate>& files, const LauncherFolders& launchers,
                              const ReadProgress& progress) {
  std::vector<Outcome> outcomes(files.size());
  std::vector<std::exception_ptr> failures(std::max(1U, std::thread::hardware_concurrency()));
  std::atomic<std::size_t> next = 0;
  std::atomic<std::size_t> done = 0;
  const auto work = [&](std::exception_ptr& failure) {
    try {
      FileReader reader(launchers, files.size() == 1);
      for (std::size_t i = next++; i < files.size(); i = next++) {
        outcomes[i] = reader.read(files[i]);
        const std::size_t through = ++done;
        if (progress) {
          progress(through, files.size());
        }
      }
    } catch (...) {
      failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < std::min(failures.size(), files.size()); ++i) {
      threads.emplace_back(work, std::ref(failures[i]));
    }
    work(failures.front());
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) {
      std::rethrow_exception(failure);
    }
  }
  return outcomes;
}

bool has_stacks(const RankDump& dump) {
  return std::ranges::any_of(dump.records, [](const DumpRecord& record) { return record.stack != 0; });
}

std::int64_t last_time(const RankDump& dump) {
  std::int64_t last = 0;
  for (const DumpRecord& record : dump.records) {
    last = std::max({last, record.created_ns, record.started_ns, record.completed_ns});
  }
  return last;
}

std::int64_t calls_over(const RankDump& dump) {
  return std::ranges::count_if(dump.records, &DumpRecord::is_over);
}

// Of two recordings of one rank, the better one has states, is later or, if both are of the same moment, says
// more. Calls end without a time in Gloo's recorder.
bool says_more(const RankDump& a, const RankDump& b) {
  return std::make_tuple(a.has_states, last_time(a), a.records.size(), calls_over(a), has_stacks(a)) >
         std::make_tuple(b.has_states, last_time(b), b.records.size(), calls_over(b), has_stacks(b));
}

// False if the dumps begin with different first calls: the rank was started again, or they are of two jobs.
bool are_of_one_process(const RankDump& a, const RankDump& b) {
  const auto first_call = [](const RankDump& dump) {
    return dump.from_start && !dump.records.empty() ? dump.records.front().created_ns : 0;
  };
  return first_call(a) == 0 || first_call(b) == 0 || first_call(a) == first_call(b);
}

// The dumps of each rank. Of several, the best; the first by path among equals.
struct Chosen {
  std::map<Rank, Outcome*> last;
  std::map<Rank, Outcome*> earlier;  // of another moment
};

// Two dumps of a rank that were written in the same way are of two moments, because no one keeps the same dump twice.
// A dump as a pickle and a dump as JSON are one moment that was written twice.
bool are_two_moments(const Outcome& a, const Outcome& b) {
  const RankDump& one = a.recording->dump;
  const RankDump& other = b.recording->dump;
  return a.is_json == b.is_json && one.has_states && other.has_states && one.version == other.version;
}

// A stalled rank leaves the same bytes again, and so does a copy. A user who names two folders says that they are of
// two moments; for one folder that holds everything twice, nothing says so.
void drop_copies(Chosen& chosen, std::vector<FileProblem>& problems) {
  const auto is_copy = [&](const auto& entry) {
    const Outcome& last = *chosen.last.at(entry.first);
    return last.digest == entry.second->digest && last.argument == entry.second->argument;
  };
  if (!std::all_of(chosen.earlier.begin(), chosen.earlier.end(), is_copy)) {
    return;
  }
  for (const auto& [rank, copy] : chosen.earlier) {
    problems.push_back(
        {copy->recording->dump.file,
         fmt::format(
             "not used: byte for byte the same as {}. If it was taken at another time, name the two folders "
             "one by one",
             chosen.last.at(rank)->recording->dump.file)});
  }
  chosen.earlier.clear();
}

Chosen one_per_rank(std::vector<Outcome>& outcomes, std::vector<FileProblem>& problems) {
  Chosen chosen;
  for (Outcome& outcome : outcomes) {
    if (!outcome.recording || outcome.recording->names_groups_only) {
      continue;
    }
    RankDump& dump = outcome.recording->dump;
    const auto [place, is_first] = chosen.last.emplace(dump.rank, &outcome);
    if (is_first) {
      continue;
    }
    Outcome* other = &outcome;
    if (says_more(dump, place->second->recording->dump)) {
      std::swap(other, place->second);
    }
    if (!are_of_one_process(other->recording->dump, place->second->recording->dump)) {
      problems.push_back(
          {other->recording->dump.file,
           fmt::format("not used: {} is of another process of rank {}, and later; diagnose one run at a time",
                       place->second->recording->dump.file, dump.rank)});
      continue;
    }
    if (are_two_moments(*other, *place->second) && chosen.earlier.emplace(dump.rank, other).second) {
      continue;
    }
    problems.push_back(
        {other->recording->dump.file, fmt::format("not used: {} is also from rank {} and says more",
                                                  place->second->recording->dump.file, dump.rank)});
  }
  drop_copies(chosen, problems);
  return chosen;
}

// Resolves groups that a rank names without saying who is in them: to the group of that name that has the rank as
// a member, or else to all ranks that name it. The default group has all ranks, including those without a dump.
class NamelessGroups {
 public:
  NamelessGroups(JobDump& job, Rank ranks_at_least) : job_(job), ranks_at_least_(ranks_at_least) {}

  void resolve() {
    for (RankDump& dump : job_.ranks) {
      for (const std::uint32_t group : dump.groups) {
        if (job_.groups[group].members.empty()) {
          users_[group].push_back(dump.rank);
        }
      }
    }
    for (RankDump& dump : job_.ranks) {
      for (std::uint32_t& group : dump.groups) {
        replace(dump, group);
      }
      std::sort(dump.groups.begin(), dump.groups.end());
      dump.groups.erase(std::unique(dump.groups.begin(), dump.groups.end()), dump.groups.end());
    }
    for (const auto& [group, ranks] : users_) {
      if (job_.groups[group].description == "default_pg" && is_unknown(job_.groups[group].name)) {
        add_everybody(group);
      } else {
        job_.groups[group].members = ranks;
        job_.groups[group].is_by_use = true;
      }
    }
  }

 private:
  void replace(RankDump& dump, std::uint32_t& group) const {
    if (!job_.groups[group].members.empty()) {
      return;
    }
    const std::uint32_t nameless = group;
    const auto known = std::find_if(job_.groups.begin(), job_.groups.end(), [&](const DumpGroup& other) {
      return other.name == job_.groups[nameless].name &&
             std::binary_search(other.members.begin(), other.members.end(), dump.rank);
    });
    if (known == job_.groups.end()) {
      return;
    }
    group = static_cast<std::uint32_t>(known - job_.groups.begin());
    for (DumpRecord& record : dump.records) {
      record.group = record.group == nameless ? group : record.group;
    }
    for (check::DumpStatus& status : dump.status) {
      status.group = status.group == nameless ? group : status.group;
    }
  }

  bool is_unknown(const std::string& name) const {
    return std::ranges::none_of(job_.groups, [&name](const DumpGroup& group) {
      return group.name == name && !group.members.empty();
    });
  }

  void add_everybody(std::uint32_t group) {
    job_.groups[group].is_everybody = true;
    for (Rank rank = 0; rank < std::max(ranks_at_least_, job_.ranks.back().rank + 1); ++rank) {
      job_.groups[group].members.push_back(rank);
    }
    for (RankDump& dump : job_.ranks) {
      const auto place = std::lower_bound(dump.groups.begin(), dump.groups.end(), group);
      if (place == dump.groups.end() || *place != group) {
        dump.groups.insert(place, group);
      }
    }
  }

  JobDump& job_;
  Rank ranks_at_least_;
  std::map<std::uint32_t, std::vector<Rank>> users_;  // of groups without members; ascending
};

// The judge assumes that a rank that calls on a group belongs to it. A file may say otherwise.
void drop_foreign_calls(ReadResult& result) {
  for (RankDump& dump : result.job.ranks) {
    const auto is_foreign = [&](std::uint32_t group) {
      const std::vector<Rank>& members = result.job.groups[group].members;
      return !std::binary_search(members.begin(), members.end(), dump.rank);
    };
    std::erase_if(dump.groups, is_foreign);
    std::erase_if(dump.status, [&](const check::DumpStatus& status) { return is_foreign(status.group); });
    const std::size_t dropped =
        std::erase_if(dump.records, [&](const DumpRecord& record) { return is_foreign(record.group); });
    if (dropped > 0) {
      result.problems.push_back(
          {dump.file, fmt::format("{} calls are not used: rank {} is not a member of their groups", dropped,
                                  dump.rank)});
    }
  }
}

}  // namespace

ReadResult read_recordings(const std::vector<std::string>& paths, const ReadProgress& progress) {
  const std::vector<Candidate> files = candidates_of(paths);
  std::vector<std::string> names;
  std::ranges::transform(files, std::back_inserter(names), &Candidate::path);
  const LauncherFolders launchers(names);
  std::vector<Outcome> outcomes = read_all(files, launchers, progress);
  ReadResult result;
  for (const std::string& folder : launchers.earlier_attempts()) {
    result.problems.push_back({folder, "not used: the job was started again after that"});
  }
  if (!launchers.local_ranks_are_ranks()) {
    const auto first = std::ranges::find_if(
        names, [](const std::string& name) { return launcher_folder(name).has_value(); });
    result.problems.push_back({*first,
                               "its folder is a local rank, which files of other nodes or runs have as well: "
                               "whose it is, only lines "
                               "that begin with [rankN] say. If these are runs, name the folder of one"});
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    result.job.facts.insert(result.job.facts.end(), outcomes[i].facts.begin(), outcomes[i].facts.end());
    if (!outcomes[i].problem.empty()) {
      result.problems.push_back({files[i].path, outcomes[i].problem});
    }
    if (outcomes[i].is_unknown) {
      result.unknown.push_back(files[i].path);
    }
  }
  DumpTables tables;
  for (Outcome& outcome : outcomes) {
    if (outcome.recording && outcome.recording->names_groups_only) {
      tables.absorb(outcome.recording->tables, outcome.recording->dump);
    }
  }
  Rank ranks_at_least = 0;
  const Chosen chosen = one_per_rank(outcomes, result.problems);
  for (const auto& [rank, outcome] : chosen.last) {
    RankRecording& recording = *outcome->recording;
    ranks_at_least = std::max(ranks_at_least, recording.ranks_at_least);
    tables.absorb(recording.tables, recording.dump);
    result.job.ranks.push_back(std::move(recording.dump));
  }
  for (const auto& [rank, outcome] : chosen.earlier) {
    tables.absorb(outcome->recording->tables, outcome->recording->dump);
    result.job.earlier.push_back(std::move(outcome->recording->dump));
  }
  result.job.calls = std::move(tables.calls.things());
  result.job.stacks = std::move(tables.stacks.things());
  result.job.groups = std::move(tables.groups.things());
  NamelessGroups(result.job, ranks_at_least).resolve();
  drop_foreign_calls(result);
  check::replay_states(result.job);
  return result;
}

}  // namespace rollcall::traces
