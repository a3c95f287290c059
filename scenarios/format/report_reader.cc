#include "scenarios/format/report_reader.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <variant>

#include <fmt/core.h>

#include "scenarios/json/diagnostic.h"
#include "scenarios/json/json_reader.h"
#include "scenarios/json/source.h"
#include "scenarios/json/suggest.h"
#include "scenarios/program/rank_sets.h"

namespace rollcall::scenario {

namespace {

constexpr std::int64_t known_version = 1;
constexpr std::int64_t ranks_max = 10'000'000;  // a report with more is a mistake

// Missing members read as empty: writers leave out empty ones.
class ReportReader {
 public:
  ReportReader(const Json& root, Diagnostics& diagnostics) : root_(root), diagnostics_(diagnostics) {}

  Report read() {
    Report report;
    if (number(root_, "schema_version", 0) != known_version) {
      error(*root_.find("schema_version"),
            fmt::format("this version of rollcall reads reports of version {}", known_version));
      return report;
    }
    world_size_ = report.world_size = read_world_size();
    report.scenario = text(root_, "scenario");
    report.seed = static_cast<std::uint64_t>(number(root_, "seed", 0));
    report.replay = text(root_, "replay");
    report.backend = text(root_, "backend");
    report.torch = text(root_, "torch");
    report.verdict = read_verdict();
    report.ranks = list_of<RankClass>(root_, "ranks", [this](const Json& each) { return read_class(each); });
    read_output(report);
    report.measured = root_.find("measured_time_ns").has_value();
    report.simulated_time = number(root_, report.measured ? "measured_time_ns" : "simulated_time_ns", 0);
    report.ops = number(root_, "ops", 0);
    report.schedules = number(root_, "schedules", 1);
    report.exhaustive = flag(root_, "exhaustive", true);
    if (root_.find("expected")) {
      report.expected = flag(root_, "expected", true);
    }
    report.unmet = texts(root_, "unmet");
    report.joins = list_of<JoinCost>(
        root_, "join", [&](const Json& each) { return read_join(each, report.simulated_time); });
    report.memory =
        list_of<MemoryUse>(root_, "memory", [this](const Json& each) { return read_memory(each); });
    if (const auto samples = member(root_, "samples", JsonType::object)) {
      report.samples = read_samples(*samples);
    }
    return report;
  }

 private:
  void error(const Json& at, std::string message, std::string_view suggestion = {}) {
    diagnostics_.error(at.offset(), at.pointer(), std::move(message), suggestion);
  }

  // The member, if it exists and has that type.
  std::optional<Json> member(const Json& object, std::string_view key, JsonType type) {
    const std::optional<Json> value = object.find(key);
    if (value && !value->is(type)) {
      error(*value, fmt::format("expected {1} here, found {0}", to_phrase(value->type()), to_phrase(type)));
      return std::nullopt;
    }
    return value;
  }

  std::string text(const Json& object, std::string_view key) {
    const auto value = member(object, key, JsonType::string);
    return value ? std::string(value->text()) : "";
  }

  std::int64_t number(const Json& object, std::string_view key, std::int64_t otherwise) {
    const auto value = member(object, key, JsonType::integer);
    return value ? value->integer() : otherwise;
  }

  bool flag(const Json& object, std::string_view key, bool otherwise) {
    const auto value = member(object, key, JsonType::boolean);
    return value ? value->boolean() : otherwise;
  }

  template <typename Value, typename Read>
  std::vector<Value> list_of(const Json& object, std::string_view key, const Read& read) {
    std::vector<Value> values;
    if (const auto list = member(object, key, JsonType::array)) {
      for (const Json& each : list->children()) {
        values.push_back(read(each));
      }
    }
    return values;
  }

  std::vector<std::string> texts(const Json& object, std::string_view key) {
    return list_of<std::string>(object, key, [this](const Json& each) {
      if (!each.is(JsonType::string)) {
        error(each, fmt::format("expected a string here, found {}", to_phrase(each.type())));
        return std::string();
      }
      return std::string(each.text());
    });
  }

