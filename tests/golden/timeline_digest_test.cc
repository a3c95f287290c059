// Timelines have the same bytes whichever compiler built the program: tests/data/timeline_digests.txt lists scenarios
// with digests for every format, which the builds of GCC and Clang must both produce. If both compilers are installed,
// scripts/compare-compilers compares all scenarios, byte for byte.
//
// After an intended change: ROLLCALL_BLESS=1 build/dev/rollcall_tests '[timeline-digest]'

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "scenarios/format/scenario.h"
#include "scenarios/run/runner.h"
#include "tests/catch.h"
#include "tests/shipped_scenarios.h"
#include "viz/text/timeline_chart.h"
#include "viz/traces/chrome_trace.h"
#include "viz/traces/kineto_trace.h"
#include "viz/traces/perfetto_trace.h"

namespace rollcall::test::timeline_digest_test {
namespace {

namespace fs = std::filesystem;

const fs::path digest_file = fs::path(ROLLCALL_SOURCE_DIR) / "tests/data/timeline_digests.txt";

// FNV-1a, 64 bits.
std::uint64_t digest(const std::string& bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : bytes) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  }
  return hash;
}

std::string written(const std::function<void(std::ostream&)>& write) {
  std::ostringstream out;
  write(out);
  return std::move(out).str();
}

std::string kineto_files(const Report& report) {
  const viz::KinetoTraces traces(report, {});
  return written([&](std::ostream& out) {
    for (const Rank rank : traces.ranks()) {
      traces.write(rank, out);
    }
  });
}

// Returns the digests of one scenario: "json 0123456789abcdef pftrace ...".
std::string digests_of(const std::string& name) {
  const std::string file = example_file(name);
  std::ifstream in(fs::path(ROLLCALL_SOURCE_DIR) / file, std::ios::binary);
  REQUIRE(in.good());
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const Report report = scenario::run(scenario::parse_scenario(text, file), {.timeline = true});
  const std::pair<const char*, std::string> formats[] = {
      {"json", written([&](std::ostream& out) { viz::chrome_trace(report, out); })},
      {"json-us",
       written([&](std::ostream& out) { viz::chrome_trace(report, out, {.whole_microseconds = true}); })},
      {"pftrace", written([&](std::ostream& out) { viz::perfetto_trace(report, out); })},
      {"kineto", kineto_files(report)},
      {"chart", viz::timeline_chart(report, {}, {})}};
  std::string line;
  for (const auto& [format, bytes] : formats) {
    line += fmt::format(" {} {:016x}", format, digest(bytes));
  }
  return line;
}

// Returns the name and the digests of each line. Lines that begin with # describe the file.
std::vector<std::pair<std::string, std::string>> recorded() {
  std::ifstream in(digest_file);
  REQUIRE(in.good());
  std::vector<std::pair<std::string, std::string>> lines;
  for (std::string line; std::getline(in, line);) {
    const std::size_t blank = line.find(' ');
    lines.emplace_back(line.substr(0, blank), blank == std::string::npos ? "" : line.substr(blank));
  }
  return lines;
}

bool wants_new_digests() {
  const char* bless = std::getenv("ROLLCALL_BLESS");
  return bless != nullptr && std::string(bless) == "1";
}

}  // namespace

TEST_CASE("timelines have the bytes that every compiler's build gives", "[timeline-digest][fiber]") {
  std::string anew;
  std::size_t scenarios = 0;
  for (const auto& [name, digests] : recorded()) {
    if (name == "#") {
      anew += name + digests + "\n";
      continue;
    }
    INFO(name << ".json; if the change is meant: ROLLCALL_BLESS=1");
    const std::string now = digests_of(name);
    anew += name + now + "\n";
    ++scenarios;
    if (!wants_new_digests()) {
      CHECK(now == digests);
    }
  }
  CHECK(scenarios >= 20);
  if (wants_new_digests()) {
    std::ofstream(digest_file) << anew;
  }
}

}  // namespace rollcall::test::timeline_digest_test
