#include "scenarios/format/report_reader.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <initializer_list>
#include <limits>
#include <utility>
#include <variant>

#include <fmt/core.h>

#include "scenarios/json/diagnostic.h"
#include "scenarios/json/json_reader.h"
#include "scenarios/json/source.h"
#include "scenarios/json/suggest.h"
#include "scenarios/program/rank_sets.h"
#include "viz/json/report_format.h"

namespace rollcall::scenario {

namespace {

constexpr std::int64_t ranks_max = 10'000'000;  // a report with more is a mistake

// The visitor of report_format.h that takes members from a JSON object.
class ObjectReader {
 public:
  // The size of the world is known after its member is read.
  ObjectReader(const Json& object, Diagnostics& diagnostics, Rank world_size = 1)
      : object_(object), diagnostics_(diagnostics), world_size_(world_size) {}

  void operator()(std::string_view key, auto& value) {
    if (const std::optional<Json> member = object_.find(key)) {
      read(*member, value);
    }
  }
  void some(std::string_view key, auto& value) { (*this)(key, value); }
  void known(std::string_view key, std::int64_t& number) { (*this)(key, number); }
  void rank(std::string_view key, Rank& rank) {
    std::int64_t number = rank;
    (*this)(key, number);
    if (number < -1 || number >= world_size_) {
      error(object_.find(key), fmt::format("there is no rank {} in a world of {}", number, world_size_));
    } else {
      rank = static_cast<Rank>(number);
    }
  }
  void ranks(std::string_view key, RankSet& ranks) {
    ranks_or_none(key, ranks);
    if (ranks.empty()) {
      error(object_.find(key), fmt::format("expected ranks here, such as \"{}\"", key));
    }
  }
  void rank_list(std::string_view key, RankSet& ranks) { this->ranks(key, ranks); }
  // Reads "0-3,8", [0, 2], or "none" for no ranks.
  void ranks_or_none(std::string_view key, RankSet& ranks) {
    const std::optional<Json> value = object_.find(key);
    const bool nobody = !value || (value->is(JsonType::string) && value->text() == "none") ||
                        (value->is(JsonType::array) && value->size() == 0);
    ranks = nobody ? RankSet() : read_ranks(*value, world_size_, diagnostics_).value_or(RankSet());
  }
  void rank_list_or_none(std::string_view key, RankSet& ranks) { ranks_or_none(key, ranks); }
  // Culprits that are not in ascending order are in order of suspicion.
  void culprits(std::string_view key, Finding& finding) {
    ranks_or_none(key, finding.culprits);
    if (const auto list = member(key, JsonType::array)) {
      for (const Json& each : list->children()) {  // what is not a rank is reported already
        finding.suspects.push_back(each.is(JsonType::integer) ? static_cast<Rank>(each.integer()) : 0);
      }
    }
    if (finding.suspects == finding.culprits.to_vector()) {
      finding.suspects.clear();
    }
  }
  // noun: what other words are not; without it, they stand for the default.
  template <typename Enum>
  void word(std::string_view key, Enum& value, std::initializer_list<Enum> all, std::string_view noun = {}) {
    std::string word;
    (*this)(key, word);
    const auto* const known = std::ranges::find(all, word, [](Enum each) { return to_string(each); });
    if (known != all.end()) {
      value = *known;
    } else if (!noun.empty()) {
      error(object_.find(key), fmt::format("\"{}\" is not {}", word, noun));
    }
  }
  void alternative(std::string_view key, Verdict& verdict) {
    std::string word;
    (*this)(key, word);
    static const std::array<Verdict, std::variant_size_v<Verdict>> verdicts = {
        Completed{}, Deadlock{},     Mismatch{},   DeviceMismatch{}, WrongResult{},
        Race{},      ResourceLeak{}, RankFailed{}, LimitReached{}};
    const auto known =
        std::ranges::find(verdicts, word, [](const Verdict& each) { return verdict_word(each); });
    if (known != verdicts.end()) {
      verdict = *known;
      return;
    }
    error(object_.find(key), fmt::format("unknown verdict \"{}\"", word),
          suggest_from(word, verdicts, verdict_word));
  }
  void world_size(std::string_view key, Rank& size) {
    std::int64_t number = 0;
    (*this)(key, number);
    if (number < 1 || number > ranks_max) {
      error(object_.find(key), fmt::format("{} must be between 1 and {}", key, ranks_max));
      number = 1;
    }
    world_size_ = size = static_cast<Rank>(number);
  }
  void present(std::string_view key, bool& is_present) { is_present = object_.find(key).has_value(); }
  bool wants(bool /*condition*/) const { return true; }
  void derived(std::string_view /*key*/, const auto& /*calculate*/) {}
  void within(std::string_view key, const auto& describe) {
    if (const auto object = member(key, JsonType::object)) {
      ObjectReader reader(*object, diagnostics_, world_size_);
      describe(reader);
    }
  }
  template <typename Value>
  void beside(std::string_view key, std::optional<Value>& value) {
    if (object_.find(key)) {
      viz::members(*this, value.emplace());
    }
  }

