#include "viz/json/json_parts.h"

#include <nlohmann/json.hpp>

namespace rollcall::viz {

void set(nlohmann::ordered_json& object, const char* key, const std::string& value) {
  if (!value.empty()) {
    object[key] = value;
  }
}

void set(nlohmann::ordered_json& object, const char* key, const std::vector<std::string>& values) {
  if (!values.empty()) {
    object[key] = values;
  }
}

nlohmann::ordered_json call_json(const Call& call) {
  nlohmann::ordered_json object = {{"op", call.op}};
  if (call.key.empty()) {
    object["group"] = call.group;
    object["seq"] = call.seq;
  }
  set(object, "key", call.key);
  set(object, "ranks", call.ranks);
  if (!call.dtype.empty()) {  // a barrier carries no data
    object["numel"] = call.numel;
    object["dtype"] = call.dtype;
  }
  set(object, "reduce_op", call.reduce_op);
  if (call.root >= 0) {
    object["root"] = call.root;
  }
  if (call.peer >= 0) {
    object["peer"] = call.peer;
  }
  if (call.tag != 0) {
    object["tag"] = call.tag;
  }
  set(object, "device", call.device);
  set(object, "label", call.label);
  set(object, "site", call.site);
  return object;
}

nlohmann::ordered_json variants_json(const std::vector<Variant>& variants) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Variant& variant : variants) {
    list.push_back({{"ranks", to_string(variant.ranks)}, {"op", call_json(variant.call)}});
  }
  return list;
}

void add_repair(nlohmann::ordered_json& object, const Finding& finding) {
  if (!finding.repair) {
    return;
  }
  nlohmann::ordered_json edits = nlohmann::ordered_json::array();
  for (const RepairStep& step : finding.repair->steps) {
    edits.push_back({{"ranks", step.ranks.to_vector()}, {"change", step.text}, {"times", step.times}});
  }
  object["repair"] = {{"edits", edits},
                      {"verified", !finding.repair->steps.empty()},
                      {"alternatives", finding.repair->alternatives},
                      {"tried", finding.repair->tried},
                      {"search", to_string(finding.repair->search)}};
}

}  // namespace rollcall::viz
