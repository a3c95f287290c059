#include "traces/formats/launcher_folders.h"

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "sim/base/parse_number.h"

namespace rollcall::traces {

namespace {

// "/a/b" and "c" of "/a/b/c".
struct Split {
  std::string_view folder;
  std::string_view name;
};
Split split(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? Split{{}, path}
                                         : Split{path.substr(0, slash), path.substr(slash + 1)};
}

std::optional<int> number_in(std::string_view digits) {
  const auto number = parse_number<int>(digits);
  return number && *number >= 0 ? number : std::nullopt;
}

}  // namespace

std::optional<LauncherFolder> launcher_folder(std::string_view path) {
  const Split file = split(path);
  if (file.name != "error.json" && file.name != "stderr.log" && file.name != "stdout.log") {
    return std::nullopt;
  }
  const Split rank = split(file.folder);
  const std::optional<int> local_rank = number_in(rank.name);
  if (!local_rank) {
    return std::nullopt;
  }
  constexpr std::string_view word = "attempt_";
  const Split attempt = split(rank.folder);
  const std::optional<int> number =
      attempt.name.starts_with(word) ? number_in(attempt.name.substr(word.size())) : std::nullopt;
  return LauncherFolder{std::string(number ? attempt.folder : rank.folder), number.value_or(0),
                        static_cast<Rank>(*local_rank)};
}

LauncherFolders::LauncherFolders(const std::vector<std::string>& paths) {
  std::vector<LauncherFolder> folders;
  for (const std::string& path : paths) {
    if (std::optional<LauncherFolder> folder = launcher_folder(path)) {
      const auto [known, is_new] = last_.emplace(folder->run, folder->attempt);
      known->second = std::max(known->second, folder->attempt);
      folders.push_back(*std::move(folder));
    }
  }
  std::map<Rank, std::string> runs;  // by local rank: the run that has it
  std::set<std::string> earlier;
  for (const LauncherFolder& folder : folders) {
    if (folder.attempt != last_.at(folder.run)) {
      earlier.insert(fmt::format("{}/attempt_{}", folder.run, folder.attempt));
    } else {
      runs_overlap_ =
          runs_overlap_ || runs.emplace(folder.local_rank, folder.run).first->second != folder.run;
    }
  }
  earlier_.assign(earlier.begin(), earlier.end());
}

bool LauncherFolders::is_of_earlier_attempt(std::string_view path) const {
  const std::optional<LauncherFolder> folder = launcher_folder(path);
  const auto last = folder ? last_.find(folder->run) : last_.end();
  return last != last_.end() && folder->attempt < last->second;
}

}  // namespace rollcall::traces
