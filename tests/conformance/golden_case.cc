#include "tests/conformance/golden_case.h"
#include "sim/torch/torch_traits.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string_view>

#include <nlohmann/json.hpp>

namespace rollcall::golden {

namespace {

// The process group timeout of a case that does not depend on it; real runs of these cases end with a stall instead.
constexpr double default_timeout_s = 60.0;

Step read_step(const nlohmann::json& json) {
  Step step{.kind = json.at(0).get<std::string>(), .numel = json.at(1).get<std::int64_t>()};
  auto dtype_name = json.at(2).get<std::string>();
  std::optional<Dtype> dtype = parse_dtype(dtype_name);
  if (!dtype) {
    throw std::runtime_error("unknown dtype '" + dtype_name + "' in a step");
  }
  step.dtype = *dtype;
  if (json.size() < 4 || json[3].is_null()) {
    return step;
  }
  if (json[3].is_number_integer()) {
    step.root = json[3].get<Rank>();
    return step;
  }
  std::optional<ReduceOp> reduce = parse_reduce_op(json[3].get<std::string>());
  if (!reduce) {
    throw std::runtime_error("unknown reduction " + json[3].dump() + " in a step");
  }
  step.reduce = *reduce;
  return step;
}

template <typename T>
T read(const nlohmann::json& params, const std::string& name) {
  try {
    return params.at(name).get<T>();
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error("parameter '" + name + "': " + error.what());
  }
}

}  // namespace

Params::Params(const nlohmann::json& params) : params_(std::make_shared<const nlohmann::json>(params)) {}

bool Params::has(const std::string& name) const { return params_->contains(name); }

bool Params::flag(const std::string& name, bool fallback) const {
  return has(name) ? read<bool>(*params_, name) : fallback;
}

std::int64_t Params::integer(const std::string& name) const { return read<std::int64_t>(*params_, name); }

std::string Params::text(const std::string& name) const { return read<std::string>(*params_, name); }

std::vector<std::int64_t> Params::integers(const std::string& name) const {
  return read<std::vector<std::int64_t>>(*params_, name);
}

std::vector<std::vector<std::int64_t>> Params::table(const std::string& name) const {
  return read<std::vector<std::vector<std::int64_t>>>(*params_, name);
}

std::vector<std::vector<std::int64_t>> Params::epochs(const std::string& name) const {
  const bool are_several = has(name) && !params_->at(name).empty() && params_->at(name).front().is_array();
  return are_several ? table(name) : std::vector<std::vector<std::int64_t>>(1, integers(name));
}

double Params::number(const std::string& name, double fallback) const {
  return has(name) ? read<double>(*params_, name) : fallback;
}

Params Params::nested(const std::string& name) const {
  return Params(has(name) ? params_->at(name) : nlohmann::json::object());
}

std::vector<std::string> Params::texts(const std::string& name, std::vector<std::string> fallback) const {
  return has(name) ? read<std::vector<std::string>>(*params_, name) : std::move(fallback);
}

Steps Params::steps_of(const std::string& name, Rank rank) const {
  const auto lists = read<std::vector<nlohmann::json>>(*params_, name);
  Steps steps;
  for (const nlohmann::json& step : lists.at(static_cast<std::size_t>(rank))) {
    steps.push_back(read_step(step));
  }
  return steps;
}

std::vector<Params> Params::script_of(const std::string& name, Rank rank) const {
  const auto lists = read<std::vector<nlohmann::json>>(*params_, name);
  const nlohmann::json& own = lists.at(static_cast<std::size_t>(rank));
  return {own.begin(), own.end()};
}

Steps Params::steps(const std::string& name) const {
  Steps steps;
  if (has(name)) {
    for (const nlohmann::json& step : params_->at(name)) {
      steps.push_back(read_step(step));
    }
  }
  return steps;
}

std::string GoldenCase::program_name() const {
  const std::array<std::pair<std::string_view, bool>, 3> suffixes{
      {{"_detail", detail}, {"_timeout", timeout > 0}, {"_exit", finished_ranks_exit}}};
  std::string_view program = name;
  for (bool removed = true; removed;) {
    removed = false;
    for (const auto& [suffix, applies] : suffixes) {
      if (applies && program.ends_with(suffix)) {
        program.remove_suffix(suffix.size());
        removed = true;
      }
    }
  }
  return std::string(program);
}

namespace {

nlohmann::json go_round(const nlohmann::json& list, std::size_t size) {
  nlohmann::json longer = nlohmann::json::array();
  for (std::size_t i = 0; i < size; ++i) {
    longer.push_back(list.at(i % list.size()));
  }
  return longer;
}

}  // namespace

GoldenCase at_world_size(const GoldenCase& golden, Rank ranks) {
  const auto size = static_cast<std::size_t>(ranks);
  nlohmann::json params = golden.document->at("params");
  for (const char* per_rank : {"inputs", "break_at", "outer", "inner", "steps"}) {
    if (!params.contains(per_rank)) {
      continue;
    }
    nlohmann::json& list = params[per_rank];
    const bool has_epochs = per_rank == std::string_view("inputs") && list.at(0).is_array();
    if (has_epochs) {
      for (nlohmann::json& epoch : list) {
        epoch = go_round(epoch, size);
      }
    } else {
      list = go_round(list, size);
    }
  }
  GoldenCase resized = golden;
  resized.world_size = ranks;
  resized.params = Params(params);
  return resized;
}

GoldenCase read_golden_case(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) {
    throw std::runtime_error(path.string() + ": cannot be opened");
  }
  try {
    auto document = std::make_shared<const nlohmann::json>(nlohmann::json::parse(file));
    auto timeout_s = document->at("pg_timeout_s").get<double>();
    return GoldenCase{
        .name = document->at("case").get<std::string>(),
        .family = document->at("family").get<std::string>(),
        .world_size = document->at("world_size").get<Rank>(),
        .torch = parse_torch_release(document->at("torch").get<std::string>()).value(),
        .detail = document->at("debug") == "DETAIL",
        .debug = document->at("debug") != "OFF",
        .timeout = timeout_s < default_timeout_s ? static_cast<Duration>(timeout_s * second) : 0,
        .finished_ranks_exit = document->at("on_end") == "exit",
        .params = Params(document->at("params")),
        .unstable_fields = document->value("unstable_fields", std::vector<std::string>{}),
        .document = document,
    };
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error(path.string() + ": " + error.what());
  }
}

std::vector<std::filesystem::path> golden_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().extension() == ".json") {
      files.push_back(entry.path());
    }
  }
  if (files.empty()) {
    throw std::runtime_error(folder.string() + ": no golden files");
  }
  std::sort(files.begin(), files.end(),
            [](const auto& a, const auto& b) { return a.filename() < b.filename(); });
  return files;
}

std::vector<std::filesystem::path> golden_folders() {
  const std::filesystem::path folder = golden_folder();
  if (std::getenv("ROLLCALL_GOLDEN") != nullptr) {
    return {folder};
  }
  return {folder, folder.parent_path() / "golden_2_6", folder.parent_path() / "golden_2_14"};
}

std::filesystem::path golden_folder() {
  if (const char* chosen = std::getenv("ROLLCALL_GOLDEN")) {
    return chosen;
  }
  return std::filesystem::path(ROLLCALL_SOURCE_DIR) / "tests" / "data" / "golden";
}

}  // namespace rollcall::golden
