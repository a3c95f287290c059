#include "tests/conformance/golden_compare.h"
#include "sim/torch/torch_traits.h"

#include <algorithm>
#include <cmath>
#include <regex>
#include <set>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace rollcall::golden {

namespace {

using nlohmann::json;

constexpr DeliberateDifference deliberate[] = {
    {"join_abstract", ".ranks[].caught",
     "a class without its overrides does not compile in C++, so nothing is raised"},
    {"join_as_value", ".ranks[].values.value", "there is no `as`: Join::run takes the body as a function"},
    {"join_warning_filter", ".ranks[].values.filters_before", "Python's list of warning filters"},
    {"join_warning_filter", ".ranks[].values.filters_after", "Python's list of warning filters"},
    {"join_warning_filter", ".ranks[].values.first_filter", "Python's list of warning filters"},
    {"mismatch_dtype_wider", ".ranks[].values.s.main_hook",
     "a message shorter than its buffer leaves the rest as it was: fresh memory in gloo, zero here"},
    {"prim_shapes", ".ranks[].values.all_reduce_strided",
     "tensors have no strides here; gloo takes the memory that a strided one begins with for its elements"},
    {"prim_shapes", ".ranks[].ops[].in", "the same tensor, broadcast afterwards"},
    {"join_device_cuda", ".outcome",
     "torch was built without CUDA; a simulated machine has the devices it is given"},
    {"join_device_cuda", ".ranks[].outcome", "as above"},
    {"join_device_cuda", ".ranks[].exception", "as above"},
    {"join_device_cuda", ".ranks[].values", "as above"},
    {"join_device_cuda", ".ranks[].ops", "as above"},
    {"join_device_cuda", ".ranks[].ops_total", "as above"},
    {"args_send_self", "",
     "a message to oneself ends torch 1.13 with SIGSEGV; here it raises, as in later releases",
     TorchRelease::v1_13},
    {"args_isend_self", "", "as above", TorchRelease::v1_13},
    {"args_recv_self", "", "as above", TorchRelease::v1_13},
    {"args_lifecycle", ".ranks[].caught",
     "a program starts with its process group: there is no init_process_group to get wrong"},
    {"args_lifecycle", ".ranks[].values", "as above"},
    {"args_all_reduce_sparse", ".ranks[].caught",
     "there are no sparse tensors; the error in the file is the harness's, which could not read one"},
    {"args_rank_too_big", ".outcome", "as above"},
    {"args_rank_too_big", ".ranks[].outcome", "as above"},
    {"args_rank_too_big", ".ranks[].exception", "as above"},
    {"args_missing_rank_at_init", ".outcome", "as above"},
    {"args_missing_rank_at_init", ".ranks[].outcome", "as above"},
    {"args_missing_rank_at_init", ".ranks[].exception", "as above"},
    {"ddp_device_errors", ".ranks[].caught", "a meta tensor in autograd: gradients are the program's here"},
    {"ddp_device_errors", ".ranks[].ops[].in", "torch's random initial weights"},
    {"ddp_param_shape", ".ranks[].ops[].in", "torch's random initial weights"},
    {"ddp_param_shape_same_numel", ".ranks[].ops[].in", "torch's random initial weights"},
    {"ddp_mixed_devices", ".ranks[].exception", "the order of a Python set is chance"},
    {"prim_all_reduce_bfloat16", "", "this build of torch has no such type in Gloo; public ones have",
     TorchRelease::v2_14},
    {"prim_all_reduce_float16", "", "as above", TorchRelease::v2_14},
    {"ddp_comm_hook_fp16", "", "as above", TorchRelease::v2_14},
    {"ddp_unused_first_zero", ".ranks[].ops[].in", "undefined memory: zeros here, and a warning",
     TorchRelease::v2_6},
    {"ddp_unused_first_zero", ".ranks[].values", "as above", TorchRelease::v2_6},
    {"ddp_unused_first_zero", ".ranks[].ops[].in", "as above", TorchRelease::v2_14},
    {"ddp_unused_first_zero", ".ranks[].values", "as above", TorchRelease::v2_14},
    {"prim_objects", ".ranks[].ops[].in", "this Python has a newer protocol of pickles", TorchRelease::v2_14},
    {"new_group_local", ".ranks[].ops[].g", "the name is a hash of the members; here it is a number"},
    {"new_device_mesh", ".ranks[].ops[].g",
     "groups of a mesh are called by their dimension, and not by number"},
    {"new_dtensor", ".ranks[].warnings", "DTensor's random numbers are not simulated", TorchRelease::v2_6},
    {"new_tensor_parallel", ".ranks[].warnings", "as above", TorchRelease::v2_6},
    {"new_functional", ".ranks[].warnings", "older names of functional collectives are not called",
     TorchRelease::v2_14},
    {"new_nn_functional", ".ranks[].warnings", "as above", TorchRelease::v2_14},
    {"new_checkpoint", ".ranks[].ops[].numel",
     "how long pickles of torch's own classes are, which have the folder's name in them; here are their "
     "fields"},
    {"new_checkpoint", ".ranks[].ops[].out_numel", "as above"},
    {"new_checkpoint", ".ranks[].ops[].in", "as above"},
    {"new_checkpoint", ".ranks[].warnings", "torch's own use of a class of storages that it has deprecated",
     TorchRelease::v2_6},
    {"zero_consolidate", ".ranks[].ops[].numel",
     "how long torch.save's zip archive of the state is; the state itself is pickled here"},
    {"zero_consolidate", ".ranks[].ops[].in", "as above"},
};

// Fields that are not compared with a run because they are Python's: the stack of a hang, whether init_process_group
// had returned, lines of Python's logging module.
const std::set<std::string> ignored_fields{".ranks[].stuck.stack", ".ranks[].stuck.ready", ".ranks[].logged"};

// Returns ".ranks[].ops[].in" for ".ranks[1].ops[3].in".
std::string without_indexes(const std::string& path) {
  static const std::regex index(R"(\[\d+\])");
  return std::regex_replace(path, index, "[]");
}

// True if the path is the field, or something inside it.
bool is_within(const std::string& path, std::string_view field) {
  if (!path.starts_with(field)) {
    return false;
  }
  return path.size() == field.size() || path[field.size()] == '.' || path[field.size()] == '[';
}

bool same_text(const std::string& expected, const std::string& actual) {
  return comparable_text(expected) == comparable_text(actual);
}

// True for values that a file leaves open. `async` is null for an operation that torch's C++ issued, because the
// recorder could not see it; an operation issued without options has no `reduce` and takes the default.
bool is_left_open(const std::string& field, const json& expected, const json& actual) {
  return (field == ".ranks[].ops[].async" && expected.is_null()) ||
         (field == ".ranks[].ops[].reduce" && expected.is_null() && actual == "SUM");
}

// True if the values are equal up to the rounding of a different order of additions, in float32.
bool are_close(const json& expected, const json& actual, double tolerance) {
  if (!expected.is_number() || !actual.is_number()) {
    return false;
  }
  const auto a = expected.get<double>();
  const auto b = actual.get<double>();
  return std::abs(a - b) <= tolerance * std::max({1.0, std::abs(a), std::abs(b)});
}

class Walk {
 public:
  // tolerance: for numbers, relative to the larger of them and 1; 0 requires equal numbers.
  Walk(std::vector<Difference>& differences, double tolerance)
      : differences_(differences), tolerance_(tolerance) {}

