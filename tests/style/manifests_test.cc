// Manifests for other tools must agree with CMake.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/format/version.h"
#include "tests/catch.h"
#include "tests/shell.h"

namespace rollcall::test::manifests_test {
namespace {

const std::filesystem::path root = ROLLCALL_SOURCE_DIR;

nlohmann::json vcpkg() { return nlohmann::json::parse(contents(root / "vcpkg.json")); }

}  // namespace

TEST_CASE("vcpkg and pip are told the version that CMake knows") {
  CHECK(vcpkg()["version"] == std::string(version()));
  CHECK_THAT(contents(root / "scenarios/pytest/pyproject.toml"),
             Contains("\nversion = \"" + std::string(version()) + "\"\n"));
}

TEST_CASE("vcpkg is told every library that CMake requires, and no other") {
  // The names of each library in CMake and in vcpkg.
  const std::vector<std::pair<std::string, std::vector<std::string>>> names{
      {"Boost", {"boost-context", "boost-fiber"}},
      {"fmt", {"fmt"}},
      {"nlohmann_json", {"nlohmann-json"}},
      {"CLI11", {"cli11"}},
      {"ZLIB", {"zlib"}},
      {"PROTOZERO_INCLUDE_DIR", {"protozero"}},
      {"Threads", {}},  // part of the system
  };
  std::set<std::string> expected;
  const std::string text = contents(root / "cmake/dependencies.cmake");
  static const std::regex required(R"((?:find_package|find_path)\((\w+)[^)]*REQUIRED)");
  for (std::sregex_iterator it(text.begin(), text.end(), required), end; it != end; ++it) {
    const auto entry = std::find_if(names.begin(), names.end(),
                                    [&](const auto& each) { return each.first == (*it)[1].str(); });
    INFO((*it)[1].str() << " is new: say here what vcpkg calls it");
    REQUIRE(entry != names.end());
    expected.insert(entry->second.begin(), entry->second.end());
  }
  CHECK(vcpkg()["dependencies"].get<std::set<std::string>>() == expected);
}

}  // namespace rollcall::test::manifests_test
