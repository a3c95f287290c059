#include "scenarios/record/simulated_ranks.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "scenarios/record/job_start.h"
#include "scenarios/record/rank_link.h"
#include "scenarios/record/rank_messages.h"
#include "scenarios/record/script_calls.h"
#include "sim/base/error.h"
#include "sim/c10d/backend_traits.h"
#include "sim/c10d/collectives.h"
#include "sim/c10d/rank_context.h"
#include "sim/c10d/scope.h"
#include "sim/engine/simulate.h"
#include "traces/values/json_value.h"
#include "traces/values/value_access.h"

namespace rollcall::scenario {
namespace {

using traces::ScriptCall;
using traces::ScriptEnd;
using traces::ScriptSite;
using traces::Value;

// A rank that was told this often that nothing can move, and has not ended, never will.
constexpr int last_resorts_max = 1000;

// Thrown for a rank that will not end.
struct RankGoesOnForEver {};

// State that the ranks share.
struct Story {
  bool is_settled = false;  // nothing can move: from here on, ranks notice it as real ones would
  bool all_have_initialized = true;
};

// Runs `part`, which may park the rank, and returns what it throws, because a handler must not park.
template <typename Part>
std::optional<Failure> failure_of(Part&& part) {
  try {
    part();
  } catch (const Error& error) {
    return Failure{error.type(), error.what()};
  }
  return std::nullopt;
}

// One rank's side, on its fiber.
class RankServer {
 public:
  // `folder`: the folder in which the script was started; places in it are relative to it. `record`: the
  // rank's own. `compares`: calls are compared between ranks before they run.
  RankServer(RankLink& link, RankStart start, std::string folder, std::string record, bool compares,
             const Story& story)
      : link_(link),
        begun_(std::move(start)),
        folder_(std::move(folder) + "/"),
        record_(std::move(record)),
        compares_(compares),
        story_(story) {}

  // Serves until the rank ends, in the way that its record says. Throws what the script did not catch.
  void serve() {
    begin();
    while (const std::optional<std::string> line = next_line()) {
      arena_.reset();
      answer(traces::read_json(*line, arena_));
    }
    end_ = traces::last_script_end(record_);
    if (end_.how == ScriptEnd::How::raised) {
      raise(Error(end_.type.c_str(), end_.message), site_of(end_.site));
    }
    if (end_.how == ScriptEnd::How::unknown && last_resort_) {
      raise(Error(last_resort_->type.c_str(), last_resort_->message), {});
    }
    if (end_.how == ScriptEnd::How::unknown) {
      throw ProcessKilled{"an early exit"};
    }
  }

 private:
  using Ticket = std::int64_t;
  struct Issued {
    ScriptCalls::Pending pending;
    std::optional<Failure> failure;
    bool refused = false;  // before another rank could notice the call
  };

  // The simulation stands while a rank that is not in a call computes. A rank that is blocked instead may need what
  // another one holds, such as a lock on a file, so it lets the others go on.
  std::optional<std::string> next_line() {
    while (!link_.comes()) {
      this_rank().backend->compute(sim::until_next_event);
    }
    return link_.line();
  }

  void answer(const Value& message) {
    if (const Value* seconds = find(message, "sleep")) {  // not a call: a rank that polls a file makes none
      this_rank().backend->compute(duration_of(traces::real_or(seconds, 0)));
      succeed({});
      return;
    }
    if (const Value* tickets = find(message, "drop")) {
      drop(*tickets);
      return;
    }
    link_.has_called();
    if (find(message, "call") != nullptr) {
      calls_.push_back(traces::script_call(message));
      this_rank().has_threads = this_rank().has_threads || calls_.back().is_aside;
      shorten(calls_.back().site);
    } else if (const Value* issue = find(message, "issue")) {
      const std::string payload = link_.bytes(traces::count_or(find(message, "bytes"), 0));
      Issued issued;
      const ScriptCall& made = call(issue);
      issued.failure = failure_of([&] { issued.pending = made_.issue(made, payload); });
      issued.refused = issued.failure && !story_.is_settled && !may_involve_others(made);
      const bool blocks = traces::count_or(find(message, "blocks"), 0) != 0;
      if (!blocks) {
        confirm(issued.failure, issued.refused);
      }
      if (blocks || !issued.failure) {
        issued_.emplace(traces::count_or(find(message, "ticket"), 0), std::move(issued));
      }
    } else if (find(message, "batch") != nullptr) {
      issue_batch(message);
    } else if (const Value* tickets = find(message, "finish")) {
      finish_one_of(*tickets);
    } else if (const Value* host = find(message, "host")) {
      const ScriptCall& made = call(host);
      const std::optional<Failure> failure = failure_of([&] { made_.manage(made); });
      confirm(failure);
    } else if (find(message, "store") != nullptr) {
      answer_store(store_question(message));
    } else if (find(message, "init") != nullptr) {
      meet(traces::script_site(find(message, "site")));
    }
  }