  void values(const std::string& path, const json& expected, const json& actual) {
    if (ignored_fields.contains(without_indexes(path))) {
      return;
    }
    if (expected.is_object() && actual.is_object()) {
      objects(path, expected, actual);
    } else if (expected.is_array() && actual.is_array()) {
      arrays(path, expected, actual);
    } else if (expected.is_string() && actual.is_string()) {
      check(path, expected, actual, same_text(expected.get<std::string>(), actual.get<std::string>()));
    } else {
      check(path, expected, actual,
            expected == actual || (tolerance_ > 0 && are_close(expected, actual, tolerance_)) ||
                is_left_open(without_indexes(path), expected, actual));
    }
  }

 private:
  void objects(const std::string& path, const json& expected, const json& actual) {
    std::set<std::string> keys;
    for (const json* side : {&expected, &actual}) {
      for (const auto& [key, value] : side->items()) {
        keys.insert(key);
      }
    }
    for (const std::string& key : keys) {
      std::string inner = path + "." + key;
      if (expected.contains(key) && actual.contains(key)) {
        values(inner, expected[key], actual[key]);
      } else if (!ignored_fields.contains(without_indexes(inner)) &&
                 !is_left_open(without_indexes(inner), expected.value(key, json()),
                               actual.value(key, json()))) {
        differences_.push_back({inner, expected.contains(key) ? expected[key].dump() : "nothing",
                                actual.contains(key) ? actual[key].dump() : "nothing"});
      }
    }
  }

  void arrays(const std::string& path, const json& expected, const json& actual) {
    for (std::size_t i = 0; i < std::max(expected.size(), actual.size()); ++i) {
      std::string inner = path + "[" + std::to_string(i) + "]";
      if (i < expected.size() && i < actual.size()) {
        values(inner, expected[i], actual[i]);
      } else {
        differences_.push_back({inner, i < expected.size() ? expected[i].dump() : "nothing",
                                i < actual.size() ? actual[i].dump() : "nothing"});
      }
    }
  }

