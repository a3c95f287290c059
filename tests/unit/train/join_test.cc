// Join's protocol from one rank's side: what it issues, given the answers of the other ranks.
// tests/conformance/golden_test.cc tests how ranks work together.

#include <memory>
#include <string>
#include <vector>

#include "sim/train/join.h"
#include "tests/catch.h"
#include "tests/unit/c10d/fake_rank.h"

namespace rollcall::join_test {

namespace {

using test::FakeRank;
using Names = std::vector<std::string>;

// Notes the calls of its hook. Communicates only through Join.
class Probe final : public Joinable {
 public:
  explicit Probe(std::string name = "probe", ProcessGroup group = {}, Device device = {})
      : name_(std::move(name)), group_(group), device_(device) {}

  std::unique_ptr<JoinHook> join_hook(const Kwargs& given) override {
    struct Hook final : JoinHook {
      explicit Hook(Probe& probe) : owner(probe) {}
      void main_hook() override { owner.note("main"); }
      void post_hook(bool is_last_joiner) override { owner.note(is_last_joiner ? "post last" : "post"); }
      Probe& owner;
    };
    kwargs = given;
    return std::make_unique<Hook>(*this);
  }
  Device join_device() const override { return device_; }
  ProcessGroup join_process_group() const override { return group_ ? group_ : world(); }
  std::string name() const override { return name_; }

  void operator()() { Join::notify_join_context(*this); }
  // Several probes can share one diary.
  void note(const std::string& what) { diary->push_back(name_ + " " + what); }

  Kwargs kwargs;
  std::shared_ptr<Names> diary = std::make_shared<Names>();

 private:
  std::string name_;
  ProcessGroup group_;
  Device device_;
};

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return std::string(error.type()) + ": " + error.what();
  }
  return "nothing thrown";
}

}  // namespace

TEST_CASE("an active rank announces itself with an asynchronous all_reduce of one") {
  FakeRank rank;
  rank.answers = {2, 0};
  Probe probe;
  Join({probe}).run([&] { probe(); });
  REQUIRE(rank.issued.size() == 2);
  CHECK(describe(rank.issued[0]) == "all_reduce(numel=1, float32, SUM)");
  CHECK(rank.issued[0].async_op);
  CHECK(rank.sent[0] == 1);
  CHECK(rank.scopes() == Names{"join.notify", "join.count"});
  CHECK(rank.waited == std::vector<std::int64_t>{1});  // nothing waits for the announcement
}

TEST_CASE("the announcement's Work is returned, for the gradients of DDP to divide by") {
  FakeRank rank;
  rank.answers = {2};
  Probe probe;
  Join join({probe});
  Join::notify_join_context(probe).wait();
  CHECK(rank.waited == std::vector<std::int64_t>{0});
}

TEST_CASE("only the first joinable announces the rank") {
  FakeRank rank;
  rank.answers = {2, 0};
  Probe first("first");
  Probe other("second");
  Join({first, other}).run([&] {
    other();
    first();
    other();
  });
  CHECK(rank.scopes() == Names{"join.notify", "join.count"});
}

TEST_CASE("a joinable outside every context announces nothing") {
  FakeRank rank;
  Probe probe;
  probe();
  CHECK(rank.issued.empty());
}

TEST_CASE("a joined rank counts the active ones and shadows each of their iterations") {
  FakeRank rank;
  rank.answers = {2, 1, 1, 0};  // notify, then three counts
  Probe probe;
  Join({probe}).run([&] { probe(); });
  CHECK(rank.scopes() == Names{"join.notify", "join.count", "join.count", "join.count"});
  CHECK(rank.sent == std::vector<double>{1, 0, 0, 0});
  CHECK_FALSE(rank.issued[1].async_op);
  CHECK(*probe.diary == Names{"probe main", "probe main", "probe post"});
}

TEST_CASE("hooks run in the order of the list") {
  FakeRank rank;
  rank.answers = {1, 0};
  Probe first("first");
  Probe other("second");
  other.diary = first.diary;
  Join({first, other}).run([] {});
  CHECK(*first.diary == Names{"first main", "second main", "first post", "second post"});
}

