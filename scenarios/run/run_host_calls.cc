// The interpreter, the part about groups and the store.

#include <numeric>
#include <optional>

#include <fmt/core.h>

#include "scenarios/run/interpreter.h"
#include "scenarios/run/rank_frame.h"
#include "sim/base/error.h"
#include "sim/base/parse_number.h"
#include "sim/c10d/device_mesh.h"
#include "sim/c10d/groups.h"
#include "sim/c10d/store.h"

namespace rollcall::scenario {
namespace {

std::string name_of(const RankFrame& frame, const GroupStatement& call) {
  return call.made == no_slot ? std::string() : frame.program().groups[call.made];
}

// split_group without lists puts all members into one group.
std::vector<RankList> lists_of(const GroupStatement& call, const ProcessGroup& parent) {
  if (call.lists) {
    return *call.lists;
  }
  RankList everybody(static_cast<std::size_t>(parent.members().size()));
  std::iota(everybody.begin(), everybody.end(), 0);
  return {everybody};
}

// Parses like Python's int(): variables hold whole numbers.
std::int64_t whole_number(const std::string& text) {
  const auto value = parse_number<std::int64_t>(text);
  if (!value) {
    throw ValueError(fmt::format("invalid literal for int() with base 10: '{}'", text));
  }
  return *value;
}

}  // namespace

void run_group_call(RankFrame& frame, const GroupStatement& call, Site site) {
  using Kind = GroupStatement::Kind;
  const LabelScope scope(frame, call.label);
  const GroupOptions options{.timeout = call.timeout,
                             .name = name_of(frame, call),
                             .use_local_synchronization = call.is_local,
                             .is_on_gloo = call.is_on_gloo};
  ProcessGroup made;
  switch (call.kind) {
    case Kind::new_group:
      made = new_group(call.ranks, options, site);
      break;
    case Kind::new_subgroups: {
      const std::optional<Rank> size =
          call.size ? std::optional(static_cast<Rank>(frame.evaluate(call.size))) : std::nullopt;
      made = new_subgroups(size, options, site).current;
      break;
    }
    case Kind::split_group: {
      const ProcessGroup parent = frame.group(call.group);
      made = split_group(lists_of(call, parent),
                         {.parent = parent, .timeout = call.timeout, .name = options.name}, site);
      break;
    }
    case Kind::destroy:
      destroy_process_group(call.everything ? ProcessGroup() : frame.group(call.group), site);
      return;
    case Kind::monitored_barrier:
      monitored_barrier(
          {.group = frame.group(call.group), .timeout = call.timeout, .wait_all_ranks = call.wait_all_ranks},
          site);
      return;
  }
  if (call.made != no_slot) {
    frame.set_group(call.made, made);
  }
}

void run_init_device_mesh(RankFrame& frame, const MeshStatement& call, Site site) {
  const LabelScope scope(frame, call.label);
  const DeviceMesh mesh = init_device_mesh(call.shape, site);
  for (std::size_t dim = 0; dim < call.made.size(); ++dim) {
    frame.set_group(call.made[dim], mesh.get_group(dim));
  }
  for (const MeshStatement::Flattened& flattened : call.flattened) {
    frame.set_group(flattened.made, mesh.slice(flattened.dims).flatten(flattened.name, site).get_group());
  }
}

void run_store_call(RankFrame& frame, const StoreStatement& call, Site site) {
  using Kind = StoreCall::Kind;
  const LabelScope scope(frame, call.label);
  std::vector<std::string> keys;
  for (const TableIndex key : call.keys) {
    keys.push_back(compose(frame, key));
  }
  Store store;
  if (call.timeout) {
    store.set_timeout(*call.timeout);
  }
  std::optional<std::int64_t> result;
  if (call.kind == Kind::set) {
    store.set(keys.front(), compose(frame, call.value), site);
  } else if (call.kind == Kind::add && call.variable == no_slot) {
    store.count(keys.front(), frame.evaluate(call.amount), site);
  } else if (call.kind == Kind::add) {
    result = store.add(keys.front(), frame.evaluate(call.amount), site);
  } else if (call.kind == Kind::wait) {
    store.wait(keys, std::nullopt, site);
  } else if (call.kind == Kind::compare_set) {
    const std::string expected = call.expected == none ? std::string() : compose(frame, call.expected);
    const std::string found = store.compare_set(keys.front(), expected, compose(frame, call.value), site);
    if (call.variable != no_slot) {
      result = whole_number(found);
    }
  } else if (call.kind == Kind::delete_key) {
    store.delete_key(keys.front(), site);
  } else {
    const std::optional<std::string> want =
        call.want == none ? std::nullopt : std::optional(compose(frame, call.want));
    const std::string got = store.get(keys.front(), want, site);
    if (call.variable != no_slot) {
      result = whole_number(got);
    }
  }
  if (call.variable != no_slot && result) {
    frame.set(call.variable, *result);
  }
}

}  // namespace rollcall::scenario
