#pragma once

// CaseContext: what a golden program gets besides torch's functions, and what it records. Its verbs are those of the
// harness that made the golden files: put, add, print, mark, catching.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/dist.h"
#include "tests/conformance/golden_case.h"
#include "tests/conformance/recorder.h"

namespace rollcall::golden {

// The tensor that a step ended with. all_gather ends with several, which count as their concatenation.
using StepResult = TensorList;
using StepResults = std::vector<StepResult>;

// Tensors by name, in order; a tensor without storage is None.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// The notes of one rank's program about itself, in the format of the golden files.
class RankNotes {
 public:
  RankNotes();
  ~RankNotes();
  RankNotes(RankNotes&&) noexcept;

  nlohmann::json& values() { return *values_; }  // an object
  nlohmann::json& marks() { return *marks_; }    // [[index of the next op, text], ...]
  nlohmann::json& caught() { return *caught_; }  // [{label, at, type, msg}, ...]

 private:
  std::unique_ptr<nlohmann::json> values_;
  std::unique_ptr<nlohmann::json> marks_;
  std::unique_ptr<nlohmann::json> caught_;
};

class CaseContext {
 public:
  // All arguments are borrowed and must outlive the program.
  CaseContext(Rank rank, const GoldenCase& golden, const RankLog& log, RankNotes& notes)
      : rank_(rank),
        name_(golden.name),
        params_(golden.params),
        debug_(golden.debug),
        log_(log),
        notes_(notes) {}

  Rank rank() const { return rank_; }
  const std::string& name() const { return name_; }
  const Params& params() const { return params_; }
  // True if TORCH_DISTRIBUTED_DEBUG is INFO or DETAIL.
  bool debug() const { return debug_; }
  // Returns this rank's entry of params["inputs"].
  std::int64_t inputs() const;
  // Calls `body` once per input. The second function also marks each input and the end, as most programs do.
  template <typename Body>
  void for_each_input(Body&& body) {
    for (std::int64_t i = inputs(); i > 0; --i) {
      body();
    }
  }
  template <typename Body>
  void for_each_marked_input(Body&& body) {
    for (std::int64_t i = 0; i < inputs(); ++i) {
      mark("input " + std::to_string(i));
      body();
    }
    mark("joined");
  }

  // Notes `value` under `key`; a later call replaces it.
  void put(const std::string& key, bool value);
  void put(const std::string& key, std::int64_t value);
  void put(const std::string& key, const std::string& value);
  void put(const std::string& key, const char* value) { put(key, std::string(value)); }
  void put(const std::string& key, const Tensor& value);
  void put(const std::string& key, const Kwargs& value);
  void put(const std::string& key, const Joinable::Config& value);
  void put(const std::string& key, const Object& value);
  void put(const std::string& key, const TensorList& value);
  void put(const std::string& key, const std::vector<double>& value);
  void put_none(const std::string& key);
  // A dictionary, with one tensor per name.
  void put(const std::string& key, const NamedTensors& value);

  // Appends to the list under `key`.
  void add(const std::string& key, const StepResults& value);
  void add(const std::string& key, const Tensor& value);
  void add(const std::string& key, const TensorList& value);
  void add(const std::string& key, const NamedTensors& value);

  void print(const std::string& text) { rollcall::print(text); }
  void mark(const std::string& text);
  // Runs `body`; notes the Error that it throws, or that it threw none, and continues.
  void catching(const std::string& label, const std::function<void()>& body);

 private:
  Rank rank_;
  const std::string& name_;
  const Params& params_;
  bool debug_;
  const RankLog& log_;
  RankNotes& notes_;
};

// Returns an element as JSON: exact integers, booleans, floats; "nan" and "inf" as text, because JSON lacks them.
nlohmann::json element_to_json(Bits bits, Dtype dtype);

}  // namespace rollcall::golden
