#pragma once

// Compares a run with what real PyTorch did, field by field.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tests/conformance/golden_case.h"

namespace rollcall::golden {

struct Difference {
  std::string path;  // ".ranks[1].ops[3].reduce"
  std::string expected;
  std::string actual;
};

// "mismatch_more.ranks[1].ops[3].reduce: expected "SUM", got "MAX"".
std::string to_string(const GoldenCase& golden, const Difference& difference);

// A place where rollcall deliberately differs from PyTorch. Every row says why; a row that is no longer needed fails
// the tests.
struct DeliberateDifference {
  std::string_view program;  // GoldenCase::program_name
  std::string_view path;     // the field, without indexes: ".ranks[].values.value"; empty: all
  std::string_view reason;
  std::optional<TorchRelease> torch{};  // empty: on any release
};
std::span<const DeliberateDifference> deliberate_differences();

struct Comparison {
  std::vector<Difference> differences;                  // empty: the run is the same as PyTorch's
  std::vector<const DeliberateDifference*> deliberate;  // rows that were needed
};

// `actual` is the document of run_golden. Fields that differed between two real runs are not required; message texts
// are compared as `comparable_text` returns them.
Comparison compare(const GoldenCase& golden, const nlohmann::json& actual);

// Returns a message without the parts that depend on chance or on the Python build:
//   * gloo's transport errors are one class, because it is a race which of them comes first;
//   * a group is called by its name, where Python prints its address;
//   * so is a reduction on complex tensors;
//   * a constructor's refusal ends before pybind11's list of signatures;
//   * "Could not run ..." ends before the list of backends of this build of torch.
std::string comparable_text(std::string text);

}  // namespace rollcall::golden