 private:
  // Without a place, the error is the object's.
  void error(const std::optional<Json>& place, std::string message, std::string_view suggestion = {}) {
    const Json& at = place ? *place : object_;
    diagnostics_.error(at, std::move(message), suggestion);
  }

  bool is(const Json& value, JsonType type) {
    if (!value.is(type)) {
      error(value, fmt::format("expected {} here, found {}", to_phrase(type), to_phrase(value.type())));
    }
    return value.is(type);
  }

  // The member, if it exists and has that type.
  std::optional<Json> member(std::string_view key, JsonType type) {
    const std::optional<Json> value = object_.find(key);
    return value && is(*value, type) ? value : std::nullopt;
  }

  void read(const Json& json, std::string& text) {
    if (is(json, JsonType::string)) {
      text = json.text();
    }
  }
  void read(const Json& json, bool& flag) {
    if (is(json, JsonType::boolean)) {
      flag = json.boolean();
    }
  }
  template <std::integral Number>
  void read(const Json& json, Number& number) {
    if (is(json, JsonType::integer)) {
      number = static_cast<Number>(json.integer());
    }
  }
  // JSON has no infinity: writers make it null.
  void read(const Json& json, double& number) {
    if (json.is(JsonType::null)) {
      number = std::numeric_limits<double>::infinity();
    } else if (json.is_number() || is(json, JsonType::real)) {
      number = json.real();
    }
  }
  void read(const Json& json, FindingKind& kind) {
    std::string word;
    read(json, word);
    const std::optional<FindingKind> known = word.empty() ? FindingKind::ok : parse_finding_kind(word);
    if (!known) {
      error(json, fmt::format("unknown kind \"{}\"", word),
            suggest_from(word, finding_rows(), &FindingRow::word));
    }
    kind = known.value_or(FindingKind::ok);
  }
  template <typename Value>
  void read(const Json& json, std::optional<Value>& value) {
    read(json, value.emplace());
  }
  template <typename Value>
  void read(const Json& json, std::vector<Value>& values) {
    if (is(json, JsonType::array)) {
      for (const Json& each : json.children()) {
        read(each, values.emplace_back());
      }
    }
  }
  template <typename Value>
  void read(const Json& json, Value& value) {
    if (is(json, JsonType::object)) {
      ObjectReader reader(json, diagnostics_, world_size_);
      viz::members(reader, value);
    }
  }

  Json object_;
  Diagnostics& diagnostics_;
  Rank world_size_;
};

// Adds what a file does not say on its own.
void complete(Report& report) {
  for (JoinCost& cost : report.joins) {
    cost.run = report.simulated_time;
    cost.sum_up();
  }
  if (report.samples) {
    report.samples->batch_size = std::max<std::int64_t>(report.samples->batch_size, 1);
  }
  Finding* finding = finding_of(report.verdict);
  if (finding != nullptr && finding->at && finding->at->call.op.empty()) {
    finding->at.reset();  // without an operation, it is the place of a value
  }
}

}  // namespace

std::optional<Report> read_report(const SourceText& source) {
  const JsonTree tree = read_json(source);
  const std::optional<Json> version = tree.root().find("schema_version");
  if (!version) {
    return std::nullopt;
  }
  Diagnostics diagnostics(source);
  Report report;
  if (version->is(JsonType::integer) && version->integer() == viz::report_version) {
    ObjectReader reader(tree.root(), diagnostics);
    viz::members(reader, report);
    complete(report);
  } else {
    diagnostics.error(
        *version, fmt::format("this version of rollcall reads reports of version {}", viz::report_version));
  }
  diagnostics.throw_if_any();
  return report;
}

}  // namespace rollcall::scenario
