#include "scenarios/cli/terminal/machine_memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace rollcall::cli {

namespace {

namespace fs = std::filesystem;

// The number after `key` in a file with lines such as "MemAvailable:   23094252 kB". Empty if there is no such line.
std::optional<std::int64_t> number_in(const fs::path& file, std::string_view key) {
  std::ifstream in(file);
  for (std::string word; in >> word;) {
    std::int64_t number = 0;
    if (word == key && in >> number) {
      return number;
    }
  }
  return std::nullopt;
}

// The number in a file that holds one number. Empty if it holds a word, such as "max".
std::optional<std::int64_t> number_of(const fs::path& file) {
  std::ifstream in(file);
  std::int64_t number = 0;
  return in >> number ? std::optional(number) : std::nullopt;
}

// The files of version 1 and version 2 of control groups.
struct Names {
  const char* folder;
  const char* limit;
  const char* usage;
  const char* cache;  // in memory.stat: memory that can be reclaimed
};
constexpr Names version_1 = {"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                             "total_inactive_file"};
constexpr Names version_2 = {"sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};

std::optional<std::int64_t> left_in(const fs::path& group, const Names& names) {
  const std::optional<std::int64_t> limit = number_of(group / names.limit);
  const std::optional<std::int64_t> usage = number_of(group / names.usage);
  if (!limit || !usage) {
    return std::nullopt;
  }
  const std::int64_t cache = number_in(group / "memory.stat", names.cache).value_or(0);
  return std::max<std::int64_t>(*limit - *usage + std::min(cache, *usage), 0);
}

std::optional<std::int64_t> smaller(std::optional<std::int64_t> a, std::optional<std::int64_t> b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

// What is left in a group and all groups above it. In a container, the path may be the host's, and only the top folder
// exists.
std::optional<std::int64_t> left_along(const fs::path& root, std::string_view group, const Names& names) {
  std::optional<std::int64_t> left = left_in(root / names.folder, names);
  fs::path folder = root / names.folder;
  for (const fs::path& step : fs::path(group).relative_path()) {
    folder /= step;
    left = smaller(left, left_in(folder, names));
  }
  return left;
}

// Lines are "4:memory:/job" (version 1) and "0::/job" (version 2).
std::optional<std::int64_t> left_in_groups(const fs::path& root) {
  std::optional<std::int64_t> left;
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) {
      continue;
    }
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    const std::string_view group = std::string_view(line).substr(second + 1);
    if (controllers.empty() || controllers == "memory") {
      left = smaller(left, left_along(root, group, controllers.empty() ? version_2 : version_1));
    }
  }
  return left;
}

struct Sizes {
  std::int64_t addresses = 0;
  std::int64_t resident = 0;
};

Sizes own_sizes() {
  const int file = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return {};
  }
  char text[128];  // "addresses resident ...", in pages
  const ::ssize_t count = ::read(file, text, sizeof text);
  ::close(file);
  const char* const end = text + std::max<::ssize_t>(count, 0);
  Sizes pages;
  const auto [blank, error] = std::from_chars(text, end, pages.addresses);
  std::from_chars(std::min(blank + 1, end), end, pages.resident);
  const std::int64_t page = ::sysconf(_SC_PAGESIZE);
  return {pages.addresses * page, pages.resident * page};
}

}  // namespace

std::optional<std::int64_t> available_memory(const fs::path& root) {
  std::optional<std::int64_t> left = number_in(root / "proc/meminfo", "MemAvailable:");
  if (left) {
    *left *= 1024;
  }
  return smaller(left, left_in_groups(root));
}

std::optional<std::int64_t> available_addresses() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return std::nullopt;
  }
  return std::max<std::int64_t>(static_cast<std::int64_t>(limit.rlim_cur) - own_sizes().addresses, 0);
}

std::int64_t memory_in_use() { return own_sizes().resident; }

}  // namespace rollcall::cli
