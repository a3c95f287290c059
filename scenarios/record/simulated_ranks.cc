#include "scenarios/record/simulated_ranks.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "scenarios/record/rank_link.h"
#include "scenarios/record/script_calls.h"
#include "sim/base/error.h"
#include "sim/c10d/backend_traits.h"
#include "sim/c10d/host_calls.h"
#include "sim/c10d/rank_context.h"
#include "sim/engine/simulate.h"
#include "sim/torch/torch_traits.h"
#include "traces/values/json_value.h"
#include "traces/values/value_access.h"

namespace rollcall::scenario {
namespace {

using traces::ScriptCall;
using traces::ScriptEnd;
using traces::ScriptSite;
using traces::Value;

constexpr std::size_t line_bytes_max = std::size_t{64} << 20;

// An error on its way to the script.
struct Failure {
  std::string type;
  std::string message;
};

// `refused`: the call did not reach anybody else.
std::string answer_of(const Failure& failure, bool refused = false) {
  const nlohmann::json answer = {{"error", failure.type}, {"message", failure.message}, {"refused", refused}};
  return answer.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

// Values of the store may be any bytes, and lines are text.
std::string to_hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return text;
}

std::string from_hex(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    unsigned value = 0;
    std::from_chars(text.data() + i, text.data() + i + 2, value, 16);
    bytes += static_cast<char>(value);
  }
  return bytes;
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
  // `folder`: where the script was started; places in it are named from there. `record`: the rank's own.
  // `compares`: calls are compared between ranks before they run.
  RankServer(RankLink& link, std::string folder, std::string record, bool compares)
      : link_(link), folder_(std::move(folder) + "/"), record_(std::move(record)), compares_(compares) {}

