#include "scenarios/import/hang.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/core.h>
#include <unistd.h>

#include "scenarios/format/scenario.h"
#include "scenarios/json/diagnostic.h"
#include "tests/catch.h"

namespace rollcall::scenario::hang_test {
namespace {

// A file of the hang library for two ranks, which exists as long as the object.
class HangFile {
 public:
  explicit HangFile(const std::string& programs, const std::string& more = "",
                    const std::string& culprit = "1") {
    std::ofstream(path_) << fmt::format(
        R"({{"id": "case", "class": "test", "source": ["a/b#1", "c/d#2"], "backend": "nccl", "world_size": 2, {}
            "groups": {{"world": [0, 1], "half": [1]}}, "programs": {{{}}},
            "expect": {{"verdict": "deadlock", "culprits": [{}], "at": {{"slots": [{{"group": "world", "seq": 3}}]}}}},
            "fixed": {{"programs": {{"0-1": []}}}}}})",
        more, programs, culprit);
  }
  ~HangFile() { std::filesystem::remove(path_); }
  HangFile(const HangFile&) = delete;
  HangFile& operator=(const HangFile&) = delete;

  std::string text(HangVariant variant = HangVariant::failing) const {
    return import_hang(path_.string(), variant);
  }
  bool says(const std::string& line) const { return text().find(line) != std::string::npos; }

  // Returns the first error in the file.
  std::string problem() const {
    try {
      import_hang(path_.string(), HangVariant::failing);
    } catch (const InvalidScenario& invalid) {
      const Diagnostic& first = invalid.diagnostics().front();
      return first.pointer + ": " + first.message +
             (first.suggestion.empty() ? "" : " -> " + first.suggestion);
    }
    return "nothing";
  }

 private:
  std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("rollcall_hang_test." + std::to_string(::getpid()) + ".json");
};

}  // namespace

TEST_CASE("an imported hang is a scenario that can be read", "[import]") {
  const HangFile file(R"("0": [{"op": "barrier"}], "1": [{"op": "exit"}])");
  const Scenario scenario = parse_scenario(file.text(), "case.json");
  CHECK(scenario.name == "case");
  CHECK(scenario.source == "a/b#1, c/d#2");
  CHECK(scenario.expect.verdict == "deadlock");
  CHECK(scenario.expect.culprits == RankSet{1});
  CHECK(scenario.expect.at->seq == 3);
  CHECK(scenario.options.groups.size() == 1);
  CHECK(parse_scenario(file.text(HangVariant::fixed), "fixed.json").expect.verdict == "ok");
}

TEST_CASE("ops become statements with torch's names", "[import]") {
  const auto becomes = [](const std::string& op, const std::string& statement) {
    INFO(op);
    CHECK(HangFile(R"("0-1": [)" + op + "]").says(statement));
  };
  becomes(R"({"op": "all_reduce", "group": "world", "numel": 10, "dtype": "f32", "reduce": "sum"})",
          R"({"all_reduce": {"numel": 10}})");
  becomes(
      R"({"op": "all_reduce", "group": "half", "numel": 1, "dtype": "i64", "reduce": "max", "label": "l"})",
      R"({"all_reduce": {"numel": 1, "dtype": "int64", "reduce_op": "MAX", "group": "half", "label": "l"}})");
  becomes(R"({"op": "broadcast", "numel": 1, "root": 1})", R"({"broadcast": {"numel": 1, "src": 1}})");
  becomes(R"({"op": "gather", "numel": 1, "root": 1})", R"({"gather": {"numel": 1, "dst": 1}})");
  becomes(R"({"op": "all_to_all", "in_splits": [1, 2], "out_splits": [2, 1]})",
          R"({"all_to_all_single": {"input_split_sizes": [1, 2], "output_split_sizes": [2, 1]}})");
  becomes(R"({"op": "batch_p2p", "ops": [{"op": "irecv", "src": 0, "numel": 4}], "handle": "b"})",
          R"({"batch_isend_irecv": [{"irecv": {"numel": 4, "src": 0}}], "as": "b"})");
  becomes(R"({"op": "compute", "seconds": 2.5})", R"({"compute": "2.5s"})");
  becomes(R"({"op": "device_sync"})", R"({"synchronize": true})");
  becomes(R"({"op": "raise", "error": "http_500"})", R"({"raise": "http_500"})");
}

TEST_CASE("a tensor is made as the call that uses it needs it", "[import]") {
  const HangFile file(R"("0-1": [{"op": "set", "tensor": "g", "value": 1.5},
      {"op": "all_reduce", "numel": 100, "dtype": "f64", "tensor": "g"}, {"op": "check", "tensor": "g", "value": 3}])");
  CHECK(file.says(R"({"fill": "g", "value": 1.5, "numel": 100, "dtype": "float64"})"));
  CHECK(file.says(R"({"check": "g", "value": 3})"));
}

TEST_CASE("launches on several streams that nothing orders are threads", "[import]") {
  const std::string launches = R"("0-1": [{"op": "barrier", "async": true, "stream": "a"},
      {"op": "barrier", "async": true, "stream": "b"}, {"op": "device_sync"}])";
  CHECK(HangFile(launches).says(R"({"parallel": [)"));
  CHECK_FALSE(HangFile(launches, R"("device_model": {"comm_slots": 1},)").says("parallel"));
  CHECK(HangFile(launches, R"("device_model": {"comm_slots": 1},)")
            .says(R"("device_model": {"comm_slots": 1})"));
}

TEST_CASE("what the format does not have is refused, with its place", "[import]") {
  CHECK(HangFile(R"("0-1": [{"op": "al_reduce"}])").problem() ==
        "/programs/0-1/0: unknown op \"al_reduce\" -> all_reduce");
  CHECK(HangFile(R"("0-1": [{"op": "barrier", "grup": "world"}])").problem() ==
        "/programs/0-1/0/grup: \"barrier\" has no field \"grup\" -> group");
  CHECK(HangFile(R"("0-1": [{"op": "all_reduce", "numel": 1, "dtype": "f31"}])").problem() ==
        "/programs/0-1/0/dtype: unknown dtype -> f32");
  CHECK(HangFile(R"("0-1": [{"op": "compute"}])").problem() ==
        "/programs/0-1/0: \"compute\" needs \"seconds\", a number");
  CHECK(HangFile(R"("0-1": [{"repeat": 2}])").problem() == "/programs/0-1/0: \"repeat\" needs a \"body\"");
  CHECK(HangFile(R"("0-1": [])", R"("world": 2,)").problem() == "/world: unknown key \"world\"");
  CHECK(HangFile(R"("0-1": [])", "", R"("1")").problem() ==
        "/expect/culprits/0: expected a rank, found a string");
}

}  // namespace rollcall::scenario::hang_test
