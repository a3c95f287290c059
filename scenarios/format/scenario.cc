#include "scenarios/format/scenario.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include <fmt/format.h>

#include "scenarios/format/cases.h"
#include "scenarios/format/header_reader.h"
#include "scenarios/json/diagnostic.h"
#include "scenarios/json/json_reader.h"
#include "scenarios/json/schema_check.h"
#include "scenarios/json/source.h"
#include "scenarios/program/lowering.h"
#include "scenarios/program/rank_sets.h"
#include "sim/c10d/collectives.h"

namespace rollcall::scenario {

std::int64_t Inputs::of(Rank rank) const {
  return list.empty() ? base + per_rank * rank : list[static_cast<std::size_t>(rank)];
}

namespace {

// A file of a later format is not checked any further: every other message about it would mislead.
void check_version(const Json& root, Diagnostics& diagnostics) {
  const auto version = root.find("version");
  if (version && version->is(JsonType::integer) && version->integer() > 1) {
    diagnostics.error(*version, fmt::format("version {} is newer than this program, which reads version 1",
                                            version->integer()));
    diagnostics.throw_if_any();
  }
}

// Reads one file: header, then objects and programs.
class Loader {
 public:
  Loader(const SourceText& source, const Overrides& overrides)
      : source_(source), overrides_(overrides), diagnostics_(source), tree_(read_json(source)) {
    scenario_.file = source.name();
  }

  Scenario load() {
    check_version(tree_.root(), diagnostics_);
    const Combination combination = choose_case(tree_.root());
    const JsonTree tree = substitute(tree_, combination.fields);
    const Json root = tree.root();
    check_schema(root, diagnostics_);
    diagnostics_.throw_if_any();  // the rest relies on the types that the schema requires
    check_matrix(root, diagnostics_);
    HeaderReader header(root, overrides_, scenario_, diagnostics_);
    header.read();
    if (!combination.parameters.empty()) {
      scenario_.parameters = combination.parameters;
      scenario_.name += fmt::format("[{}]", combination.parameters);
    }
    ScenarioFacts facts = header.facts();
    facts.constants = combination.constants;
    lower(root, facts);
    diagnostics_.throw_if_any();
    return std::move(scenario_);
  }

 private:
  // The case that the selection names, among the file's cases.
  Combination choose_case(const Json& root) {
    std::vector<Combination> combinations = combinations_of(root);
    Case candidate{
        .file = source_.name(), .name = name_of(root, source_.name()), .parameters = {}, .tags = {}};
    std::vector<Combination> chosen;
    std::vector<std::string> addresses;
    for (const Combination& combination : combinations) {
      candidate.parameters = combination.parameters;
      addresses.push_back(candidate.address());
      if (candidate.matches(overrides_.selection)) {
        chosen.push_back(combination);
      }
    }
    if (chosen.size() != 1) {
      refuse_selection(root, chosen.empty(), addresses);
    }
    return chosen.front();
  }

  [[noreturn]] void refuse_selection(const Json& root, bool found_none, std::vector<std::string> addresses) {
    constexpr std::size_t named_max = 3;
    const std::size_t count = addresses.size();
    addresses.resize(std::min(count, named_max));
    const Json at = root.find("matrix").value_or(root);
    const std::string all =
        fmt::format("'{}'{}", fmt::join(addresses, "', '"), count > named_max ? ", ..." : "");
    diagnostics_.error(
        at, found_none
                ? fmt::format("there is no case \"{}\" here; the cases are {}", overrides_.selection, all)
                : fmt::format("this file has {} cases; name one of them: {}", count, all));
    diagnostics_.throw_if_any();
    std::abort();  // not reached, because there is an error
  }

