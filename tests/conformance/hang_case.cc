#include "tests/conformance/hang_case.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include <nlohmann/json.hpp>

namespace rollcall::conformance {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const fs::path data = fs::path(ROLLCALL_SOURCE_DIR) / "tests" / "data";

struct Slot {
  std::string group;
  std::int64_t seq = 0;
};

bool is_message(const Call& call) { return call.op == "send" || call.op == "recv"; }

// Returns every place that the report names: where the run failed, and the calls of a cycle.
std::vector<Place> places_of(const Report& report) {
  std::vector<Place> places;
  if (const Finding* finding = finding_of(report.verdict); finding != nullptr && finding->at) {
    places.push_back(*finding->at);
  }
  if (const auto* deadlock = std::get_if<Deadlock>(&report.verdict)) {
    places.insert(places.end(), deadlock->cycle.begin(), deadlock->cycle.end());
  }
  return places;
}

bool names_slot(const Report& report, const Slot& slot) {
  const std::vector<Place> places = places_of(report);
  if (std::ranges::any_of(places, [&](const Place& place) {
        return !is_message(place.call) && place.call.group == slot.group && place.call.seq == slot.seq;
      })) {
    return true;
  }
  const Finding* finding = finding_of(report.verdict);
  return finding != nullptr && finding->first_divergence && finding->first_divergence->group == slot.group &&
         finding->first_divergence->seq <= slot.seq;
}

bool names_message_of(const Report& report, Rank rank) {
  return std::ranges::any_of(places_of(report), [&](const Place& place) {
    return is_message(place.call) && place.waiting.contains(rank);
  });
}

bool names_tensor(const Report& report, const std::string& tensor) {
  const std::vector<TensorPlace>* places = nullptr;
  if (const auto* wrong = std::get_if<WrongResult>(&report.verdict)) {
    places = &wrong->values;
  } else if (const auto* race = std::get_if<Race>(&report.verdict)) {
    places = &race->touched;
  }
  return places != nullptr &&
         std::ranges::any_of(*places, [&](const TensorPlace& place) { return place.tensor == tensor; });
}

bool names_key(const Report& report, const std::string& key) {
  const Finding* finding = finding_of(report.verdict);
  return finding != nullptr && finding->headline.find(key) != std::string::npos;
}

// True if the report names one of the calls outside of collectives in which ranks are blocked.
bool names_other(const Report& report, const json& other) {
  return other.at("op") == "p2p" ? names_message_of(report, other.at("rank").get<Rank>())
                                 : names_key(report, other.value("key", other.at("op").get<std::string>()));
}

bool names_divergence(const Report& report, const json& wanted) {
  const Slot slot{wanted.at("group"), wanted.at("seq")};
  const Finding* finding = finding_of(report.verdict);
  const bool is_first = finding != nullptr && finding->first_divergence &&
                        finding->first_divergence->group == slot.group &&
                        finding->first_divergence->seq == slot.seq;
  return is_first || names_slot(report, slot);  // if nothing came later, the divergence is the place
}

bool names_blocked(const Report& report, const json& at) {
  const json none = json::array();
  const json& slots = at.contains("slots") ? at["slots"] : none;
  const json& others = at.contains("other") ? at["other"] : none;
  return std::ranges::any_of(slots,
                             [&](const json& slot) {
                               return names_slot(report, {slot.at("group"), slot.at("seq")});
                             }) ||
         std::ranges::any_of(others, [&](const json& other) { return names_other(report, other); });
}

// ---- Ranks numbered in reverse ----

class Renumbering {
 public:
  explicit Renumbering(Rank world_size) : last_(world_size - 1) {}

  json programs(const json& programs) const {
    json result = json::object();
    for (const auto& [key, ops] : programs.items()) {
      for (const Rank rank : ranks_of(key)) {
        result[std::to_string(of(rank))] = list(ops);
      }
    }
    return result;
  }

  json rank_lists(const json& lists) const {
    json result = lists;
    for (json& ranks : result) {
      ranks = mapped(ranks);
    }
    return result;
  }

  json mapped(const json& ranks) const {
    std::vector<Rank> result;
    for (const json& rank : ranks) {
      result.push_back(of(rank.get<Rank>()));
    }
    std::ranges::sort(result);
    return result;
  }

