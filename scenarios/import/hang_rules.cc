#include "scenarios/import/hang_rules.h"

#include <algorithm>
#include <array>

namespace rollcall::scenario {
namespace {

using Name = std::string_view;

constexpr std::array<Name, 14> collective_fields{"op",     "group", "numel",  "dtype",  "reduce",
                                                 "root",   "async", "handle", "stream", "device",
                                                 "tensor", "value", "label",  "tag"};
constexpr std::array<Name, 13> splits_fields{"op",     "group",     "numel",     "dtype",  "async",
                                             "handle", "stream",    "device",    "tensor", "value",
                                             "label",  "in_splits", "out_splits"};
constexpr std::array<Name, 13> message_fields{"op",    "src",    "dst",    "numel",  "dtype",
                                              "group", "label",  "device", "tensor", "value",
                                              "tag",   "handle", "stream"};
constexpr std::array<Name, 5> batch_fields{"op", "ops", "handle", "label", "stream"};
// Labels, and streams of ops that do not communicate, only inform the reader.
constexpr std::array<Name, 4> handle_fields{"op", "handle", "label", "stream"};
constexpr std::array<Name, 5> tensor_fields{"op", "tensor", "value", "label", "stream"};
constexpr std::array<Name, 4> compute_fields{"op", "seconds", "label", "stream"};
constexpr std::array<Name, 3> device_fields{"op", "device", "label"};
constexpr std::array<Name, 3> plain_fields{"op", "label", "stream"};
constexpr std::array<Name, 3> raise_fields{"op", "error", "label"};
constexpr std::array<Name, 4> new_group_fields{"op", "name", "ranks", "label"};
constexpr std::array<Name, 3> group_fields{"op", "group", "label"};
constexpr std::array<Name, 4> split_fields{"op", "group", "name", "label"};
constexpr std::array<Name, 4> store_set_fields{"op", "key", "value", "label"};
constexpr std::array<Name, 4> store_get_fields{"op", "key", "want", "label"};
constexpr std::array<Name, 3> choice_fields{"op", "options", "label"};
constexpr std::array<Name, 3> parallel_fields{"op", "threads", "label"};

constexpr std::array<HangOpRule, 33> rules{{
    {"all_reduce", "all_reduce", collective_fields},
    {"all_gather", "all_gather", collective_fields},
    {"reduce_scatter", "reduce_scatter", collective_fields},
    {"broadcast", "broadcast", collective_fields},
    {"reduce", "reduce", collective_fields},
    {"gather", "gather", collective_fields},
    {"scatter", "scatter", collective_fields},
    {"all_to_all", "all_to_all_single", splits_fields},
    {"barrier", "barrier", collective_fields},
    {"send", "send", message_fields},
    {"recv", "recv", message_fields},
    {"isend", "isend", message_fields},
    {"irecv", "irecv", message_fields},
    {"batch_p2p", "batch_isend_irecv", batch_fields},
    {"wait", "wait", handle_fields},
    {"compute", "compute", compute_fields},
    {"device_sync", "synchronize", plain_fields},
    {"set_device", "set_device", device_fields},
    {"set", "fill", tensor_fields},
    {"add", "add", tensor_fields},
    {"read", "read", tensor_fields},
    {"write", "write", tensor_fields},
    {"free", "free", tensor_fields},
    {"check", "check", tensor_fields},
    {"exit", "exit", plain_fields},
    {"raise", "raise", raise_fields},
    {"new_group", "new_group", new_group_fields},
    {"comm_split", "split_group", split_fields},
    {"destroy_group", "destroy_process_group", group_fields},
    {"store_set", "store_set", store_set_fields},
    {"store_get", "store_get", store_get_fields},
    {"choice", "choice", choice_fields},
    {"parallel", "parallel", parallel_fields},
}};

// The arguments that keep their values, and their names in scenarios.
constexpr std::array<HangWord, 16> renamed{{{"tensor", "tensor"},
                                            {"numel", "numel"},
                                            {"dtype", "dtype"},
                                            {"reduce", "reduce_op"},
                                            {"value", "value"},
                                            {"device", "device"},
                                            {"in_splits", "input_split_sizes"},
                                            {"out_splits", "output_split_sizes"},
                                            {"src", "src"},
                                            {"dst", "dst"},
                                            {"tag", "tag"},
                                            {"group", "group"},
                                            {"async", "async_op"},
                                            {"handle", "as"},
                                            {"stream", "stream"},
                                            {"label", "label"}}};

constexpr std::array<HangWord, 8> dtypes{{{"f16", "float16"},
                                          {"bf16", "bfloat16"},
                                          {"f32", "float32"},
                                          {"f64", "float64"},
                                          {"i32", "int32"},
                                          {"i64", "int64"},
                                          {"u8", "uint8"},
                                          {"i8", "int8"}}};

constexpr std::array<HangWord, 9> reductions{{{"sum", "SUM"},
                                              {"avg", "AVG"},
                                              {"mean", "AVG"},
                                              {"prod", "PRODUCT"},
                                              {"product", "PRODUCT"},
                                              {"min", "MIN"},
                                              {"max", "MAX"},
                                              {"band", "BAND"},
                                              {"bor", "BOR"}}};

}  // namespace

const HangOpRule* find_hang_op(std::string_view name) {
  const auto found = std::ranges::find(rules, name, &HangOpRule::name);
  return found == rules.end() ? nullptr : &*found;
}

std::vector<std::string_view> hang_op_names() {
  std::vector<std::string_view> names;
  for (const HangOpRule& rule : rules) {
    names.push_back(rule.name);
  }
  return names;
}

std::span<const HangWord> hang_arguments() { return renamed; }
std::span<const HangWord> hang_dtypes() { return dtypes; }
std::span<const HangWord> hang_reductions() { return reductions; }

std::optional<std::string_view> translate_hang_word(std::span<const HangWord> table, std::string_view word) {
  const auto found = std::ranges::find(table, word, &HangWord::theirs);
  return found == table.end() ? std::nullopt : std::optional(found->ours);
}

std::vector<std::string_view> words_of(std::span<const HangWord> table) {
  std::vector<std::string_view> words;
  for (const HangWord& word : table) {
    words.push_back(word.theirs);
  }
  return words;
}

}  // namespace rollcall::scenario