  Rank read_world_size() {
    const std::int64_t size = number(root_, "world_size", 0);
    if (size < 1 || size > ranks_max) {
      error(root_.find("world_size").value_or(root_),
            fmt::format("world_size must be between 1 and {}", ranks_max));
      return 1;
    }
    return static_cast<Rank>(size);
  }

  // Reads "0-3,8", [0, 2], or "none" for no ranks.
  RankSet ranks(const Json& object, std::string_view key) {
    const std::optional<Json> value = object.find(key);
    const bool nobody = !value || (value->is(JsonType::string) && value->text() == "none") ||
                        (value->is(JsonType::array) && value->size() == 0);
    return nobody ? RankSet() : read_ranks(*value, world_size_, diagnostics_).value_or(RankSet());
  }

  // The same if an empty set makes no sense.
  RankSet somebody(const Json& object, std::string_view key) {
    RankSet result = ranks(object, key);
    if (result.empty()) {
      error(object.find(key).value_or(object), fmt::format("expected ranks here, such as \"{}\"", key));
    }
    return result;
  }

  // A rank, or -1.
  Rank rank(const Json& object, std::string_view key) {
    const std::int64_t value = number(object, key, -1);
    if (value < -1 || value >= world_size_) {
      error(*object.find(key), fmt::format("there is no rank {} in a world of {}", value, world_size_));
      return -1;
    }
    return static_cast<Rank>(value);
  }

  Call read_call(const Json& object) {
    Call call;
    call.op = text(object, "op");
    call.group = text(object, "group");
    call.seq = number(object, "seq", 0);
    call.numel = number(object, "numel", 0);
    call.dtype = text(object, "dtype");
    call.reduce_op = text(object, "reduce_op");
    call.root = rank(object, "root");
    call.peer = rank(object, "peer");
    call.tag = static_cast<std::int32_t>(number(object, "tag", 0));
    call.ranks = text(object, "ranks");
    call.key = text(object, "key");
    call.device = text(object, "device");
    call.label = text(object, "label");
    call.site = text(object, "site");
    return call;
  }

  std::optional<Call> read_call(const Json& object, std::string_view key) {
    const auto value = member(object, key, JsonType::object);
    return value ? std::optional(read_call(*value)) : std::nullopt;
  }

  RankClass read_class(const Json& object) {
    using State = RankClass::State;
    constexpr std::array states = {State::finished, State::waiting, State::raised, State::crashed,
                                   State::running};
    RankClass result;
    result.ranks = somebody(object, "ranks");
    const std::string word = text(object, "state");
    const auto state = std::ranges::find(states, word, [](State each) { return to_string(each); });
    if (state == states.end()) {
      error(object.find("state").value_or(object), fmt::format("\"{}\" is not a rank state", word));
    } else {
      result.state = *state;
    }
    result.call = read_call(object, "op");
    result.last_completed = read_call(object, "last_completed");
    result.inputs = number(object, "inputs", -1);
    result.exception = text(object, "exception");
    result.waits_for = ranks(object, "waits_for");
    return result;
  }

  std::vector<Variant> read_variants(const Json& object, std::string_view key = "variants") {
    return list_of<Variant>(object, key, [this](const Json& each) {
      return Variant{somebody(each, "ranks"), read_call(each, "op").value_or(Call{})};
    });
  }

  Place read_place(const Json& object) {
    return {read_call(object), ranks(object, "waiting"), ranks(object, "missing")};
  }

  std::vector<TensorPlace> read_tensors(std::string_view key) {
    return list_of<TensorPlace>(root_, key, [this](const Json& each) {
      return TensorPlace{somebody(each, "ranks"), text(each, "tensor"), text(each, "got"),
                         text(each, "want"),      text(each, "handle"), text(each, "site")};
    });
  }

