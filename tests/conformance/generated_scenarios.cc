#include "tests/conformance/generated_scenarios.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "tests/conformance/random.h"

namespace rollcall::conformance {
namespace {

using Json = nlohmann::ordered_json;

class Writer {
 public:
  explicit Writer(std::uint64_t seed) : random_(seed) {}

  GeneratedScenario write() {
    write_header();
    write_objects();
    Json program = block(0, 2 + random_.below(6));
    train(program);
    scenario_["program"] = std::move(program);
    return {scenario_.dump(1), leaves_to_chance_, is_gloo_ && !has_timing_};
  }

 private:
  void write_header() {
    world_size_ = static_cast<int>(2 + random_.below(random_.once_in(8) ? 15 : 4));
    is_gloo_ = random_.once_in(2);
    scenario_ = {{"version", 1}, {"name", "made up"}, {"world_size", world_size_}};
    scenario_["backend"] = is_gloo_ ? "gloo" : "nccl";
    scenario_["limits"] = {{"ops", 20000}};
    scenario_["inputs"] = random_.once_in(2) ? Json(2) : Json({{"base", 1}, {"per_rank", random_.below(2)}});
    if (random_.once_in(3)) {
      scenario_["groups"] = {{"some", some_ranks()}};
      groups_.push_back("some");
    }
    if (random_.once_in(6)) {
      write_fault();
    }
    if (random_.once_in(8)) {
      scenario_["timeout"] = "20ms";
      has_timing_ = true;
    }
    if (random_.once_in(8)) {
      scenario_["debug"] = "DETAIL";
      has_timing_ = true;  // real ranks have nothing like this
    }
    if (!is_gloo_ && random_.once_in(6)) {
      scenario_["device_model"] = {{"comm_slots", 1 + random_.below(2)}};
    }
  }

  void write_fault() {
    has_timing_ = true;
    const auto rank = random_.below(static_cast<std::size_t>(world_size_));
    switch (random_.below(3)) {
      case 0:
        scenario_["faults"] = {{{"kind", "slow"}, {"ranks", std::to_string(rank)}, {"factor", 3}}};
        break;
      case 1:
        scenario_["faults"] = {{{"kind", "jitter"}, {"fraction", 0.5}}};
        leaves_to_chance_ = true;
        break;
      case 2:
        scenario_["faults"] = {{{"kind", "crash"}, {"ranks", {rank}}, {"at", "3ms"}}};
        break;
    }
  }

  void write_objects() {
    switch (random_.below(6)) {
      case 0: {
        const bool is_sound = !random_.once_in(3);
        Json hook = Json::array({call("all_reduce", {{"numel", 8}, {"value", 0}})});
        if (!is_sound && random_.once_in(2)) {
          hook.push_back(call("barrier", Json::object()));
        } else if (!is_sound) {
          hook.front()["all_reduce"]["numel"] = 9;
        }
        scenario_["objects"]["counter"] = {{"kind", "joinable"},
                                           {"forward", {call("all_reduce", {{"numel", 8}, {"value", 1}})}},
                                           {"main_hook", hook}};
        trained_ = "counter";
        break;
      }
      case 1:
        scenario_["objects"]["model"] = {{"kind", "ddp"},
                                         {"parameters", {random_.below(40) + 1, 300000, 7}},
                                         {"buffers", random_.once_in(2) ? Json::array({4}) : Json::array()},
                                         {"find_unused_parameters", random_.once_in(3)}};
        trained_ = "model";
        if (random_.once_in(2)) {
          scenario_["objects"]["optimizer"] = {
              {"kind", random_.once_in(2) ? "zero" : "optimizer"}, {"of", "model"}, {"optimizer", "sgd"}};
          has_optimizer_ = true;
        }
        break;
    }
  }

  // Adds a loop over the inputs that trains the scenario's object, with or without Join.
  void train(Json& program) {
    if (trained_.empty() || random_.once_in(8)) {
      return;
    }
    Json step = Json::array({{{"compute", "1ms"}}, {{"forward", trained_}}});
    if (trained_ == "model") {
      step.push_back({{"backward", "model"}});
      if (has_optimizer_) {
        step.push_back({{"step", "optimizer"}});
      }
    }
    Json loop = {{"for_each_input", "batch"}, {"do", step}};
    if (random_.once_in(3)) {
      program.push_back(loop);
      return;
    }
    Json joined = Json::array({trained_});
    const bool shards = has_optimizer_ && scenario_["objects"]["optimizer"]["kind"] == "zero";
    if (shards) {
      joined.push_back("optimizer");
    }
    program.push_back({{"join", joined}, {"do", {loop}}});
    if (random_.once_in(6)) {
      program.back()["throw_on_early_termination"] = true;
    }
  }

