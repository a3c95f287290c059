#include "scenarios/cli/checkpoint.h"

#include <fstream>
#include <ostream>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "scenarios/cli/cli.h"
#include "sim/base/parse_number.h"
#include "viz/base/write_file.h"

namespace rollcall::cli {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

Checkpoint::Checkpoint(std::string file, std::string search)
    : file_(std::move(file)), search_(std::move(search)) {
  std::ifstream in(file_, std::ios::binary);
  if (!in) {
    return;
  }
  const Json kept = Json::parse(in, nullptr, false);
  const bool is_one = kept.is_object() && kept.contains("search") && kept.contains("parts") &&
                      kept["search"].is_string() && kept["parts"].is_object();
  if (!is_one) {
    throw UsageError(fmt::format("--checkpoint: '{}' is not a checkpoint", file_));
  }
  if (kept["search"] != search_) {
    throw UsageError(fmt::format("--checkpoint: '{}' belongs to another search: {}", file_,
                                 kept["search"].get<std::string>()));
  }
  for (const auto& [part, result] : kept["parts"].items()) {
    const auto number = parse_number<std::uint32_t>(part);
    if (!number) {
      throw UsageError(fmt::format("--checkpoint: '{}' is damaged: it has no part '{}'", file_, part));
    }
    results_[*number] = result.dump();
  }
}

void Checkpoint::add(std::uint32_t part, const std::string& json) {
  results_[part] = json;
  Json kept = {{"search", search_}, {"parts", Json::object()}};
  for (const auto& [number, result] : results_) {
    kept["parts"][std::to_string(number)] = Json::parse(result);
  }
  viz::write_file(file_, [&kept](std::ostream& out) {
    out << kept.dump(1, ' ', true, Json::error_handler_t::replace) << "\n";
  });
}

std::vector<scenario::NamedResult> Checkpoint::results() const {
  std::vector<scenario::NamedResult> results;
  for (const auto& [part, json] : results_) {
    results.push_back({fmt::format("part {} of {}", part + 1, file_), json});
  }
  return results;
}

}  // namespace rollcall::cli