  JoinCost read_join(const Json& object, Duration run) {
    JoinCost cost;
    cost.group = text(object, "group");
    cost.run = run;
    cost.shadowing = number(object, "shadowing_ns", 0);
    cost.steps = number(object, "steps", 0);
    cost.fewest_steps = cost.steps;
    cost.ranks = list_of<JoinedRanks>(object, "ranks", [this](const Json& each) {
      return JoinedRanks{ranks(each, "ranks"), number(each, "steps", 0), number(each, "shadow_calls", 0),
                         number(each, "idle_ns", 0)};
    });
    cost.active = list_of<ActiveRanks>(object, "active", [this](const Json& each) {
      return ActiveRanks{number(each, "from_step", 0), number(each, "to_step", 0),
                         number(each, "active_ranks", 0)};
    });
    for (const JoinedRanks& each : cost.ranks) {
      const auto alike = static_cast<std::int64_t>(each.ranks.size());
      cost.size += alike;
      cost.steps_of_all += alike * each.steps;
      cost.fewest_steps = std::min(cost.fewest_steps, each.steps);
    }
    return cost;
  }

  MemoryUse read_memory(const Json& object) {
    return {text(object, "object"), list_of<DeviceMemory>(object, "devices", [this](const Json& each) {
              return DeviceMemory{.samples = number(each, "samples", 0),
                                  .parameters = number(each, "parameters", 0),
                                  .gradients = number(each, "gradients", 0),
                                  .optimizer_state = number(each, "optimizer", 0),
                                  .inputs = number(each, "inputs", 0),
                                  .activations = number(each, "activations", 0),
                                  .outputs = number(each, "outputs", 0)};
            })};
  }

  SampleUse read_samples(const Json& object) {
    SampleUse use;
    const bool is_sharded = text(object, "sampler") == "shard";
    use.sampler = is_sharded ? SampleUse::Sampler::shard : SampleUse::Sampler::distributed;
    use.shuffle = flag(object, "shuffle", true);
    use.dataset = number(object, "dataset", 0);
    use.ranks = number(object, "ranks", 1);
    use.batch_size = std::max<std::int64_t>(number(object, "batch_size", 1), 1);
    use.drop_short_batch = flag(object, "drop_last", false);
    if (const auto range = member(object, "samples_per_rank", JsonType::object)) {
      use.fewest = number(*range, "fewest", 0);
      use.most = number(*range, "most", 0);
    }
    use.repeated = number(object, "duplicated", 0);
    use.dropped_by_sampler = number(object, "dropped_by_sampler", 0);
    use.dropped_by_loader = number(object, "dropped", 0) - use.dropped_by_sampler;
    return use;
  }

  FindingKind read_kind(const Json& object) {
    const std::string word = text(object, "kind");
    const std::optional<FindingKind> kind = word.empty() ? FindingKind::ok : parse_finding_kind(word);
    if (!kind) {
      std::vector<std::string_view> words;
      std::ranges::transform(finding_rows(), std::back_inserter(words), &FindingRow::word);
      error(object.find("kind").value_or(object), fmt::format("unknown kind \"{}\"", word),
            suggest(word, words));
    }
    return kind.value_or(FindingKind::ok);
  }

  std::vector<Outcome> read_outcomes() {
    return list_of<Outcome>(root_, "outcomes", [this](const Json& each) {
      return Outcome{text(each, "verdict"), read_kind(each), number(each, "count", 0)};
    });
  }

  // Culprits that are not in ascending order are in order of suspicion.
  void read_culprits(Finding& finding) {
    finding.culprits = ranks(root_, "culprits");
    const auto list = member(root_, "culprits", JsonType::array);
    if (!list) {
      return;
    }
    std::vector<Rank> order;
    for (const Json& each : list->children()) {
      order.push_back(each.is(JsonType::integer) ? static_cast<Rank>(each.integer()) : 0);  // reported above
    }
    if (order != finding.culprits.to_vector()) {
      finding.suspects = std::move(order);
    }
  }

  Repair read_repair(const Json& object) {
    Repair repair;
    repair.steps = list_of<RepairStep>(object, "edits", [this](const Json& each) {
      return RepairStep{somebody(each, "ranks"), text(each, "change"), number(each, "times", 1)};
    });
    repair.alternatives = number(object, "alternatives", 0);
    repair.tried = number(object, "tried", 0);
    for (const auto search : {Repair::Search::cut_short, Repair::Search::too_large}) {
      repair.search = text(object, "search") == to_string(search) ? search : repair.search;
    }
    return repair;
  }

