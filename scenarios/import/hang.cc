#include "scenarios/import/hang.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "scenarios/import/hang_ops.h"
#include "scenarios/import/scenario_writer.h"
#include "scenarios/json/diagnostic.h"
#include "scenarios/json/json_reader.h"
#include "scenarios/json/source.h"
#include "scenarios/json/suggest.h"
#include "sim/c10d/backend_traits.h"

namespace rollcall::scenario {
namespace {

constexpr std::array<std::string_view, 18> known_keys{
    "id",           "source",  "year",        "class", "evidence",  "needs",
    "trigger",      "checked", "backend",     "hosts", "groups",    "programs",
    "device_model", "expect",  "check_leaks", "fixed", "timeout_s", "world_size"};

// In the library, communicators exist, or calls of their own make them. Without one, a message waits for its other end,
// a collective for all members, even if it is asynchronous, and there is none to split.
constexpr std::array<std::string_view, 7> keys_with_communicators = {
    "send", "recv", "isend", "irecv", "batch_isend_irecv", "split_group", "async_op"};

bool needs_communicators(const OrderedJson& value) {
  const bool is_one =
      value.is_object() && std::ranges::any_of(keys_with_communicators,
                                               [&](std::string_view name) { return value.contains(name); });
  return is_one || (value.is_structured() && std::ranges::any_of(value, needs_communicators));
}

class HangReader {
 public:
  HangReader(const SourceText& source, HangVariant variant)
      : diagnostics_(source), tree_(read_json(source)), root_(tree_.root()), variant_(variant) {}

  std::string text() {
    check_keys();
    OrderedJson scenario = OrderedJson::object();
    head(scenario);
    groups(scenario);
    programs(scenario);
    expectation(scenario);
    diagnostics_.throw_if_any();
    return scenario_text(scenario, comment());
  }

 private:
  bool is_fixed() const { return variant_ == HangVariant::fixed; }

  void check_keys() {
    if (!root_.is(JsonType::object) || !root_.find("programs")) {
      error(root_, "not a file of the hang library: it has no \"programs\"");
      diagnostics_.throw_if_any();
    }
    for (Json member : root_.children()) {
      if (std::ranges::count(known_keys, member.key()) == 0) {
        diagnostics_.error_at_key(member, fmt::format("unknown key \"{}\"", member.key()),
                                  suggest(member.key(), known_keys));
      }
    }
  }

  void head(OrderedJson& scenario) {
    scenario["version"] = 1;
    scenario["name"] = text_of(root_, "id") + (is_fixed() ? ", fixed" : "");
    if (const auto source = root_.find("source"); source && source->is(JsonType::array)) {
      std::string sources;
      for (Json one : source->children()) {
        sources += (sources.empty() ? "" : ", ") + std::string(one.is(JsonType::string) ? one.text() : "");
      }
      scenario["source"] = sources;
    }
    if (const auto size = root_.find("world_size"); size && size->is(JsonType::integer)) {
      scenario["world_size"] = size->integer();
    } else {
      error(root_, "\"world_size\" is missing");
    }
    const BackendTraits* known = find_backend_traits(text_of(root_, "backend"));
    const BackendTraits& backend =
        known != nullptr ? *known : default_backend(DeviceType::cpu);  // as MPI does
    scenario["backend"] = backend.name;
    if (backend.queues_calls) {
      scenario["blocking_wait"] = true;  // calls in this format block until they are done
    }
    if (const auto leaks = root_.find("check_leaks"); leaks && leaks->is(JsonType::boolean)) {
      scenario["check_leaks"] = leaks->boolean();
    }
    device_model(scenario);
    if (const auto hosts = root_.find("hosts")) {
      scenario["hosts"] = rank_lists(*hosts);
    }
    if (const auto timeout = root_.find("timeout_s"); timeout && timeout->is_number()) {
      scenario["timeout"] = fmt::format("{:g}s", timeout->real());
    }
  }

  void device_model(OrderedJson& scenario) {
    const auto model = root_.find("device_model");
    if (!model) {
      return;
    }
    const auto slots = model->find("comm_slots");
    if (!slots || !slots->is(JsonType::integer)) {
      error(*model, "\"device_model\" needs \"comm_slots\", an integer");
      return;
    }
    scenario["device_model"] = {{"comm_slots", slots->integer()}};
  }

  void groups(OrderedJson& scenario) {
    const auto fixed = root_.find("fixed");
    std::optional<Json> groups = root_.find("groups");
    if (const auto own = fixed && is_fixed() ? fixed->find("groups") : std::nullopt) {
      groups = own;
    }
    if (!groups) {
      return;
    }
    OrderedJson lists = rank_lists(*groups);
    lists.erase("world");
    if (!lists.empty()) {
      scenario["groups"] = lists;
    }
  }

