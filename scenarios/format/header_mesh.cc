// The header's mesh: its groups exist from the start, as if DeviceMesh had made them.

#include <algorithm>

#include <fmt/core.h>

#include "scenarios/format/header_reader.h"
#include "scenarios/json/diagnostic.h"
#include "scenarios/program/names.h"

namespace rollcall::scenario {

void HeaderReader::read_mesh() {
  const auto mesh = root_.find("mesh");
  if (!mesh) {
    return;
  }
  const auto shape = mesh->find("shape");
  const auto names = mesh->find("dim_names");
  if (!shape || !names || shape->size() != names->size()) {
    error(*mesh, "a mesh needs a \"shape\" and the same number of \"dim_names\"");
    return;
  }
  MeshShape read;
  std::int64_t ranks = 1;
  for (Json size : shape->children()) {
    ranks = std::min<std::int64_t>(ranks * std::min<std::int64_t>(size.integer(), mesh_ranks_max),
                                   mesh_ranks_max);
    read.sizes.push_back(static_cast<Rank>(std::min<std::int64_t>(size.integer(), mesh_ranks_max)));
  }
  if (ranks != scenario_.options.world_size) {
    error(*shape,
          fmt::format("the mesh has {} ranks, but the world has {}", ranks, scenario_.options.world_size));
    return;
  }
  for (Json name : names->children()) {
    const auto taken = [&](const sim::Group& group) { return group.name == name.text(); };
    if (!is_name(name.text()) || is_reserved_name(name.text())) {
      error(name, is_name(name.text()) ? fmt::format("\"{}\" is a reserved name", name.text())
                                       : not_a_name(name.text()));
    } else if (name.text() == "world" || std::ranges::any_of(scenario_.options.groups, taken) ||
               std::ranges::find(read.dim_names, name.text()) != read.dim_names.end()) {
      error(name, fmt::format("the group \"{}\" already exists; use another name", name.text()));
    }
    read.dim_names.emplace_back(name.text());
  }
  if (diagnostics_.empty()) {
    add_mesh_groups(read);
    scenario_.mesh = std::move(read);
  }
}

// One dimension over everybody needs no group: it is the world.
void HeaderReader::add_mesh_groups(const MeshShape& mesh) {
  for (std::size_t dim = 0; dim < mesh.sizes.size() && mesh.sizes.size() > 1; ++dim) {
    std::size_t row = 0;
    for (RankList& ranks : mesh.groups_along(dim)) {
      scenario_.options.groups.push_back(
          {fmt::format("{}{}", mesh.dim_names[dim], row++), std::move(ranks), 0});
    }
  }
}

}  // namespace rollcall::scenario