  void lower(const Json& root, const ScenarioFacts& facts) {
    Lowering lowering(facts, source_, diagnostics_);
    const auto objects = root.find("objects");
    const auto program = root.find("program");
    const auto programs = root.find("programs");
    if (program.has_value() == programs.has_value()) {
      const Json& at = programs ? *programs : root;
      diagnostics_.error(at, program ? "give either \"program\" or \"programs\"" : "\"program\" is missing");
      return;
    }
    collect(lowering, objects, program, programs);
    if (objects) {
      for (Json object : objects->children()) {
        lowering.lower_object(object);
      }
    }
    if (program) {
      scenario_.blocks.push_back(lowering.lower_program(*program));
    } else {
      lower_programs(lowering, *programs);
    }
    watch_tensors(root, lowering);
    scenario_.program = lowering.finish();
  }

  // Watches each tensor once, however many rank sets it is expected for.
  static void watch_tensors(const Json& root, Lowering& lowering) {
    const auto expect = root.find("expect");
    const auto values = expect ? expect->find("values") : std::nullopt;
    if (!values) {
      return;
    }
    std::set<std::string_view> watched;
    for (Json ranks : values->children()) {
      for (Json tensor : ranks.children()) {
        if (watched.insert(tensor.key()).second) {
          lowering.watch(tensor);
        }
      }
    }
  }

  static void collect(Lowering& lowering, const std::optional<Json>& objects,
                      const std::optional<Json>& program, const std::optional<Json>& programs) {
    if (objects) {
      for (Json object : objects->children()) {
        for (Json member : object.children()) {
          lowering.collect(member);
        }
      }
    }
    if (program) {
      lowering.collect(*program);
    } else {
      for (Json list : programs->children()) {
        lowering.collect(list);
      }
    }
  }

  void lower_programs(Lowering& lowering, const Json& programs) {
    constexpr std::uint32_t nothing = ~std::uint32_t{0};
    const Rank world_size = scenario_.options.world_size;
    auto& block_of_rank = scenario_.block_of_rank;
    block_of_rank.assign(static_cast<std::size_t>(world_size), nothing);
    for (Json list : programs.children()) {
      const auto block = static_cast<std::uint32_t>(scenario_.blocks.size());
      scenario_.blocks.push_back(lowering.lower_program(list));
      const auto ranks = read_key_ranks(list, world_size, diagnostics_);
      for (Rank rank : ranks.value_or(RankSet()).to_vector()) {
        std::uint32_t& own = block_of_rank[static_cast<std::size_t>(rank)];
        if (own != nothing) {
          diagnostics_.error_at_key(list, fmt::format("rank {} already has a program", rank));
          break;
        }
        own = block;
      }
    }
    const auto idle = std::find(block_of_rank.begin(), block_of_rank.end(), nothing);
    if (idle != block_of_rank.end() && diagnostics_.empty()) {
      diagnostics_.error(programs,
                         fmt::format("rank {} has no program; every rank needs one, and [] is an empty one",
                                     idle - block_of_rank.begin()));
    }
  }

  const SourceText& source_;
  const Overrides& overrides_;
  Diagnostics diagnostics_;
  JsonTree tree_;
  Scenario scenario_;
};

}  // namespace

ProcessGroup Scenario::mesh_group(std::string_view dim_name, Rank rank) const {
  const auto found = std::ranges::find(mesh_dims, dim_name, &MeshDim::name);
  if (found == mesh_dims.end()) {
    return {};
  }
  return mesh.size_along(found->of) == options.world_size
             ? world()
             : find_group(fmt::format("{}{}", dim_name, mesh.row_of(found->of, rank)));
}

Scenario load_scenario(const std::string& address, const Overrides& overrides) {
  const auto [file, selection] = parse_address(address);
  const SourceText source = read_source(file);
  Overrides all = overrides;
  all.selection = selection.empty() ? overrides.selection : selection;
  return Loader(source, all).load();
}

Scenario parse_scenario(std::string text, std::string file, const Overrides& overrides) {
  const SourceText source = check_source(std::move(file), std::move(text));
  return Loader(source, overrides).load();
}

}  // namespace rollcall::scenario