  Json block(int depth, std::size_t statements) {
    Json all = Json::array();
    for (std::size_t i = 0; i < statements; ++i) {
      for (Json& statement : statements_at(depth)) {
        all.push_back(std::move(statement));
      }
    }
    return all;
  }

  std::vector<Json> statements_at(int depth) {
    const std::size_t kind = random_.below(depth < 3 ? 16 : 11);
    switch (kind) {
      case 0:
      case 1:
      case 2:
      case 3:
        return collective();
      case 4:
      case 5:
        return message();
      case 6:
        return local();
      case 7:
        return store();
      case 8:
        return group();
      case 9:
        return {{{"compute", fmt::format("{}ms", 1 + random_.below(4))}}};
      case 10:
        return mistake();
      case 11:
        return {{{"repeat", 1 + random_.below(3)}, {"do", block(depth + 1, 2)}}};
      case 12:
        return {{{"for_each_input", fmt::format("i{}", depth)}, {"do", block(depth + 1, 1)}}};
      case 13:
        return branch(depth);
      case 14:
        return {
            {{"try", {{"do", block(depth + 1, 2)}, {"except", Json::array({{{"print", "{error_type}"}}})}}}}};
      default:
        return orders(depth);
    }
  }

  static Json call(const std::string& name, Json arguments) { return {{name, std::move(arguments)}}; }

  void place(Json& arguments) {
    if (!groups_.empty() && random_.once_in(3)) {
      arguments["group"] = random_.one_of(groups_);
    }
    if (random_.once_in(3)) {
      arguments["label"] = fmt::format("place {}", random_.below(4));
    }
  }

  std::vector<Json> collective() {
    static const std::vector<std::string> names{
        "all_reduce",     "all_reduce",        "broadcast",
        "reduce",         "all_gather",        "gather",
        "scatter",        "barrier",           "all_gather_into_tensor",
        "reduce_scatter", "all_to_all_single", "reduce_scatter_tensor"};
    const std::string name = random_.one_of(names);
    Json arguments = Json::object();
    place(arguments);
    if (name != "barrier") {
      const bool per_rank = name == "reduce_scatter_tensor" || name == "all_to_all_single";
      if (!per_rank) {
        arguments["numel"] = std::vector{1, 3, 64, 5000}[random_.below(4)];
      }
      arguments["dtype"] = random_.one_of<std::string>({"float32", "float32", "int64", "float64"});
      arguments["value"] = random_.once_in(2) ? Json("rank + 1") : Json(2);
    }
    if (random_.once_in(4) && (name == "all_reduce" || name == "reduce")) {
      arguments["reduce_op"] = random_.one_of<std::string>({"MAX", "MIN", "PRODUCT"});
    }
    if (!random_.once_in(4) || name == "barrier") {
      return {call(name, arguments)};
    }
    const std::string handle = fmt::format("w{}", ++handles_);
    Json begun = call(name, arguments);
    begun["async_op"] = true;
    begun["as"] = handle;
    if (random_.once_in(8)) {
      return {begun};  // never waited for
    }
    return {begun, {{"compute", "1ms"}}, {{"wait", handle}}};
  }

  // A message to the right and one from the left, in one of several ways; or one from one rank to another.
  std::vector<Json> message() {
    const Json right = "(rank + 1) % world_size";
    const Json left = "(rank - 1) % world_size";
    const std::string handle = fmt::format("w{}", ++handles_);
    switch (random_.below(4)) {
      case 0:
        return {{{"isend", {{"numel", 4}, {"value", "rank"}, {"dst", right}}}, {"as", handle}},
                {{"recv", {{"numel", 4}, {"src", left}}}},
                {{"wait", handle}}};
      case 1:
        return {{{"batch_isend_irecv",
                  {{{"isend", {{"numel", 4}, {"dst", right}}}}, {{"irecv", {{"numel", 4}, {"src", left}}}}}},
                 {"as", handle}},
                {{"wait", handle}}};
      case 2:
        return {branch_on("rank == 0", {{{"send", {{"numel", 4}, {"dst", 1}}}}},
                          {branch_on("rank == 1", {{{"recv", {{"numel", 4}, {"src", 0}}}}}, {})})};
      default:  // a ring of blocking sends: no backend promises that it completes
        return {{{"send", {{"numel", 4}, {"dst", right}}}}, {{"recv", {{"numel", 4}, {"src", left}}}}};
    }
  }

