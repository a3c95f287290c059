// Families tally and suite: a counting joinable, and the joinable of PyTorch's own test suite
// (test/distributed/algorithms/test_join.py).

#include "tests/conformance/joinables.h"
#include "tests/conformance/programs.h"

namespace rollcall::golden {

void tally_program(CaseContext& context) {
  Scope site("user.tally_run");
  bool sync = context.params().flag("sync_max_count", false);
  Tally tally(context);
  Join({tally}, {.kwargs = {{"sync_max_count", sync}}}).run([&] {
    context.for_each_marked_input([&] { tally(); });
  });
  context.mark("left");
  context.print("rank " + std::to_string(context.rank()) + " counted " +
                std::to_string(static_cast<std::int64_t>(tally.count().item())) + " before joining");
  if (sync) {
    context.print("all ranks together: " +
                  std::to_string(static_cast<std::int64_t>(tally.count_max().item())));
  }
  context.put("count", tally.count());
  context.put("max_count", tally.count_max());
}

namespace {

// The number that every rank of a suite case has afterwards if no post hook ran; 42 if one did.
constexpr std::int64_t magic_before = 41;
constexpr std::int64_t magic_after = 42;

// The suite's post_hook: the last joiner with the highest rank broadcasts its magic number.
Steps broadcast_magic(Rank rank, Tensor& magic, bool is_last_joiner) {
  Scope site("user.steps");
  Tensor candidate = Tensor::integer(is_last_joiner ? rank : -1);
  all_reduce(candidate, {.op = ReduceOp::max});
  auto root = static_cast<Rank>(candidate.item_integer());
  if (root == rank) {
    magic = Tensor::integer(magic_after);
  }
  broadcast(magic, root);
  return {};
}

}  // namespace

void suite_program(CaseContext& context) {
  Scope site("user.suite_run");
  const Params& params = context.params();
  const std::int64_t all_reduces = params.integer("num_allreduces");
  const std::int64_t count = params.integer("joinables");
  const bool post = params.flag("post", false);
  const Steps steps(static_cast<std::size_t>(all_reduces), all_reduce_step(1));

  std::vector<std::pair<std::string, Tensor>> magic;
  std::vector<std::unique_ptr<Scripted>> joinables;
  std::vector<std::reference_wrapper<Joinable>> list;
  magic.reserve(static_cast<std::size_t>(count));  // the post hooks refer to its elements
  for (std::int64_t n = 0; n < count; ++n) {
    Tensor& mine = magic.emplace_back("j" + std::to_string(n), Tensor::integer(magic_before)).second;
    PostSteps post_hook;
    if (post) {
      post_hook = [&, rank = context.rank()](bool last) { return broadcast_magic(rank, mine, last); };
    }
    joinables.push_back(std::make_unique<Scripted>(
        context,
        Scripted::Script{
            .forward = steps, .main_hook = steps, .post_hook = post_hook, .name = magic.back().first}));
    list.emplace_back(*joinables.back());
  }

  context.catching("join", [&] {
    Join(Joinables(list), {.enable = params.flag("enable", true),
                           .throw_on_early_termination = params.flag("throw", false),
                           .kwargs = {{"num_allreduces", all_reduces}, {"run_post_hooks", post}}})
        .run([&] {
          std::int64_t inputs = 3 + (params.flag("uneven", true) ? context.rank() : 0);
          for (std::int64_t i = 0; i < inputs; ++i) {
            for (auto& joinable : joinables) {
              (*joinable)();
            }
          }
        });
  });
  context.put("magic", magic);
}

}  // namespace rollcall::golden