  void answer_store(StoreQuestion question) {
    StoreCall& call = question.call;
    call.op.rank = this_rank().rank;
    store_sites_.push_back(std::move(question.site));
    call.op.site = site_of(store_sites_.back());
    StoreReply reply;
    if (const std::optional<Failure> failure =
            failure_of([&] { reply = this_rank().backend->store(call); })) {
      fail(*failure);
    } else {
      succeed(store_answer(reply));
    }
  }

  // Goes on where the rank was when the simulation began.
  void begin() {
    if (begun_.waits) {
      answer_store(*std::move(begun_.waits));
    }
    if (begun_.has_initialized) {
      meet(begun_.init_site);
    }
  }

  // init_process_group waits for every rank of the job.
  void meet(const ScriptSite& site) {
    std::optional<Failure> failure;
    if (!story_.all_have_initialized && !std::exchange(has_met_, true)) {
      store_sites_.push_back(site);
      const Site place = site_of(store_sites_.back());
      const Scope scope("init_process_group");
      failure = failure_of([&] { barrier({}, place).wait(); });
    }
    confirm(failure);
  }

  void confirm(const std::optional<Failure>& failure, bool refused = false) {
    if (failure) {
      fail(*failure, refused);
    } else {
      succeed({});
    }
  }

  void fail(const Failure& failure, bool refused = false, Ticket ticket = 0) {
    if (story_.is_settled) {
      last_resort_ = failure;
      if (++last_resorts_ > last_resorts_max) {
        throw RankGoesOnForEver{};
      }
    }
    link_.say(failure_line(failure, {refused, ticket, story_.is_settled}));
  }

  // Includes the results of calls that the script does not wait for, or not yet.
  void succeed(nlohmann::json answer, std::string bytes = {}) {
    answer["bytes"] = bytes.size();
    for (auto issued = issued_.begin(); issued != issued_.end();) {
      ScriptCalls::Pending& pending = issued->second.pending;
      if (issued->second.failure || pending.work.is_nothing() || !pending.work.is_completed() ||
          may_be_dropped(pending)) {
        ++issued;
        continue;
      }
      std::string result;
      issued->second.failure = failure_of([&] { result = ScriptCalls::finish(pending); });
      if (issued->second.failure) {
        ++issued;  // the wait for it reports it
        continue;
      }
      nlohmann::json entry = {issued->first, result.size()};
      if (pending.is_receive_from_anybody) {
        entry.push_back(this_rank().backend->source_of(pending.work));
      }
      answer["also"].push_back(std::move(entry));
      bytes += result;
      issued = issued_.erase(issued);
    }
    link_.say(answer.dump(), bytes);
  }

  // True if making the call, before any wait for it, depends on other ranks.
  bool may_involve_others(const ScriptCall& made) const {
    return compares_ || !is_at_home(made) || made.op == to_string(OpKind::monitored_barrier);
  }

  void issue_batch(const Value& message) {
    std::vector<const ScriptCall*> calls;
    std::vector<std::string> payloads;
    const std::span<const Value> numbers = traces::items_of(find(message, "batch"));
    const std::span<const Value> sizes = traces::items_of(find(message, "bytes"));
    const std::span<const Value> tickets = traces::items_of(find(message, "tickets"));
    for (std::size_t i = 0; i < std::min({numbers.size(), sizes.size(), tickets.size()}); ++i) {
      calls.push_back(&call(&numbers[i]));
      payloads.push_back(link_.bytes(traces::count_or(&sizes[i], 0)));
    }
    std::vector<ScriptCalls::Pending> pending;
    const std::optional<Failure> failure = failure_of([&] { pending = made_.issue_batch(calls, payloads); });
    confirm(failure, failure && !compares_);
    for (std::uint32_t i = 0; i < pending.size(); ++i) {
      issued_.emplace(traces::count_or(&tickets[i], 0), Issued{std::move(pending[i]), {}, false});
    }
  }

  // Each waiting thread of the rank waits for one call. The first to complete is answered.
  void finish_one_of(const Value& tickets) {
    std::vector<std::map<Ticket, Issued>::iterator> awaited;
    for (const Value& ticket : traces::items_of(&tickets)) {
      awaited.push_back(issued_.find(traces::count_or(&ticket, 0)));
    }
    if (awaited.empty() || std::ranges::find(awaited, issued_.end()) != awaited.end()) {
      throw traces::BadFile(0, "waits for a call that was never made");
    }
    auto over = std::ranges::find_if(awaited, is_over);
    if (over == awaited.end() && awaited.size() > 1) {
      std::vector<Work> works;
      std::ranges::transform(awaited, std::back_inserter(works),
                             [](const auto& issued) { return issued->second.pending.work; });
      std::optional<Failure> failure = failure_of([&] { this_rank().backend->wait_any(works); });
      over = std::ranges::find_if(awaited, is_over);
      if (failure && over == awaited.end()) {
        awaited.front()->second.failure =
            std::move(failure);  // reports show the rank as blocked in this first call
      }
    }
    finish(over == awaited.end() ? awaited.front() : *over);
  }

