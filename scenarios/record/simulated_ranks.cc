#include "scenarios/record/simulated_ranks.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "scenarios/record/rank_link.h"
#include "scenarios/record/script_calls.h"
#include "sim/base/error.h"
#include "sim/c10d/backend_traits.h"
#include "sim/c10d/rank_context.h"
#include "sim/engine/simulate.h"
#include "sim/torch/torch_traits.h"
#include "traces/values/json_value.h"
#include "traces/values/value_access.h"

namespace rollcall::scenario {
namespace {

using traces::ScriptCall;
using traces::Value;

constexpr std::size_t line_bytes_max = std::size_t{64} << 20;

// An error on its way to the script.
struct Failure {
  std::string type;
  std::string message;
};

std::string answer_of(const Failure& failure) {
  const nlohmann::json answer = {{"error", failure.type}, {"message", failure.message}};
  return answer.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

// Runs `part`, which may park the rank; what it throws is returned, for nothing that parks may run in a handler.
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
  explicit RankServer(RankLink& link) : link_(link) {}

  // Until the rank has gone.
  void serve() {
    while (const std::optional<std::string> line = link_.line()) {
      arena_.reset();
      answer(traces::read_json(*line, arena_));
    }
  }

 private:
  using Ticket = std::int64_t;
  struct Issued {
    ScriptCalls::Pending pending;
    std::optional<Failure> failure;
  };

  void answer(const Value& message) {
    if (find(message, "call") != nullptr) {
      calls_.push_back(traces::script_call(message));
    } else if (const Value* issue = find(message, "issue")) {
      const std::string payload = link_.bytes(traces::count_or(find(message, "bytes"), 0));
      Issued issued;
      issued.failure = failure_of([&] { issued.pending = made_.issue(call(issue), payload); });
      issued_.emplace(traces::count_or(find(message, "ticket"), 0), std::move(issued));
    } else if (find(message, "batch") != nullptr) {
      issue_batch(message);
    } else if (const Value* ticket = find(message, "finish")) {
      finish(traces::count_or(ticket, 0));
    } else if (const Value* host = find(message, "host")) {
      const ScriptCall& made = call(host);
      const std::optional<Failure> failure = failure_of([&] { made_.manage(made); });
      link_.say(failure ? answer_of(*failure) : R"({"bytes":0})");
    }
  }

  void issue_batch(const Value& message) {
    std::vector<const ScriptCall*> calls;
    std::vector<std::string> payloads;
    const auto [numbers, count] = traces::items_of(find(message, "batch"));
    const auto [sizes, size_count] = traces::items_of(find(message, "bytes"));
    const auto [tickets, ticket_count] = traces::items_of(find(message, "tickets"));
    for (std::uint32_t i = 0; i < count && i < size_count && i < ticket_count; ++i) {
      calls.push_back(&call(&numbers[i]));
      payloads.push_back(link_.bytes(traces::count_or(&sizes[i], 0)));
    }
    std::vector<ScriptCalls::Pending> pending;
    const std::optional<Failure> failure = failure_of([&] { pending = made_.issue_batch(calls, payloads); });
    for (std::uint32_t i = 0; i < calls.size(); ++i) {
      issued_.emplace(traces::count_or(&tickets[i], 0),
                      Issued{failure ? ScriptCalls::Pending{} : std::move(pending[i]), failure});
    }
  }

  void finish(Ticket ticket) {
    const auto found = issued_.find(ticket);
    if (found == issued_.end()) {
      link_.say(answer_of({"RuntimeError", "rollcall: waits for a call that was never made"}));
      return;
    }
    Issued issued = std::move(found->second);
    issued_.erase(found);
    std::string bytes;
    if (!issued.failure) {
      issued.failure = failure_of([&] { bytes = ScriptCalls::finish(issued.pending); });
    }
    if (issued.failure) {
      link_.say(answer_of(*issued.failure));
    } else {
      link_.say(fmt::format(R"({{"bytes":{}{}}})", bytes.size(), source_of(issued.pending)), bytes);
    }
  }

  static std::string source_of(const ScriptCalls::Pending& pending) {
    if (!pending.is_receive_from_anybody) {
      return {};
    }
    return fmt::format(R"(,"source":{})", this_rank().backend->source_of(pending.work));
  }

  const ScriptCall& call(const Value* number) const {
    const std::int64_t index = traces::number_or(number, -1);
    if (index < 0 || index >= static_cast<std::int64_t>(calls_.size())) {
      throw traces::BadFile(0, fmt::format("call {} was not described", index));
    }
    return calls_[static_cast<std::size_t>(index)];
  }

  RankLink& link_;
  traces::Arena arena_{line_bytes_max};
  std::vector<ScriptCall> calls_;
  ScriptCalls made_;
  std::map<Ticket, Issued> issued_;
};

// What the rank's script runs on: known when it has initialized its job. Empty when it ends without.
struct Job {
  std::string backend;
  std::string torch;
};

Job job_of(RankLink& link) {
  traces::Arena arena(line_bytes_max);
  while (const std::optional<std::string> line = link.line()) {  // nothing comes before it
    arena.reset();
    const Value said = traces::read_json(*line, arena);
    if (const Value* init = find(said, "init")) {
      return {std::string(traces::text_or_empty(init)),
              std::string(traces::text_or_empty(find(said, "torch")))};
    }
  }
  return {};
}

// The backend on GPUs, where ranks differ. Ranks that do not come to it become silent.
sim::Options options_of_job(std::vector<RankLink>& links, RankSet& silent) {
  sim::Options options{.world_size = static_cast<Rank>(links.size())};
  std::string_view backend = default_backend(DeviceType::cpu).name;
  for (std::size_t rank = 0; rank < links.size(); ++rank) {
    try {
      const Job job = job_of(links[rank]);
      const BackendTraits* own = find_backend_traits(job.backend);
      options.torch = nearest_torch_release(job.torch).value_or(options.torch);
      backend = own != nullptr && own->device == DeviceType::cuda ? own->name : backend;
    } catch (const RankIsSilent&) {
      silent.insert(static_cast<Rank>(rank));
    }
  }
  options.backend = backend;
  return options;
}

}  // namespace

SimulatedRanks simulate_ranks(std::vector<real::Descriptor> connections, std::chrono::milliseconds patience) {
  std::vector<RankLink> links;
  for (real::Descriptor& connection : connections) {
    links.emplace_back(std::move(connection), patience);
  }
  SimulatedRanks result;
  try {
    const sim::Options options = options_of_job(links, result.silent);
    Rank ended = 0;
    sim::run_once(options, [&](Rank rank) {
      if (!result.silent.empty() || !result.problem.empty()) {
        return;
      }
      try {
        RankServer(links[static_cast<std::size_t>(rank)]).serve();
        ++ended;
      } catch (const RankIsSilent&) {
        result.silent.insert(rank);
      } catch (const ProcessKilled& killed) {
        links[static_cast<std::size_t>(rank)].say(fmt::format(R"({{"killed":"{}"}})", killed.signal));
        ++ended;
        throw;
      } catch (const traces::BadFile& problem) {
        result.problem = fmt::format("rank {}: {}", rank, problem.what());
      }
    });
    result.stands_still = ended < options.world_size && result.silent.empty() && result.problem.empty();
  } catch (const traces::BadFile& problem) {
    result.problem = problem.what();
  }
  return result;
}

}  // namespace rollcall::scenario
