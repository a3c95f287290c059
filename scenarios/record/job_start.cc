#include "scenarios/record/job_start.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "scenarios/record/rank_messages.h"
#include "sim/base/error.h"
#include "sim/c10d/backend_traits.h"
#include "sim/c10d/store_state.h"
#include "sim/torch/torch_traits.h"
#include "traces/values/value_access.h"

namespace rollcall::scenario {
namespace {

using traces::Value;

// A rank that asks this often before it initializes the job is left to the simulation, which has limits.
constexpr std::size_t asked_max = 100'000;

// The job that a rank has initialized.
struct Job {
  std::string backend;
  std::string torch;
  bool detail = false;
  double timeout_s = 0;   // 0: the backend's own
  bool is_eager = false;  // on nccl: the rank gave a device_id
};

// One rank, until it has initialized the job.
class Beginning {
 public:
  explicit Beginning(RankLink& link) : link_(link) {}

  // Makes one step, if it can. Returns whether it did. Throws RankIsSilent.
  bool step(StoreState& store) {
    if (is_over_ || start_.has_initialized) {
      return false;
    }
    return start_.waits ? answer(store) : read(store);
  }

  void leave_alone() { is_over_ = true; }
  const Job& job() const { return job_; }
  RankStart take() { return std::move(start_); }

 private:
  bool read(StoreState& store) {
    if (!link_.comes()) {
      return true;  // it may be blocked by what another rank holds
    }
    const std::optional<std::string> line = link_.line();
    if (!line) {
      is_over_ = true;
      return false;
    }
    arena_.reset();
    const Value said = traces::read_json(*line, arena_);
    if (const Value* init = find(said, "init")) {
      job_ = {std::string(traces::text_or_empty(init)),
              std::string(traces::text_or_empty(find(said, "torch"))),
              traces::text_or_empty(find(said, "debug")) == "DETAIL",
              traces::real_or(find(said, "timeout"), 0), find(said, "eager") != nullptr};
      start_.has_initialized = true;
      start_.init_site = traces::script_site(find(said, "site"));
    } else if (find(said, "store") != nullptr) {
      link_.has_called();
      start_.waits = store_question(said);
      ++asked_;
      answer(store);
    }
    return true;
  }

  // Answers the question, unless a key is missing.
  bool answer(StoreState& store) {
    const StoreCall& call = start_.waits->call;
    if (asked_ >= asked_max || !store.awaited_by(call).empty()) {
      return false;
    }
    try {
      nlohmann::json answer = store_answer(store.apply(call));
      answer["bytes"] = 0;
      link_.say(answer.dump());
    } catch (const Error& error) {
      link_.say(failure_line({error.type(), error.what()}));
    }
    start_.waits.reset();
    return true;
  }

  RankLink& link_;
  RankStart start_;
  Job job_;
  std::size_t asked_ = 0;
  bool is_over_ = false;  // it has ended, or is silent
  traces::Arena arena_{line_bytes_max};
};

sim::Options options_of(const std::deque<Beginning>& ranks) {
  sim::Options options{.world_size = static_cast<Rank>(ranks.size())};
  std::string_view backend = default_backend(DeviceType::cpu).name;
  double timeout_s = 0;
  std::size_t begun = 0;
  std::size_t eager = 0;
  for (const Beginning& rank : ranks) {
    const Job& job = rank.job();
    const BackendTraits* own = find_backend_traits(job.backend);
    options.torch = nearest_torch_release(job.torch).value_or(options.torch);
    options.debug = job.detail ? sim::DebugLevel::detail : options.debug;
    backend = own != nullptr && own->device == DeviceType::cuda ? own->name : backend;
    timeout_s = job.timeout_s > 0 ? job.timeout_s : timeout_s;
    begun += job.backend.empty() ? 0 : 1;
    eager += job.is_eager ? 1 : 0;
  }
  options.backend = backend;
  options.eager_communicators = eager > 0 && eager == begun;
  options.finished_ranks_exit = true;
  if (const BackendTraits& traits = *find_backend_traits(backend); traits.raises_timeouts) {
    options.timeout = timeout_s > 0 ? duration_of(timeout_s) : traits.timeout;
  }
  return options;
}

}  // namespace

bool JobStart::all_have_initialized() const {
  return std::ranges::all_of(ranks, &RankStart::has_initialized);
}

// Each rank makes a step in turn: one that asks for a key again and again does not keep the others back.
JobStart start_job(std::vector<RankLink>& links) {
  std::deque<Beginning> ranks(links.begin(), links.end());
  JobStart start;
  StoreState store;
  for (bool has_moved = true; has_moved;) {
    has_moved = false;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      try {
        has_moved |= ranks[rank].step(store);
      } catch (const RankIsSilent&) {
        start.silent.insert(static_cast<Rank>(rank));
        ranks[rank].leave_alone();
      }
    }
  }
  start.options = options_of(ranks);
  start.options.store = std::move(store);
  for (Beginning& rank : ranks) {
    start.ranks.push_back(rank.take());
  }
  return start;
}

}  // namespace rollcall::scenario