  Finding read_finding() {
    Finding finding;
    finding.kind = read_kind(root_);
    read_culprits(finding);
    finding.tie = flag(root_, "tie", false);
    if (const auto at = member(root_, "at", JsonType::object); at && at->find("op")) {
      finding.at = read_place(*at);  // without an operation, it is the place of a value: see read_tensors
    }
    if (const auto first = member(root_, "first_divergence", JsonType::object)) {
      finding.first_divergence =
          Divergence{text(*first, "group"), number(*first, "seq", 0), read_variants(*first)};
    }
    finding.headline = text(root_, "headline");
    finding.cause = text(root_, "cause");
    finding.suspicion = text(root_, "suspicion");
    finding.advice = text(root_, "advice");
    if (const auto repair = member(root_, "repair", JsonType::object)) {
      finding.repair = read_repair(*repair);
    }
    finding.on_backend = text(root_, "on_backend");
    finding.chain = texts(root_, "chain");
    return finding;
  }

  LimitReached read_max() {
    LimitReached verdict{read_finding(), 0};
    if (const auto limit = member(root_, "limit", JsonType::object)) {
      verdict.value = number(*limit, "value", 0);
    }
    return verdict;
  }

  Verdict read_verdict() {
    const std::string word = text(root_, "verdict");
    const std::array<Verdict, std::variant_size_v<Verdict>> verdicts = {
        Completed{}, Deadlock{},     Mismatch{},   DeviceMismatch{}, WrongResult{},
        Race{},      ResourceLeak{}, RankFailed{}, LimitReached{}};
    const auto verdict =
        std::ranges::find(verdicts, word, [](const Verdict& each) { return verdict_word(each); });
    if (verdict == verdicts.end()) {
      std::vector<std::string_view> words;
      std::ranges::transform(verdicts, std::back_inserter(words), verdict_word);
      error(root_.find("verdict").value_or(root_), fmt::format("unknown verdict \"{}\"", word),
            suggest(word, words));
      return Completed{};
    }
    return std::visit([this](const auto& kind) { return Verdict(read_particulars(kind)); }, *verdict);
  }

  // One overload for each verdict, chosen by the type of an empty one.
  Completed read_particulars(const Completed&) { return {}; }
  Deadlock read_particulars(const Deadlock&) {
    return {read_finding(),
            list_of<Place>(root_, "circle", [this](const Json& each) { return read_place(each); })};
  }
  Race read_particulars(const Race&) {
    return {read_finding(), read_variants(root_), read_tensors("touched"), read_outcomes()};
  }
  ResourceLeak read_particulars(const ResourceLeak&) {
    return {read_finding(), read_variants(root_, "leaked")};
  }
  Mismatch read_particulars(const Mismatch&) { return {read_finding(), read_variants(root_)}; }
  DeviceMismatch read_particulars(const DeviceMismatch&) { return {read_finding(), read_variants(root_)}; }
  WrongResult read_particulars(const WrongResult&) {
    return {read_finding(), read_variants(root_), read_tensors("values")};
  }
  RankFailed read_particulars(const RankFailed&) { return {read_finding(), text(root_, "exception")}; }
  LimitReached read_particulars(const LimitReached&) { return read_max(); }

  void read_output(Report& report) {
    const auto list = member(root_, "output", JsonType::array);
    if (!list) {
      return;
    }
    for (const Json& each : list->children()) {
      for (const Rank rank : ranks(each, "ranks").to_vector()) {
        report.output.push_back(
            {rank, number(each, "time_ns", 0), flag(each, "warning", false), text(each, "text")});
      }
    }
    std::ranges::stable_sort(report.output, {},
                             &OutputLine::rank);  // files fold equal lines of several ranks
  }

  Json root_;
  Diagnostics& diagnostics_;
  Rank world_size_ = 1;
};

}  // namespace

std::optional<Report> read_report(const SourceText& source) {
  const JsonTree tree = read_json(source);
  if (!tree.root().find("schema_version")) {
    return std::nullopt;
  }
  Diagnostics diagnostics(source);
  Report report = ReportReader(tree.root(), diagnostics).read();
  diagnostics.throw_if_any();
  return report;
}

}  // namespace rollcall::scenario