TEST_CASE("a rank is a last joiner when its very first count is zero") {
  FakeRank rank;
  rank.answers = {0};
  Probe probe;
  Join({probe}).run([] {});
  CHECK(*probe.diary == Names{"probe post last"});
}

TEST_CASE("a disabled context communicates nothing and runs no hook") {
  FakeRank rank;
  Probe probe;
  Join({probe}, {.enable = false}).run([&] { probe(); });
  CHECK(rank.issued.empty());
  CHECK(probe.diary->empty());

  Join({probe}, {.enable = false, .throw_on_early_termination = true}).run([&] { probe(); });
  CHECK(rank.issued.empty());  // throwing needs enable
}

TEST_CASE("in throwing mode an active rank also asks whether anybody has run out") {
  FakeRank rank;
  rank.answers = {2, 0, 0};
  Probe probe;
  Join({probe}, {.throw_on_early_termination = true}).run([&] { probe(); });
  CHECK(rank.scopes() == Names{"join.notify", "join.notify", "join.count"});
  CHECK(rank.sent == std::vector<double>{1, 0, 0});
  CHECK(rank.waited == std::vector<std::int64_t>{1, 2});
}

TEST_CASE("in throwing mode an active rank throws when another one has run out") {
  FakeRank rank;
  rank.answers = {1, 1};
  Probe probe;
  Join join({probe}, {.throw_on_early_termination = true});
  CHECK(message_of([&] { join.run([&] { probe(); }); }) ==
        "RuntimeError: Detected at least one rank that exhausted inputs. Throwing across all ranks.");
  CHECK(rank.issued.size() == 2);  // it leaves without counting
  CHECK(probe.diary->empty());
}

TEST_CASE("in throwing mode the rank that runs out tells the others, then throws") {
  FakeRank rank(1);
  rank.answers = {1, 1};
  Probe probe;
  Join join({probe}, {.throw_on_early_termination = true});
  CHECK(message_of([&] { join.run([] {}); }) == "RuntimeError: Rank 1 exhausted all inputs.");
  CHECK(rank.scopes() == Names{"join.count", "join.terminate"});
  CHECK(rank.sent == std::vector<double>{0, 1});
  CHECK(probe.diary->empty());  // neither hook
}

TEST_CASE("in throwing mode nobody throws when all run out together") {
  FakeRank rank;
  rank.answers = {0};
  Probe probe;
  Join({probe}, {.throw_on_early_termination = true}).run([] {});
  CHECK(*probe.diary == Names{"probe post last"});
}

TEST_CASE("the message of a throwing rank names it by its number in the join group") {
  FakeRank rank(1, 3);
  rank.add_group("later", {1, 2});
  rank.answers = {1, 1};
  Probe probe("probe", rank.find_group("later"));
  Join join({probe}, {.throw_on_early_termination = true});
  CHECK(message_of([&] { join.run([] {}); }) == "RuntimeError: Rank 0 exhausted all inputs.");
}

TEST_CASE("an exception in the body leaves without telling anybody") {
  FakeRank rank;
  Probe probe;
  Join join({probe});
  CHECK(message_of([&] { join.run([] { throw ValueError("bad sample"); }); }) == "ValueError: bad sample");
  CHECK(rank.issued.empty());
  CHECK(probe.diary->empty());
}

TEST_CASE("a context without joinables is refused") {
  FakeRank rank;
  CHECK(message_of([] { Join join(Joinables({})); }) ==
        "ValueError: The join context manager requires at least one joinable");
}

TEST_CASE("joinables on different groups are refused, and stay configured") {
  FakeRank rank;
  rank.add_group("other", {0, 1});
  Probe first("first");
  Probe other("second", rank.find_group("other"));
  CHECK(message_of([&] {
          Join join({first, other});
        }) == "ValueError: Using join context manager with multiple process groups");
  CHECK(first.join_config == Joinable::Config{true, false, true});
  CHECK(other.join_config == Joinable::Config{true, false, false});
}

