// Family mismatch: a main_hook or post_hook that does not issue the calls of forward or of the other ranks.

#include "tests/conformance/joinables.h"
#include "tests/conformance/programs.h"

namespace rollcall::golden {

void scripted_program(CaseContext& context) {
  Scope site("user.scripted_run");
  const Params& params = context.params();
  Scripted scripted(context, {.forward = params.steps("forward"),
                              .main_hook = params.steps("main"),
                              .post_hook = always(params.steps("post"))});
  Join({scripted}).run([&] { context.for_each_marked_input([&] { scripted(); }); });
  context.mark("left");
}

namespace {

// One all_reduce per input, shadowed correctly; only the post hook is wrong.
void run_with_post_hook(CaseContext& context, PostSteps post_hook) {
  const Steps one{all_reduce_step(1)};
  Scripted scripted(context, {.forward = one, .main_hook = one, .post_hook = std::move(post_hook)});
  Join({scripted}).run([&] { context.for_each_input([&] { scripted(); }); });
}

void post_hook_last_only(CaseContext& context) {
  Scope site("user.mismatch_post_hook_last_only");
  run_with_post_hook(context,
                     [](bool is_last_joiner) { return is_last_joiner ? Steps{broadcast_step(1)} : Steps{}; });
  context.mark("left");
  Tensor after = Tensor::full({1}, context.rank());
  all_reduce(after);
  context.put("after", after);
}

void post_hook_root(CaseContext& context) {
  Scope site("user.mismatch_post_hook_root");
  run_with_post_hook(context, [rank = context.rank()](bool) { return Steps{broadcast_step(rank)}; });
}

void post_hook_count(CaseContext& context) {
  Scope site("user.mismatch_post_hook_count");
  run_with_post_hook(context,
                     [](bool is_last_joiner) { return Steps(is_last_joiner ? 2 : 1, all_reduce_step(1)); });
}

}  // namespace

std::span<const NamedProgram> post_hook_programs() {
  static const NamedProgram table[] = {
      {"mismatch_post_hook_last_only", post_hook_last_only},
      {"mismatch_post_hook_root", post_hook_root},
      {"mismatch_post_hook_count", post_hook_count},
  };
  return table;
}

}  // namespace rollcall::golden
