// The header's mesh: its groups exist from the start, as if DeviceMesh had made them.

#include <algorithm>

#include <fmt/core.h>

#include "scenarios/format/header_reader.h"
#include "scenarios/json/diagnostic.h"
#include "scenarios/json/suggest.h"
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
          fmt::format("the mesh has {}{} ranks, but the world has {}",
                      ranks < mesh_ranks_max ? "" : "at least ", ranks, scenario_.options.world_size));
    return;
  }
  for (Json name : names->children()) {
    read_mesh_name(name, name.text());
    scenario_.mesh_dims.push_back({std::string(name.text()), {read.dim_names.size()}});
    read.dim_names.emplace_back(name.text());
  }
  scenario_.mesh = std::move(read);
  read_flattened(*mesh);
  if (diagnostics_.empty()) {
    add_mesh_groups();
  }
}

void HeaderReader::read_mesh_name(const Json& at, std::string_view name) {
  const auto taken = [&](const sim::Group& group) { return group.name == name; };
  if (!is_name(name) || is_reserved_name(name)) {
    error(at, is_name(name) ? fmt::format("\"{}\" is a reserved name", name) : not_a_name(name));
  } else if (name == "world" || std::ranges::any_of(scenario_.options.groups, taken) ||
             std::ranges::find(scenario_.mesh_dims, name, &MeshDim::name) != scenario_.mesh_dims.end()) {
    error(at, fmt::format("the group \"{}\" already exists; use another name", name));
  }
}

// mesh["dp", "cp"]._flatten("dp_cp").
void HeaderReader::read_flattened(const Json& mesh) {
  const auto flattened = mesh.find("flatten");
  if (!flattened) {
    return;
  }
  const std::vector<std::string>& known = scenario_.mesh.dim_names;
  for (Json entry : flattened->children()) {
    read_mesh_name(entry, entry.key());
    MeshDim dim{std::string(entry.key()), {}};
    for (Json name : entry.children()) {
      const auto found = std::ranges::find(known, name.text());
      if (found == known.end()) {
        error(name, fmt::format("the mesh has no dimension \"{}\"", name.text()),
              suggest_from(name.text(), known));
        return;
      }
      dim.of.push_back(static_cast<std::size_t>(found - known.begin()));
    }
    if (!std::ranges::is_sorted(dim.of) || std::ranges::adjacent_find(dim.of) != dim.of.end()) {
      error(entry, "name the dimensions in the order in which the mesh has them");
      return;
    }
    scenario_.mesh_dims.push_back(std::move(dim));
  }
}

// A dimension over all ranks needs no group, because it is the world.
void HeaderReader::add_mesh_groups() {
  for (const MeshDim& dim : scenario_.mesh_dims) {
    if (scenario_.mesh.size_along(dim.of) == scenario_.options.world_size) {
      continue;
    }
    std::size_t row = 0;
    for (RankList& ranks : scenario_.mesh.groups_along(dim.of)) {
      scenario_.options.groups.push_back({fmt::format("{}{}", dim.name, row++), std::move(ranks), 0});
    }
  }
}

}  // namespace rollcall::scenario
