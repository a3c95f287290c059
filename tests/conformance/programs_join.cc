// Family join, the correct uses: epochs, nesting, breaking out, throwing, disabling, warnings.

#include "tests/conformance/joinables.h"
#include "tests/conformance/programs.h"

namespace rollcall::golden {

namespace {

const JoinOptions sync_max_count{.kwargs = {{"sync_max_count", true}}};

// `with Join([tally]): for _ in range(inputs): tally()`.
void count_inputs(CaseContext& context, Tally& tally, std::int64_t inputs, const JoinOptions& options = {}) {
  Join({tally}, options).run([&] {
    for (std::int64_t i = 0; i < inputs; ++i) {
      context.mark("input " + std::to_string(i));
      tally();
    }
    context.mark("joined");
  });
}

// The same without marks.
void count_quietly(Tally& tally, std::int64_t inputs, const JoinOptions& options = {}) {
  Join({tally}, options).run([&] {
    for (std::int64_t i = 0; i < inputs; ++i) {
      tally();
    }
  });
}

void throwing(CaseContext& context) {
  Scope site("user.throw_run");
  Tally tally(context);
  context.catching(
      "join", [&] { count_inputs(context, tally, context.inputs(), {.throw_on_early_termination = true}); });
  context.put("count", tally.count());
  Tensor after = Tensor::full({1}, context.rank() + 1);
  all_reduce(after);
  context.put("all_reduce_after", after);
}

void disabled(CaseContext& context) {
  Scope site("user.disabled_run");
  Tally tally(context);
  count_inputs(context, tally, context.inputs(),
               {.enable = false, .throw_on_early_termination = context.params().flag("throw", false)});
  context.put("count", tally.count());
}

// Breaks out of the loop: the same as running out of inputs.
void breaking_off(CaseContext& context) {
  Scope site("user.join_break");
  const std::int64_t break_at =
      context.params().integers("break_at").at(static_cast<std::size_t>(context.rank()));
  Tally tally(context);
  Join({tally}, sync_max_count).run([&] {
    for (std::int64_t i = 0; i < 5; ++i) {
      if (i == break_at) {
        break;
      }
      tally();
    }
  });
  context.put("count", tally.count());
  context.put("max_count", tally.count_max());
}

void two_epochs(CaseContext& context) {
  Scope site("user.join_two_epochs");
  Tally tally(context);
  std::int64_t epoch = 0;
  for (const std::vector<std::int64_t>& inputs : context.params().table("inputs")) {
    const std::string number = std::to_string(epoch++);
    Join({tally}, sync_max_count).run([&] {
      for (std::int64_t i = 0; i < inputs.at(static_cast<std::size_t>(context.rank())); ++i) {
        context.mark("epoch " + number + " input " + std::to_string(i));
        tally();
      }
      context.mark("joined " + number);
    });
    context.put("count_" + number, tally.count());
    context.put("max_count_" + number, tally.count_max());
  }
}

void reused_object(CaseContext& context) {
  Scope site("user.join_reused_object");
  Tally tally(context);
  Join join({tally}, sync_max_count);
  for (int epoch = 0; epoch < 2; ++epoch) {
    join.run([&] { context.for_each_input([&] { tally(); }); });
  }
  context.put("count", tally.count());
}

void called_after_exit(CaseContext& context) {
  Scope site("user.join_called_after_exit");
  Tally tally(context);
  count_quietly(tally, context.inputs());
  context.put("config_after", *tally.join_config);
  context.mark("after");
  tally();
  context.put("count", tally.count());
}

void called_after_throwing_exit(CaseContext& context) {
  Scope site("user.join_called_after_throwing_exit");
  Tally tally(context);
  count_quietly(tally, 2, {.throw_on_early_termination = true});
  context.mark("after");
  tally();
  context.put("count", tally.count());
}

void two_calls_per_input(CaseContext& context) {
  Scope site("user.join_two_calls_per_input");
  Tally tally(context);
  count_quietly(tally, 2 * context.inputs(), sync_max_count);
  context.put("count", tally.count());
  context.put("max_count", tally.count_max());
}

void two_joinables(CaseContext& context) {
  Scope site("user.two_joinables");
  const Steps two{all_reduce_step(2)};
  const Steps three{all_reduce_step(3)};
  Scripted a(context, {.forward = two, .main_hook = two, .name = "a"});
  Scripted b(context, {.forward = three, .main_hook = three, .name = "b"});
  Joinables list = context.params().text("order") == "ab" ? Joinables{a, b} : Joinables{b, a};
  Join(list, {.kwargs = {{"label", std::string("hello")}}}).run([&] {
    context.for_each_marked_input([&] {
      a();
      b();
    });
  });
}

void nested(CaseContext& context) {
  Scope site("user.join_nested");
  const auto rank = static_cast<std::size_t>(context.rank());
  Tally a(context, "a");
  Tally b(context, "b");
  Join({a}, sync_max_count).run([&] {
    for (std::int64_t i = 0; i < context.params().integers("outer").at(rank); ++i) {
      context.mark("outer " + std::to_string(i));
      a();
    }
    Join({b}, sync_max_count).run([&] {
      for (std::int64_t i = 0; i < context.params().integers("inner").at(rank); ++i) {
        context.mark("inner " + std::to_string(i));
        b();
      }
      context.mark("inner joined");
    });
    context.mark("outer joined");
  });
  context.put("a.count", a.count());
  context.put("b.count", b.count());
}

void nested_even(CaseContext& context) {
  Scope site("user.join_nested_even");
  Tally a(context, "a");
  Tally b(context, "b");
  Join({a}).run([&] {
    for (int i = 0; i < 2; ++i) {
      a();
      Join({b}).run([&] { b(); });
    }
  });
  context.put("a.count", a.count());
  context.put("b.count", b.count());
}

void nested_same(CaseContext& context) {
  Scope site("user.join_nested_same");
  Tally a(context, "a");
  Join({a}).run([&] { count_quietly(a, context.inputs()); });
  context.put("a.count", a.count());
}

void skew_without_count(CaseContext& context) {
  Scope site("user.join_skew_1001");
  Tally tally(context);
  count_quietly(tally, context.inputs());
}

void skew(CaseContext& context) {
  Scope site("user.join_skew_warning");
  Tally tally(context);
  count_quietly(tally, context.inputs());
  context.put("count", tally.count());
}

void device_of_first_joinable(CaseContext& context) {
  Scope site("user.join_device_first_wins");
  const Steps one{all_reduce_step(1)};
  Scripted a(context, {.forward = one, .main_hook = one, .name = "a"});
  Scripted b(context, {.forward = one, .main_hook = one, .device = {DeviceType::meta, 0}, .name = "b"});
  Join join({a, b});
  context.put("device", to_string(join.device()));
  join.run([&] {
    context.for_each_input([&] {
      a();
      b();
    });
  });
}

// A context without a loop. Python's `as` binds None and its warning filters change. Neither has a meaning here, but
// the operations do.
void empty_context(CaseContext& context) {
  Scope site("user.join_as_value");
  Tally tally(context);
  count_quietly(tally, 0);
}

}  // namespace

std::span<const NamedProgram> join_programs() {
  static const NamedProgram table[] = {
      {"join_throw_*", throwing},
      {"join_disabled_*", disabled},
      {"join_break", breaking_off},
      {"join_two_epochs", two_epochs},
      {"join_reused_object", reused_object},
      {"join_called_after_exit", called_after_exit},
      {"join_called_after_throwing_exit", called_after_throwing_exit},
      {"join_two_calls_per_input", two_calls_per_input},
      {"join_two_joinables*", two_joinables},
      {"join_nested", nested},
      {"join_nested_even", nested_even},
      {"join_nested_same", nested_same},
      {"join_skew_1001", skew_without_count},
      {"join_skew_*", skew},
      {"join_device_first_wins", device_of_first_joinable},
      {"join_as_value", empty_context},
      {"join_warning_filter", empty_context},
  };
  return table;
}

}  // namespace rollcall::golden
