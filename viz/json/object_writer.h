#pragma once

// ObjectWriter: the visitor of report_format.h that adds members to a JSON object. `Json` is nlohmann::ordered_json,
// whose header only the writers include.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "viz/json/report_format.h"

namespace rollcall::viz {

template <typename Json>
class ObjectWriter {
 public:
  explicit ObjectWriter(Json& object) : object_(object) {}

  template <typename Value>
  static Json json_of(const Value& value) {
    if constexpr (std::is_arithmetic_v<Value> || std::is_convertible_v<const Value&, std::string_view>) {
      return value;
    } else if constexpr (std::is_same_v<Value, FindingKind>) {
      return to_string(value);
    } else {
      // Not null: if memory runs out when operator[] makes an object of null, null is left broken.
      Json object = Json::object();
      ObjectWriter writer(object);
      members(writer, value);
      return object;
    }
  }
  template <typename Value>
  static Json json_of(const std::optional<Value>& value) {
    return json_of(*value);
  }
  template <typename Value>
  static Json json_of(const std::vector<Value>& values) {
    Json list = Json::array();
    for (const Value& value : values) {
      list.push_back(json_of(value));
    }
    return list;
  }

  void operator()(const char* key, const auto& value) { object_[key] = json_of(value); }
  void some(const char* key, const auto& value) {
    if constexpr (requires { value.empty(); }) {
      add_if(!value.empty(), key, value);
    } else {
      add_if(static_cast<bool>(value), key, value);
    }
  }
  void known(const char* key, std::int64_t number) { add_if(number >= 0, key, number); }
  void rank(const char* key, Rank rank) { known(key, rank); }
  void ranks(const char* key, const RankSet& ranks) { (*this)(key, to_string(ranks)); }
  void rank_list(const char* key, const RankSet& ranks) { (*this)(key, ranks.to_vector()); }
  void ranks_or_none(const char* key, const RankSet& ranks) { add_if(!ranks.empty(), key, to_string(ranks)); }
  void rank_list_or_none(const char* key, const RankSet& ranks) { rank_list(key, ranks); }
  void culprits(const char* key, const Finding& finding) {
    (*this)(key, finding.suspects.empty() ? finding.culprits.to_vector() : finding.suspects);
  }
  template <typename Enum>
  void word(const char* key, const Enum& value, std::initializer_list<Enum> /*all*/,
            std::string_view /*noun*/ = {}) {
    (*this)(key, to_string(value));
  }
  void alternative(const char* key, const Verdict& verdict) { (*this)(key, verdict_word(verdict)); }
  void world_size(const char* key, Rank size) { (*this)(key, size); }
  void present(const char* /*key*/, bool /*is_present*/) {}
  bool wants(bool condition) const { return condition; }
  void derived(const char* key, const auto& calculate) { (*this)(key, calculate()); }
  void within(const char* key, const auto& describe) {
    Json& inner = object_[key];
    if (inner.is_null()) {
      inner = Json::object();
    }
    ObjectWriter writer(inner);
    describe(writer);
  }
  void beside(const char* /*key*/, const auto& value) {
    if (value) {
      members(*this, *value);
    }
  }

 private:
  void add_if(bool condition, const char* key, const auto& value) {
    if (condition) {
      (*this)(key, value);
    }
  }

  Json& object_;
};

}  // namespace rollcall::viz
