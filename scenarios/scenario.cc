#include "scenarios/scenario.h"

#include <algorithm>

#include <fmt/format.h>

#include "scenarios/header_reader.h"
#include "scenarios/json/diagnostic.h"
#include "scenarios/json/json_reader.h"
#include "scenarios/json/schema_check.h"
#include "scenarios/json/source.h"
#include "scenarios/program/lowering.h"
#include "scenarios/program/rank_sets.h"
#include "sim/dist/collectives.h"

namespace rollcall::scenario {

std::int64_t Inputs::of(Rank rank) const {
  return list.empty() ? base + per_rank * rank : list[static_cast<std::size_t>(rank)];
}

namespace {

// A file of a later format is not looked at any further: every other message about it would mislead.
void check_version(const Json& root, Diagnostics& diagnostics) {
  const auto version = root.find("version");
  if (version && version->is(JsonType::integer) && version->integer() > 1) {
    diagnostics.error(
        version->offset(), version->pointer(),
        fmt::format("version {} is newer than this program, which reads version 1", version->integer()));
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
    const Json root = tree_.root();
    check_version(root, diagnostics_);
    check_schema(root, diagnostics_);
    diagnostics_.throw_if_any();  // what follows relies on the types the schema demands
    HeaderReader header(root, overrides_, scenario_, diagnostics_);
    header.read();
    const ScenarioFacts facts = header.facts();
    lower(root, facts);
    diagnostics_.throw_if_any();
    return std::move(scenario_);
  }

 private:
  void lower(const Json& root, const ScenarioFacts& facts) {
    Lowering lowering(facts, source_, diagnostics_);
    const auto objects = root.find("objects");
    const auto program = root.find("program");
    const auto programs = root.find("programs");
    if (program.has_value() == programs.has_value()) {
      const Json& at = programs ? *programs : root;
      diagnostics_.error(at.offset(), at.pointer(),
                         program ? "give either \"program\" or \"programs\"" : "\"program\" is missing");
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
    scenario_.program = lowering.finish();
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
      const ParsedRanks ranks = parse_ranks(list.key(), world_size);
      const auto block = static_cast<std::uint32_t>(scenario_.blocks.size());
      scenario_.blocks.push_back(lowering.lower_program(list));
      if (!ranks.ranks) {
        diagnostics_.error(list.key_offset(), list.pointer(), ranks.problem);
        continue;
      }
      for (Rank rank : ranks.ranks->to_vector()) {
        std::uint32_t& own = block_of_rank[static_cast<std::size_t>(rank)];
        if (own != nothing) {
          diagnostics_.error(list.key_offset(), list.pointer(),
                             fmt::format("rank {} already has a program", rank));
          break;
        }
        own = block;
      }
    }
    const auto idle = std::find(block_of_rank.begin(), block_of_rank.end(), nothing);
    if (idle != block_of_rank.end() && diagnostics_.empty()) {
      diagnostics_.error(programs.offset(), programs.pointer(),
                         fmt::format("rank {} has no program; every rank needs one, an empty one is []",
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
  const auto found = std::find(mesh.dim_names.begin(), mesh.dim_names.end(), dim_name);
  if (found == mesh.dim_names.end()) {
    return {};
  }
  const auto dim = static_cast<std::size_t>(found - mesh.dim_names.begin());
  return mesh.sizes.size() == 1 ? world() : find_group(fmt::format("{}{}", dim_name, mesh.row_of(dim, rank)));
}

Scenario load_scenario(const std::string& path, const Overrides& overrides) {
  const SourceText source = read_source(path);
  return Loader(source, overrides).load();
}

Scenario parse_scenario(std::string text, std::string file, const Overrides& overrides) {
  const SourceText source = check_source(std::move(file), std::move(text));
  return Loader(source, overrides).load();
}

}  // namespace rollcall::scenario