  static Json branch_on(const std::string& condition, Json then, Json otherwise) {
    Json statement = {{"if", condition}, {"do", std::move(then)}};
    if (!otherwise.empty()) {
      statement["else"] = std::move(otherwise);
    }
    return statement;
  }

  std::vector<Json> local() {
    switch (random_.below(4)) {
      case 0:
        return {{{"fill", "t"}, {"numel", 4}, {"value", "rank"}}, {{"print", "rank {rank} has {t}"}}};
      case 1:
        return {{{"fill", "n"}, {"value", 3}}, {{"item", "n"}, {"as", "v"}}};
      case 2:
        return {{{"add", "sum"}, {"value", 1}}, {{"copy", "other"}, {"from", "sum"}}};
      default:
        return {{{"synchronize", true}}};
    }
  }

  std::vector<Json> store() {
    const std::string key = fmt::format("key{}", random_.below(3));
    switch (random_.below(3)) {
      case 0:
        return {branch_on("rank == 0", {{{"store_set", key}, {"value", "1"}}}, {}), {{"store_wait", {key}}}};
      case 1:
        return {{{"store_add", "count"}, {"value", 1}}};
      default:
        return {{{"store_set", key + "of{rank}"}, {"value", "{rank}"}}, {{"store_get", key + "of{rank}"}}};
    }
  }

  std::vector<Json> group() {
    const std::string name = fmt::format("g{}", ++handles_);
    Json everyone = Json::array();
    for (int rank = 0; rank < world_size_; ++rank) {
      everyone.push_back(rank);
    }
    std::vector<Json> statements{{{"new_group", everyone}, {"as", name}},
                                 call("all_reduce", {{"numel", 2}, {"group", name}})};
    if (random_.once_in(2)) {
      statements.push_back({{"destroy_process_group", name}});
    }
    return statements;
  }

  // One rank does something that the others do not.
  std::vector<Json> mistake() {
    if (!random_.once_in(4)) {
      return local();
    }
    const std::string who = fmt::format("rank == {}", random_.below(static_cast<std::size_t>(world_size_)));
    const std::vector<Json> odd{{{"raise", "bad sample"}},
                                {{"exit", true}},
                                call("all_reduce", {{"numel", 17}}),
                                call("barrier", Json::object())};
    return {branch_on(who, {random_.one_of(odd)}, {})};
  }

  std::vector<Json> branch(int depth) {
    const std::string half = fmt::format("rank < {}", (world_size_ + 1) / 2);
    Json same = block(depth + 1, 1);
    Json other = random_.once_in(4) ? block(depth + 1, 1) : same;
    return {branch_on(half, std::move(same), std::move(other))};
  }

  // Statements that timing decides. They are not nested deeply, because every choice doubles the runs.
  std::vector<Json> orders(int depth) {
    if (depth > 0 || has_orders_ || random_.once_in(2)) {
      return {{{"compute", "1ms"}}};
    }
    has_orders_ = has_timing_ = true;
    const std::vector<Json> first = collective();
    const std::vector<Json> second = random_.once_in(2) ? first : collective();
    return {{{random_.once_in(2) ? "choice" : "parallel", {first, second}}}};
  }

  Json some_ranks() {
    Json ranks = Json::array({0});
    for (int rank = 1; rank < world_size_; ++rank) {
      if (random_.once_in(2) || rank == 1) {
        ranks.push_back(rank);
      }
    }
    return ranks;
  }

  Random random_;
  Json scenario_;
  int world_size_ = 0;
  int handles_ = 0;
  bool is_gloo_ = false;
  bool has_timing_ = false;
  bool has_orders_ = false;
  bool leaves_to_chance_ = false;
  bool has_optimizer_ = false;
  std::string trained_;  // a joinable or a model; may be empty
  std::vector<std::string> groups_;
};

}  // namespace

GeneratedScenario generated_scenario(std::uint64_t seed) { return Writer(seed).write(); }

}  // namespace rollcall::conformance