  // Until the rank has gone, in the way that its record says. Throws what the script did not catch.
  void serve() {
    while (const std::optional<std::string> line = link_.line()) {
      arena_.reset();
      answer(traces::read_json(*line, arena_));
    }
    end_ = traces::last_script_end(record_);
    if (end_.how == ScriptEnd::How::raised) {
      raise(Error(end_.type.c_str(), end_.message), site_of(end_.site));
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
    bool refused = false;  // before anybody else could notice the call
  };

  void answer(const Value& message) {
    if (find(message, "call") != nullptr) {
      calls_.push_back(traces::script_call(message));
      shorten(calls_.back().site);
    } else if (const Value* issue = find(message, "issue")) {
      const std::string payload = link_.bytes(traces::count_or(find(message, "bytes"), 0));
      Issued issued;
      const ScriptCall& made = call(issue);
      issued.failure = failure_of([&] { issued.pending = made_.issue(made, payload); });
      issued.refused = issued.failure && !may_involve_others(made);
      issued_.emplace(traces::count_or(find(message, "ticket"), 0), std::move(issued));
    } else if (find(message, "batch") != nullptr) {
      issue_batch(message);
    } else if (const Value* ticket = find(message, "finish")) {
      finish(traces::count_or(ticket, 0));
    } else if (const Value* host = find(message, "host")) {
      const ScriptCall& made = call(host);
      const std::optional<Failure> failure = failure_of([&] { made_.manage(made); });
      link_.say(failure ? answer_of(*failure) : R"({"bytes":0})");
    } else if (const Value* kind = find(message, "store")) {
      ask_store(traces::text_or_empty(kind), message);
    }
  }

  void ask_store(std::string_view name, const Value& message) {
    const std::optional<StoreCall::Kind> kind = parse_store_kind(name);
    if (!kind) {
      throw traces::BadFile(0, fmt::format("the store has no {}", name));
    }
    StoreCall call;
    call.kind = *kind;
    call.op.kind = call.kind == StoreCall::Kind::wait ? OpKind::store_wait : OpKind::store_get;
    call.op.rank = this_rank().rank;
    store_sites_.push_back(traces::script_site(find(message, "site")));
    call.op.site = site_of(store_sites_.back());
    const auto [keys, count] = traces::items_of(find(message, "keys"));
    for (std::uint32_t i = 0; i < count; ++i) {
      call.keys.emplace_back(traces::text_or_empty(&keys[i]));
    }
    call.value = from_hex(traces::text_or_empty(find(message, "value")));
    call.expected = from_hex(traces::text_or_empty(find(message, "expected")));
    call.amount = traces::number_or(find(message, "amount"), 0);
    if (const double limit = traces::real_or(find(message, "timeout"), 0); limit > 0) {
      call.timeout = static_cast<Duration>(std::llround(limit * 1e9));
    }
    StoreReply reply;
    const std::optional<Failure> failure = failure_of([&] { reply = this_rank().backend->store(call); });
    link_.say(failure ? answer_of(*failure)
                      : fmt::format(R"({{"bytes":0,"value":"{}","number":{}}})", to_hex(reply.value),
                                    reply.number));
  }

  // Does making the call, before anybody waits for it, depend on other ranks?
  bool may_involve_others(const ScriptCall& made) const {
    return compares_ || !is_at_home(made) || made.op == to_string(OpKind::monitored_barrier);
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
      issued_.emplace(
          traces::count_or(&tickets[i], 0),
          Issued{failure ? ScriptCalls::Pending{} : std::move(pending[i]), failure, failure && !compares_});
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
      link_.say(answer_of(*issued.failure, issued.refused));
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
  std::string folder_;
  std::string record_;
  bool compares_;
  traces::Arena arena_{line_bytes_max};
  std::deque<ScriptSite> store_sites_;  // as those of the calls
  std::deque<ScriptCall> calls_;        // the run's evidence names places in them
  traces::ScriptEnd end_;               // likewise
  ScriptCalls made_;
  std::map<Ticket, Issued> issued_;
};

// What the rank's script runs on: known when it has initialized its job. Empty when it ends without.
struct Job {
  std::string backend;
  std::string torch;
  bool detail = false;
};

Job job_of(RankLink& link) {
  traces::Arena arena(line_bytes_max);
  while (const std::optional<std::string> line = link.line()) {  // nothing comes before it
    arena.reset();
    const Value said = traces::read_json(*line, arena);
    if (const Value* init = find(said, "init")) {
      return {std::string(traces::text_or_empty(init)),
              std::string(traces::text_or_empty(find(said, "torch"))),
              traces::text_or_empty(find(said, "debug")) == "DETAIL"};
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
      options.debug = job.detail ? sim::DebugLevel::detail : options.debug;
      backend = own != nullptr && own->device == DeviceType::cuda ? own->name : backend;
    } catch (const RankIsSilent&) {
      silent.insert(static_cast<Rank>(rank));
    }
  }
  options.backend = backend;
  return options;
}

}  // namespace

SimulatedRanks simulate_ranks(std::vector<real::Descriptor> connections, const std::string& records,
                              std::chrono::milliseconds patience) {
  std::vector<RankLink> links;
  for (real::Descriptor& connection : connections) {
    links.emplace_back(std::move(connection), patience);
  }
  const std::string folder = std::filesystem::current_path();
  SimulatedRanks result;
  try {
    sim::Options options = options_of_job(links, result.silent);
    options.may_run_again = false;  // it is run by processes that have gone
    std::deque<RankServer> servers;
    for (std::size_t rank = 0; rank < links.size(); ++rank) {
      servers.emplace_back(links[rank], folder, fmt::format("{}/rank{}.jsonl", records, rank),
                           options.debug == sim::DebugLevel::detail);
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
      } catch (const ProcessKilled& killed) {
        links[static_cast<std::size_t>(rank)].say(fmt::format(R"({{"killed":"{}"}})", killed.signal));
        ++ended;
        throw;
      } catch (const traces::BadFile& problem) {
        result.problem = fmt::format("rank {}: {}", rank, problem.what());
      } catch (const Error&) {
        ++ended;
        throw;
      }
    });
    result.stands_still = ended < options.world_size && result.silent.empty() && result.problem.empty();
  } catch (const traces::BadFile& problem) {
    result.problem = problem.what();
  }
  return result;
}

}  // namespace rollcall::scenario
