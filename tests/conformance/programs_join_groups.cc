// Family join on groups other than the world: which ranks are asked, which are told, and which rank is named.

#include "tests/conformance/joinables.h"
#include "tests/conformance/programs.h"

namespace rollcall::golden {

namespace {

Scripted::Script one_each_way(const ProcessGroup& group, const std::string& name = "s") {
  const Steps one{all_reduce_step(1)};
  return {.forward = one, .main_hook = one, .group = group, .name = name};
}

void call_once_per_input(CaseContext& context, Scripted& scripted, const JoinOptions& options = {}) {
  Join({scripted}, options).run([&] { context.for_each_input([&] { scripted(); }); });
}

void two_groups(CaseContext& context) {
  Scope site("user.join_two_groups");
  Scripted a(context, one_each_way({}, "a"));
  Scripted b(context, one_each_way(find_group("g1"), "b"));
  context.catching("ctor", [&] { Join join({a, b}); });
  context.put("a_config", *a.join_config);
  context.put("b_config", *b.join_config);
}

void join_in_subgroups(CaseContext& context) {
  Scope site("user.join_subgroups");
  ProcessGroup group = find_group(context.rank() % 2 == 0 ? "g1" : "g2");
  Scripted scripted(context, one_each_way(group));
  call_once_per_input(context, scripted);
  context.put("group_rank", std::int64_t{get_rank(group)});
}

void subgroup_throw(CaseContext& context) {
  Scope site("user.join_subgroup_throw");
  if (context.rank() == 0) {
    return;
  }
  Scripted scripted(context, one_each_way(find_group("g1")));
  context.catching("join",
                   [&] { call_once_per_input(context, scripted, {.throw_on_early_termination = true}); });
}

void join_as_nonmember(CaseContext& context) {
  Scope site("user.join_nonmember");
  Scripted scripted(context, one_each_way(find_group("g1")));
  context.catching("join", [&] { call_once_per_input(context, scripted); });
}

// Joins on a subgroup, but counts on the world.
class Mixed final : public Tally {
 public:
  using Tally::Tally;
  ProcessGroup join_process_group() const override { return find_group("g1"); }
};

void group_vs_world(CaseContext& context) {
  Scope site("user.join_group_vs_world");
  if (context.rank() == 2) {
    for (int i = 0; i < 2; ++i) {
      all_reduce(Tensor::ones({1}));
    }
    return;
  }
  Mixed tally(context);
  Join({tally}).run([&] { context.for_each_input([&] { tally(); }); });
  context.put("count", tally.count());
}

}  // namespace

std::span<const NamedProgram> join_group_programs() {
  static const NamedProgram table[] = {
      {"join_two_groups", two_groups, {{0, 1}}},
      {"join_subgroups", join_in_subgroups, {{0, 2}, {1, 3}}},
      {"join_subgroup_throw", subgroup_throw, {{1, 2}}},
      {"join_nonmember", join_as_nonmember, {{0, 1}}},
      {"join_group_vs_world", group_vs_world, {{0, 1}}},
  };
  return table;
}

}  // namespace rollcall::golden