  void check(const std::string& path, const json& expected, const json& actual, bool equal) {
    if (!equal) {
      differences_.push_back({path, expected.dump(), actual.dump()});
    }
  }

  std::vector<Difference>& differences_;
  double tolerance_;
};

// Gradients are computed in a different order than in torch's kernels, and the values of four iterations of gradient
// descent depend on each other.
double tolerance_of(const GoldenCase& golden) {
  const bool descends = golden.family == "ddp" || golden.family == "zero" ||
                        golden.name.starts_with("new_fully_shard") || golden.name.starts_with("new_fsdp");
  return descends ? 1e-5 : 0;
}

bool is_unstable(const GoldenCase& golden, const std::string& field) {
  return std::any_of(golden.unstable_fields.begin(), golden.unstable_fields.end(),
                     [&](const std::string& unstable) { return is_within(field, unstable); });
}

// Some of torch's messages are pages long.
std::string shortened(const std::string& text) {
  constexpr std::size_t longest = 400;
  return text.size() <= longest ? text : text.substr(0, longest) + "...";
}

}  // namespace

std::string to_string(const GoldenCase& golden, const Difference& difference) {
  return fmt::format("{} on {}", golden.name, traits_of(golden.torch).name) + difference.path +
         ": expected " + shortened(difference.expected) + ", got " + shortened(difference.actual);
}

std::span<const DeliberateDifference> deliberate_differences() { return deliberate; }

std::string comparable_text(std::string text) {
  static const std::regex transport(
      R"(\[\./gloo/transport/tcp/\w+\.cc:\d+\] )"
      R"((Timed out waiting \S+ for (recv|send) operation to complete|Read error.*|Connection closed by peer.*))"
      R"(|Application timeout caused pair closure)");
  text = std::regex_replace(text, transport, "<transport error>");
  static const std::regex group(R"re(\b([Gg]roup) (<ProcessGroupGloo object at <addr>>|g\d+)(?=$| is ))re");
  text = std::regex_replace(text, group, "$1 <group>");  // Python prints its address, rollcall its name
  static const std::regex reduction(R"(<torch\.distributed\.distributed_c10d\.ReduceOp object at <addr>>)"
                                    R"(|Red?(uce)?Op(Type)?\.\w+(?= on complex tensors))");
  text = std::regex_replace(text, reduction, "<reduce op>");  // likewise
  static const std::regex log(R"(\[\./gloo/transport/tcp/context\.cc:\d+\] INFO [^\n]*\n?)");
  text = std::regex_replace(text, log, "");  // what Gloo logs meanwhile
  static const std::regex given(R"( of type (\S+)\s+but got <class '[\w.]+'> instead\.)");
  text = std::regex_replace(text, given, " of type $1 but got <another> instead.");
  constexpr std::string_view refused = "incompatible constructor arguments.";  // its signatures follow
  if (std::size_t end = text.find(refused); end != std::string::npos) {
    text.resize(end + refused.size());
  }
  constexpr std::string_view no_kernel = "no fake impl or Meta kernel registered.";  // advice follows
  if (std::size_t end = text.find(no_kernel); end != std::string::npos) {
    text.resize(end + no_kernel.size());
  }
  constexpr std::string_view end_of_fact = "' backend.";  // the backends of this build follow
  if (std::size_t end = text.find(end_of_fact);
      text.starts_with("Could not run '") && end != std::string::npos) {
    text.resize(end + end_of_fact.size());
  }
  return text;
}

Comparison compare(const GoldenCase& golden, const json& actual) {
  const json& document = *golden.document;
  std::vector<Difference> found;
  Walk(found, tolerance_of(golden))
      .values("", {{"outcome", document.at("outcome")}, {"ranks", document.at("ranks")}}, actual);

  Comparison result;
  for (Difference& difference : found) {
    std::string field = without_indexes(difference.path);
    if (is_unstable(golden, field)) {
      continue;
    }
    const auto* row = std::find_if(std::begin(deliberate), std::end(deliberate), [&](const auto& candidate) {
      return candidate.program == golden.program_name() && is_within(field, candidate.path) &&
             (!candidate.torch || candidate.torch == golden.torch);
    });
    if (row != std::end(deliberate)) {
      result.deliberate.push_back(row);
    } else {
      result.differences.push_back(std::move(difference));
    }
  }
  return result;
}

}  // namespace rollcall::golden