  static bool is_over(const std::map<Ticket, Issued>::iterator& issued) {
    const Work& work = issued->second.pending.work;
    return issued->second.failure || work.is_nothing() || work.is_completed();
  }

  void finish(std::map<Ticket, Issued>::iterator found) {
    const Ticket ticket = found->first;
    Issued issued = std::move(found->second);
    issued_.erase(found);
    std::string bytes;
    if (!issued.failure) {
      issued.failure = failure_of([&] { bytes = ScriptCalls::finish(issued.pending); });
    }
    if (issued.failure) {
      fail(*issued.failure, issued.refused, ticket);
      return;
    }
    nlohmann::json answer = {{"ticket", ticket}};
    if (issued.pending.is_receive_from_anybody) {
      answer["source"] = this_rank().backend->source_of(issued.pending.work);
    }
    succeed(std::move(answer), std::move(bytes));
  }

  // A send on gloo brings no results, and until the script waits for it, it may let go of its handle.
  static bool may_be_dropped(const ScriptCalls::Pending& pending) {
    return pending.work.is_point_to_point() && pending.filled.empty() &&
           !this_rank().backend->traits().queues_calls;
  }

  void drop(const Value& tickets) {
    bool is_lost = false;
    for (const Value& ticket : traces::items_of(&tickets)) {
      if (const auto issued = issued_.extract(traces::count_or(&ticket, 0))) {
        is_lost |= this_rank().backend->drop(issued.mapped().pending.work);
      }
    }
    succeed({{"lost", is_lost}});
  }

  const ScriptCall& call(const Value* number) const {
    const std::int64_t index = traces::number_or(number, -1);
    if (index < 0 || index >= static_cast<std::int64_t>(calls_.size())) {
      throw traces::BadFile(0, fmt::format("call {} was not described", index));
    }
    return calls_[static_cast<std::size_t>(index)];
  }

  void shorten(ScriptSite& site) const {
    if (site.file.starts_with(folder_)) {
      site.file.erase(0, folder_.size());
    }
  }

  Site site_of(ScriptSite& site) const {
    shorten(site);
    return line_of(site);
  }

  RankLink& link_;
  RankStart begun_;
  bool has_met_ = false;  // in init_process_group
  std::string folder_;
  std::string record_;
  bool compares_;
  const Story& story_;
  std::optional<Failure> last_resort_;
  int last_resorts_ = 0;
  traces::Arena arena_{line_bytes_max};
  std::deque<ScriptSite> store_sites_;  // like those of the calls
  std::deque<ScriptCall> calls_;        // the run's evidence names places in them
  traces::ScriptEnd end_;               // likewise
  ScriptCalls made_;
  std::map<Ticket, Issued> issued_;
};

}  // namespace

SimulatedRanks simulate_ranks(std::vector<real::Descriptor> connections, const std::string& records,
                              Rank ranks_per_host, std::chrono::milliseconds patience, bool timeline) {
  std::vector<RankLink> links;
  for (real::Descriptor& connection : connections) {
    links.emplace_back(std::move(connection), patience);
  }
  const std::string folder = traces::root_of_places(std::filesystem::current_path());
  SimulatedRanks result;
  try {
    JobStart start = start_job(links);
    result.silent = start.silent;
    sim::Options options = std::move(start.options);
    options.may_run_again = false;  // it is run by processes that have ended
    options.ranks_per_host = ranks_per_host;
    options.timeline = timeline;
    Story story{.all_have_initialized = start.all_have_initialized()};
    options.on_settled = [&](std::span<const RankClass::State>) { story.is_settled = true; };
    std::deque<RankServer> servers;
    for (std::size_t rank = 0; rank < links.size(); ++rank) {
      servers.emplace_back(links[rank], std::move(start.ranks[rank]), folder,
                           fmt::format("{}/rank{}.jsonl", records, rank),
                           options.debug == sim::DebugLevel::detail, story);
    }
    Rank ended = 0;
    result.report = sim::run(options, [&](Rank rank) {
      if (!result.silent.empty() || !result.problem.empty()) {
        return;
      }
      try {
        servers[static_cast<std::size_t>(rank)].serve();
        ++ended;
      } catch (const RankIsSilent&) {
        result.silent.insert(rank);
      } catch (const RankGoesOnForEver&) {  // it is ended from outside, like a rank that waits
      } catch (const ProcessKilled& killed) {
        links[static_cast<std::size_t>(rank)].say(death_line(killed));
        ++ended;
        throw;
      } catch (const traces::BadFile& problem) {
        result.problem = fmt::format("rank {}: {}", rank, problem.what());
      } catch (const Error&) {
        ++ended;
        throw;
      }
    });
    const bool all_ended = ended == options.world_size;
    result.stands_still = !all_ended && result.silent.empty() && result.problem.empty();
  } catch (const traces::BadFile& problem) {
    result.problem = problem.what();
  }
  return result;
}

}  // namespace rollcall::scenario