  void programs(OrderedJson& scenario) {
    std::optional<Json> programs = root_.find("programs");
    if (is_fixed()) {
      const auto fixed = root_.find("fixed");
      programs = fixed ? fixed->find("programs") : std::nullopt;
    }
    if (!programs || !programs->is(JsonType::object)) {
      error(root_, is_fixed() ? "there is no fixed variant" : "\"programs\" is not an object");
      return;
    }
    HangOps ops(diagnostics_, root_.find("device_model").has_value());
    OrderedJson lists = OrderedJson::object();
    for (Json list : programs->children()) {
      lists[std::string(list.key())] = ops.program(list);
    }
    if (traits_of(scenario.at("backend").get<std::string>()).connects_at_first_use &&
        needs_communicators(lists)) {
      scenario["communicators"] = "eager";
    }
    if (lists.size() == 1) {
      scenario["program"] = lists.begin().value();  // one key for all ranks
    } else {
      scenario["programs"] = lists;
    }
  }

  void expectation(OrderedJson& scenario) {
    const auto expect = root_.find("expect");
    if (!expect || is_fixed()) {
      scenario["expect"] = {{"verdict", "ok"}};
      return;
    }
    OrderedJson wanted = {{"verdict", text_of(*expect, "verdict")}};
    if (const auto culprits = expect->find("culprits"); culprits && culprits->size() > 0) {
      wanted["culprits"] = ranks_of(*culprits);
    }
    if (const auto at = expect->find("at")) {
      place(*at, wanted);
    }
    scenario["expect"] = wanted;
  }

  // Names the slot if there is only one.
  void place(const Json& at, OrderedJson& wanted) {
    std::optional<Json> slot = at;
    if (const auto slots = at.find("slots")) {
      const auto others = at.find("other");
      const bool is_only = slots->size() == 1 && (!others || others->size() == 0);
      slot = is_only ? std::optional<Json>(*slots->children().begin()) : std::nullopt;
    }
    const auto group = slot ? slot->find("group") : std::nullopt;
    const auto seq = slot ? slot->find("seq") : std::nullopt;
    if (group && seq && seq->is(JsonType::integer)) {
      wanted["at"] = {{"group", std::string(group->text())}, {"seq", seq->integer()}};
    }
  }

  OrderedJson ranks_of(const Json& list) {
    OrderedJson ranks = OrderedJson::array();
    for (Json rank : list.children()) {
      if (!rank.is(JsonType::integer)) {
        error(rank, fmt::format("expected a rank, found {}", to_phrase(rank.type())));
        continue;
      }
      ranks.push_back(rank.integer());
    }
    return ranks;
  }

  OrderedJson rank_lists(const Json& object) {
    OrderedJson lists = OrderedJson::object();
    for (Json list : object.children()) {
      lists[std::string(list.key())] = ranks_of(list);
    }
    return lists;
  }

  // The description of the fault, in the library's words.
  std::string comment() const {
    const auto expect = root_.find("expect");
    const std::string cause = expect ? text_in(*expect, "cause") : "";
    const std::string diagnosis = expect ? text_in(*expect, "diagnosis") : "";
    std::string text = fmt::format("{} ({}).\n", text_in(root_, "id"), text_in(root_, "class"));
    if (is_fixed()) {
      text += "The same job with the fix.\n";
    }
    return text + (cause.empty() ? "" : "Cause: " + cause + ".\n") +
           (diagnosis.empty() || is_fixed() ? "" : "To be found: " + diagnosis + ".\n");
  }

  std::string text_of(const Json& object, std::string_view key) {
    const auto value = object.find(key);
    if (!value || !value->is(JsonType::string)) {
      error(object, fmt::format("\"{}\" is missing", key));
      return {};
    }
    return std::string(value->text());
  }

  static std::string text_in(const Json& object, std::string_view key) {
    const auto value = object.find(key);
    return value && value->is(JsonType::string) ? std::string(value->text()) : "";
  }

  void error(const Json& at, std::string message) { diagnostics_.error(at, std::move(message)); }

  Diagnostics diagnostics_;
  JsonTree tree_;
  Json root_;
  HangVariant variant_;
};

}  // namespace

std::string import_hang(const std::string& path, HangVariant variant) {
  const SourceText source = read_source(path);
  return HangReader(source, variant).text();
}

}  // namespace rollcall::scenario