TEST_CASE("making a context communicates nothing") {
  FakeRank rank;
  Probe probe;
  Join join({probe});
  CHECK(rank.issued.empty());
}

TEST_CASE("a joinable still announces its rank after its context has ended") {
  FakeRank rank;
  rank.answers = {0};
  Probe probe;
  Join({probe}).run([] {});
  probe();
  CHECK(rank.scopes() == Names{"join.count", "join.notify"});
}

TEST_CASE("a second context replaces what the first one configured") {
  FakeRank rank;
  Probe first("first");
  Probe other("second");
  Join({first}, {.throw_on_early_termination = true});
  Join({other, first}, {.enable = false});
  CHECK(first.join_config == Joinable::Config{false, false, false});
}

TEST_CASE("a subclass that forgot the base constructor is told so, unless a context came first") {
  FakeRank rank;
  Probe probe("Forgetful");
  probe.join_config.reset();
  CHECK(message_of([&] { probe(); }) ==
        "AssertionError: Check that the Forgetful constructor calls the ``Joinable`` constructor");
  Join join({probe});
  probe();
  CHECK(rank.scopes() == Names{"join.notify"});
}

TEST_CASE("every joinable gets the same keyword arguments") {
  FakeRank rank;
  rank.answers = {0};
  Probe first("first");
  Probe other("second");
  Join({first, other}, {.kwargs = {{"sync", true}, {"label", std::string("hello")}}}).run([] {});
  CHECK(first.kwargs == other.kwargs);
  CHECK(get_or(first.kwargs, "sync", false));
  CHECK(get_or(first.kwargs, "label", std::string()) == "hello");
  CHECK(get_or(first.kwargs, "missing", std::int64_t{7}) == 7);
}

TEST_CASE("a keyword argument of another type is an error of the program") {
  Kwargs kwargs{{"sync", std::string("yes")}};
  CHECK_THROWS_AS(get_or(kwargs, "sync", false), TypeError);
}

TEST_CASE("Join's own collectives run on the first joinable's device and group") {
  FakeRank rank(0, 3);
  rank.add_group("pair", {0, 2});
  rank.answers = {2, 0};
  ProcessGroup pair = rank.find_group("pair");
  Probe first("first", pair, {DeviceType::cuda, 1});
  Probe other("second", pair, {DeviceType::cuda, 2});
  Join join({first, other});
  CHECK(join.device() == Device{DeviceType::cuda, 1});
  join.run([&] { first(); });
  REQUIRE(rank.issued.size() == 2);
  for (const Op& op : rank.issued) {
    CHECK(op.device == Device{DeviceType::cuda, 1});
    CHECK(op.group == pair.id());
  }
}

TEST_CASE("a skew above 1000 is warned about once") {
  const std::string warning =
      "Detected uneven input skew of greater than 1000. This means that rank 0 has at least 1000 fewer "
      "inputs than other currently-active ranks. This level of skew could lead to performance degradation "
      "during training.";
  FakeRank rank;
  Probe probe;

  rank.answers.assign(1000, 1);
  rank.answers.push_back(0);
  Join({probe}).run([] {});
  CHECK(rank.warnings.empty());

  for (int repeat = 0; repeat < 2; ++repeat) {
    rank.answers.assign(1001, 1);
    rank.answers.push_back(0);
    Join({probe}).run([] {});
    CHECK(rank.warnings.size() == 1);
  }
  CHECK(rank.warnings.front().ends_with(warning));
}

TEST_CASE("Join's all_reduces pair with each other and with nothing else") {
  FakeRank rank;
  rank.answers = {2, 0};
  Probe probe;
  Join({probe}).run([&] { probe(); });
  const ScopeTable& table = rank.scope_table();
  Pairing notify = table.pairing(rank.issued[0].scope);
  Pairing count = table.pairing(rank.issued[1].scope);
  CHECK(may_pair(notify, count));
  CHECK_FALSE(may_pair(notify, table.pairing(no_scope)));
}

}  // namespace rollcall::join_test
