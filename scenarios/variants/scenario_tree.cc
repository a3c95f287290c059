#include "scenarios/variants/scenario_tree.h"

#include <nlohmann/json.hpp>

#include "scenarios/format/cases.h"
#include "scenarios/json/source.h"

namespace rollcall::scenario {

OrderedJson tree_of(const std::string& address, const Scenario& scenario) {
  const CaseAddress place = parse_address(address);
  const SourceText source = read_source(place.file);
  OrderedJson tree = OrderedJson::parse(source.text(), nullptr, true, true);
  if (!tree.contains("matrix")) {
    return tree;
  }
  for (auto& [key, values] : tree["matrix"].items()) {
    for (const OrderedJson& value : OrderedJson(values)) {
      const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
      const std::string parameters = "," + scenario.parameters + ",";
      if (parameters.find("," + key + "=" + text + ",") != std::string::npos) {
        values = OrderedJson::array({value});
        break;
      }
    }
  }
  return tree;
}

}  // namespace rollcall::scenario
