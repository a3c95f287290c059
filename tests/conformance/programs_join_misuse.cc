// Family join, the misuses: programs that forget, repeat or skip a part of the protocol.

#include <algorithm>

#include "tests/conformance/joinables.h"
#include "tests/conformance/programs.h"

namespace rollcall::golden {

namespace {

const Steps one_all_reduce{all_reduce_step(1)};

Scripted::Script one_each_way(const std::string& name = "s") {
  return {.forward = one_all_reduce, .main_hook = one_all_reduce, .name = name};
}

void no_joinables(CaseContext&) {
  Scope site("user.join_empty_list");
  Join join(Joinables({}));
}

// A subclass that never calls Joinable.__init__.
class Lazy final : public Tally {
 public:
  explicit Lazy(CaseContext& context) : Tally(context) { join_config.reset(); }
  // torch's message quotes Python's text for the class.
  std::string name() const override { return "<class 'cases.Lazy'>"; }
};

void forgot_init_outside(CaseContext& context) {
  Scope site("user.join_forgot_init_outside");
  Lazy tally(context);
  tally();
}

void forgot_init_inside(CaseContext& context) {
  Scope site("user.join_forgot_init_inside");
  Lazy tally(context);
  Join({tally}).run([&] { context.for_each_input([&] { tally(); }); });
  context.put("count", tally.count());
}

// The C++ compiler rejects a class without its overrides; the base hook's defaults remain.
void base_hook(CaseContext& context) {
  context.catching("base hook", [&] {
    JoinHook hook;
    hook.main_hook();
    context.put_none("main");
    hook.post_hook(true);
    context.put_none("post");
  });
}

void forgot_notify(CaseContext& context) {
  Scope site("user.forgot_notify");
  const Steps steps(static_cast<std::size_t>(context.params().integer("k")), all_reduce_step(1));
  Scripted scripted(context, {.forward = steps, .main_hook = steps, .notify = false});
  Join({scripted}).run([&] { context.for_each_marked_input([&] { scripted(); }); });
}

void double_notify(CaseContext& context) {
  Scope site("user.join_double_notify");
  Scripted scripted(context, one_each_way());
  Join({scripted}).run([&] {
    context.for_each_input([&] {
      Join::notify_join_context(scripted);
      scripted();
    });
  });
}

void first_skipped(CaseContext& context) {
  Scope site("user.join_first_skipped");
  const Steps two{all_reduce_step(2)};
  Scripted a(context, one_each_way("a"));
  Scripted b(context, {.forward = two, .main_hook = two, .name = "b"});
  Join({a, b}).run([&] {
    for (std::int64_t i = 0; i < context.inputs(); ++i) {
      context.mark("input " + std::to_string(i));
      if (i % 2 == 0) {
        a();
      }
      b();
    }
    context.mark("joined");
  });
}

// Python's KeyError prints its argument in quotes.
struct KeyError : Error {
  explicit KeyError(const std::string& key) : Error("KeyError", "'" + key + "'") {}
};

void body_exception(CaseContext& context) {
  Scope site("user.body_exception");
  std::vector<std::int64_t> raisers = context.params().integers("raisers");
  const bool raises = std::count(raisers.begin(), raisers.end(), context.rank()) > 0;
  Tally tally(context);
  // Python's `finally` also runs at the very end of a rank that hangs; here it runs only where the program ends.
  auto finally = [&] { context.put("count", tally.count()); };
  try {
    Join({tally}).run([&] {
      for (std::int64_t i = 0; i < 3; ++i) {
        context.mark("input " + std::to_string(i));
        if (i == 1 && raises) {
          throw KeyError("bad sample");
        }
        tally();
      }
      context.mark("joined");
    });
  } catch (const Error&) {
    finally();
    throw;
  } finally();
}

class BadHook final : public Tally {
 public:
  using Tally::Tally;
  std::unique_ptr<JoinHook> join_hook(const Kwargs&) override {
    struct Breaking final : JoinHook {
      void main_hook() override { throw ValueError("main hook broke"); }
    };
    return std::make_unique<Breaking>();
  }
};

void main_hook_raises(CaseContext& context) {
  Scope site("user.join_main_hook_raises");
  BadHook tally(context);
  Join({tally}).run([&] { context.for_each_input([&] { tally(); }); });
}

void unshadowed_user_op(CaseContext& context) {
  Scope site("user.join_unshadowed_user_op");
  Tally tally(context);
  Join({tally}).run([&] {
    context.for_each_input([&] {
      tally();
      Tensor loss = Tensor::full({1}, 10.0);
      all_reduce(loss);
      context.add("loss", loss);
    });
    context.mark("joined");
  });
  context.put("count", tally.count());
}

void device_meta(CaseContext& context) {
  Scope site("user.join_device_meta");
  Scripted::Script script = one_each_way();
  script.device = context.rank() == 1 ? Device{DeviceType::meta, 0} : cpu_device;
  Scripted scripted(context, script);
  Join({scripted}).run([&] { context.for_each_input([&] { scripted(); }); });
}

void device_cuda(CaseContext& context) {
  Scope site("user.join_device_cuda");
  Scripted::Script script = one_each_way();
  script.device = {DeviceType::cuda, 0};
  Scripted scripted(context, script);
  Join({scripted}).run([&] { scripted(); });
}

}  // namespace

std::span<const NamedProgram> join_misuse_programs() {
  static const NamedProgram table[] = {
      {"join_empty_list", no_joinables},
      {"join_forgot_init_outside", forgot_init_outside},
      {"join_forgot_init_inside", forgot_init_inside},
      {"join_abstract", base_hook},
      {"join_forgot_notify_*", forgot_notify},
      {"join_double_notify", double_notify},
      {"join_first_skipped", first_skipped},
      {"join_body_exception_*", body_exception},
      {"join_main_hook_raises", main_hook_raises},
      {"join_unshadowed_user_op", unshadowed_user_op},
      {"join_device_meta", device_meta},
      {"join_device_cuda", device_cuda},
  };
  return table;
}

}  // namespace rollcall::golden
