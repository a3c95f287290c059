// Family group: groups that the program makes, splits and destroys.

#include "tests/conformance/programs.h"

namespace rollcall::golden {

namespace {

void not_all_call(CaseContext& context) {
  if (context.rank() != 2) {
    new_group(RankList{0, 1});
  }
}

void not_all_call_timeout(CaseContext& context) {
  if (context.rank() != 2) {
    new_group(RankList{0, 1}, {.timeout = 2 * second});
  }
}

void lists_differ(CaseContext& context) {
  Scope site("user.group_lists_differ");
  const ProcessGroup group =
      new_group(context.rank() != 1 ? RankList{0, 1} : RankList{1, 2}, {.timeout = 3 * second});
  if (context.rank() < 2) {
    const Tensor tensor = Tensor::ones({1});
    all_reduce(tensor, {.group = group});
    context.put("out", tensor);
  }
}

void order_differs(CaseContext& context) {
  const RankList pair{0, 1};
  const RankList all{0, 1, 2};
  TensorList sizes;
  for (const RankList& ranks : {context.rank() == 1 ? all : pair, context.rank() == 1 ? pair : all}) {
    const ProcessGroup group = new_group(ranks, {.timeout = 3 * second});
    sizes.push_back(Tensor::integer(group.size()));
  }
  context.put("sizes", sizes);
}

void nonmember(CaseContext& context) {
  Scope site("user.group_nonmember");
  const ProcessGroup group = new_group(RankList{0, 1});
  const Tensor tensor = Tensor::full({1}, 1.0 + context.rank());
  all_reduce(tensor, {.group = group});
  context.put("returned", "None");
  context.put("rank_in_group", std::int64_t{get_rank(group)});
  context.put("world_in_group", std::int64_t{get_world_size(group)});
  context.put("out", tensor);
}

void global_roots(CaseContext& context) {
  Scope site("user.group_global_roots");
  const ProcessGroup group = new_group(RankList{1, 3});
  Tensor tensor = ramp(context.rank(), 2);
  broadcast(tensor, 3, {.group = group});
  context.put("broadcast", tensor);
  tensor = ramp(context.rank(), 2);
  reduce(tensor, 3, {.group = group});
  context.put("reduce", tensor);
  if (context.rank() == 1 || context.rank() == 3) {
    context.catching("broadcast src=0, not a member", [&] { broadcast(tensor, 0, {.group = group}); });
    context.put("group_rank_of_3", std::int64_t{get_group_rank(group, 3)});
    context.put("global_rank_of_0", std::int64_t{get_global_rank(group, 0)});
  }
}

void point_to_point(CaseContext& context) {
  Scope site("user.group_p2p");
  const ProcessGroup group = new_group(RankList{1, 3});
  const Tensor tensor = ramp(context.rank(), 2);
  if (context.rank() == 1) {
    send(tensor, 3, {.group = group});
  }
  if (context.rank() == 3) {
    context.put("returned", std::int64_t{recv(tensor, std::nullopt, {.group = group})});
    context.put("out", tensor);
  }
}

void bad_lists(CaseContext& context) {
  const std::pair<const char*, RankList> lists[] = {{"too many", {0, 1, 2}},
                                                    {"out of range", {0, 5}},
                                                    {"negative", {-1}},
                                                    {"duplicates", {0, 0}},
                                                    {"empty", {}}};
  for (const auto& [label, ranks] : lists) {
    context.catching(label, [&, name = label, list = ranks] {
      const ProcessGroup group = new_group(list, {.timeout = 2 * second});
      context.put(name, std::int64_t{group.size()});
    });
  }
}

void unsorted(CaseContext& context) {
  Scope site("user.group_unsorted");
  const ProcessGroup group = new_group(RankList{2, 0, 1});
  context.put("group_rank", std::int64_t{get_rank(group)});
  const Tensor tensor = ramp(context.rank(), 1);
  broadcast(tensor, 2, {.group = group});
  context.put("out", tensor);
}

void subgroups(CaseContext& context) {
  Scope site("user.group_new_subgroups");
  const Subgroups made = new_subgroups(2);
  const Tensor tensor = Tensor::full({1}, 1.0 + context.rank());
  all_reduce(tensor, {.group = made.current});
  context.put("out", tensor);
  context.put("count", static_cast<std::int64_t>(made.all.size()));
}

void destroyed(CaseContext& context) {
  Scope site("user.group_destroyed");
  const ProcessGroup group = new_group(RankList{0, 1});
  destroy_process_group(group);
  context.catching("get_rank", [&] { context.put("rank", std::int64_t{get_rank(group)}); });
  context.catching("all_reduce", [&] {
    const Tensor tensor = Tensor::ones({1});
    all_reduce(tensor, {.group = group});
    context.put("out", tensor);
  });
}

}  // namespace

std::span<const NamedProgram> group_programs() {
  static const NamedProgram table[] = {
      {"group_not_all_call", not_all_call}, {"group_not_all_call_timeout", not_all_call_timeout},
      {"group_lists_differ", lists_differ}, {"group_order_differs", order_differs},
      {"group_nonmember", nonmember},       {"group_global_roots", global_roots},
      {"group_p2p", point_to_point},        {"group_bad_lists", bad_lists},
      {"group_unsorted", unsorted},         {"group_new_subgroups*", subgroups},
      {"group_destroyed", destroyed},
  };
  return table;
}

}  // namespace rollcall::golden
