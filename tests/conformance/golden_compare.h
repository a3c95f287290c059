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

// Where rollcall differs from PyTorch on purpose. Every row says why; a row that is no longer needed
// fails the tests.
struct DeliberateDifference {
  std::string_view program;  // GoldenCase::program_name
  std::string_view path;     // the field, without indexes: ".ranks[].values.value"; empty: all
  std::string_view reason;
  std::optional<TorchRelease> torch{};  // none: on any
};
std::span<const DeliberateDifference> deliberate_differences();

struct Comparison {
  std::vector<Difference> differences;                  // none: the run is PyTorch's
  std::vector<const DeliberateDifference*> deliberate;  // rows that were needed
};

// `actual` is what run_golden wrote. Fields that differed between two real runs are not demanded;
// message texts are compared as `comparable_text` gives them.
Comparison compare(const GoldenCase& golden, const nlohmann::json& actual);

// A message without what is chance or Python's build:
//   * gloo's transport errors are one class: which of them comes first is a race;
//   * a group is called by its name, where Python says where it lies in memory;
//   * so is a reduction on complex tensors;
//   * a constructor's refusal ends before the list of signatures that pybind11 has;
//   * "Could not run ..." ends before the list of the backends that this build of torch has.
std::string comparable_text(std::string text);

}  // namespace rollcall::golden