 private:
  Rank of(Rank rank) const { return last_ - rank; }

  json list(const json& ops) const {
    json result = json::array();
    for (const json& op : ops) {
      result.push_back(op.is_array() ? list(op) : this->op(op));
    }
    return result;
  }

  json op(json op) const {
    for (auto& [key, value] : op.items()) {
      if (key == "root" || key == "src" || key == "dst") {
        value = of(value.get<Rank>());
      } else if (key == "ranks") {
        value = mapped(value);
      } else if (key == "in_splits" || key == "out_splits") {
        std::reverse(value.begin(), value.end());  // in the order of the group's ranks
      } else if (key == "body" || key == "options" || key == "threads" || key == "ops") {
        value = list(value);
      }
    }
    return op;
  }

  // "1-3", "0,2"
  static std::vector<Rank> ranks_of(const std::string& key) {
    std::vector<Rank> ranks;
    std::istringstream parts(key);
    for (std::string part; std::getline(parts, part, ',');) {
      const std::size_t dash = part.find('-');
      const Rank first = std::stoi(part);
      const Rank last = dash == std::string::npos ? first : std::stoi(part.substr(dash + 1));
      for (Rank rank = first; rank <= last; ++rank) {
        ranks.push_back(rank);
      }
    }
    return ranks;
  }

  Rank last_;
};

}  // namespace

json renumbered(const json& hang) {
  const Renumbering numbers(hang.at("world_size").get<Rank>());
  json result = hang;
  result["programs"] = numbers.programs(hang.at("programs"));
  result["groups"] = numbers.rank_lists(hang.at("groups"));
  if (hang.contains("hosts")) {
    result["hosts"] = numbers.rank_lists(hang["hosts"]);
  }
  result["expect"]["culprits"] = numbers.mapped(hang.at("expect").at("culprits"));
  return result;
}

std::vector<std::string> hang_ids(const std::string& library) {
  std::vector<std::string> ids;
  for (const fs::directory_entry& entry : fs::directory_iterator(data / library)) {
    if (entry.path().extension() == ".json") {
      ids.push_back(entry.path().stem().string());
    }
  }
  std::ranges::sort(ids);
  return ids;
}

std::string hang_path(const std::string& id, const std::string& library) {
  return (data / library / (id + ".json")).string();
}

json read_hang(const std::string& id, const std::string& library) {
  std::ifstream in(hang_path(id, library), std::ios::binary);
  return json::parse(in);
}

std::vector<Rank> ranked_culprits(const Report& report) {
  const Finding* finding = finding_of(report.verdict);
  if (finding == nullptr) {
    return {};
  }
  return finding->suspects.empty() ? finding->culprits.to_vector() : finding->suspects;
}

bool verdict_agrees(const json& expect, const Report& report) {
  return verdict_word(report.verdict) == expect.at("verdict").get<std::string>();
}

bool culprits_agree(const json& expect, const Report& report) {
  auto wanted = expect.at("culprits").get<std::vector<Rank>>();
  std::vector<Rank> first = ranked_culprits(report);
  if (first.size() < wanted.size() || (wanted.empty() && !first.empty())) {
    return false;
  }
  first.resize(wanted.size());
  std::ranges::sort(first);
  std::ranges::sort(wanted);
  return first == wanted;
}

bool place_agrees(const json& expect, const Report& report) {
  if (expect.contains("first_divergence") && !names_divergence(report, expect["first_divergence"])) {
    return false;
  }
  const json& at = expect.at("at");
  if (at.contains("slots") || at.contains("other")) {
    return names_blocked(report, at);
  }
  if (at.contains("tensor")) {
    return names_tensor(report, at["tensor"]);
  }
  if (at.contains("seq")) {
    return names_slot(report, {at.at("group"), at["seq"]});
  }
  if (at.value("p2p", false)) {
    return names_message_of(report, at.at("ranks")[0]);
  }
  if (at.contains("key")) {
    return names_key(report, at["key"]);
  }
  if (at.contains("group")) {
    const auto group = at["group"].get<std::string>();
    return std::ranges::any_of(places_of(report),
                               [&group](const Place& place) { return place.call.group == group; });
  }
  return at.empty() || culprits_agree(expect, report);  // only a rank is given
}

}  // namespace rollcall::conformance
