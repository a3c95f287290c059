// Programs drawn from a seed, of families prim, p2p, group, desync and args. Each rank's program is a list of steps in
// `params.script`, so a new file of this kind needs no code. Groups are g1, g2, ... of `params.groups`.

#include <map>
#include <numeric>

#include "sim/base/expects.h"
#include "tests/conformance/programs.h"

namespace rollcall::golden {

namespace {

// The result of a call, once it is over.
struct Result {
  Tensor tensor;
  TensorList list;
  bool is_list = false;
};

class DrawnProgram {
 public:
  explicit DrawnProgram(CaseContext& context) : context_(context) {}

  void run() {
    std::int64_t number = 0;
    for (const Params& step : context_.params().script_of("script", context_.rank())) {
      if (step.flag("catch", false)) {
        context_.catching("step " + std::to_string(number), [&] { take(step, number); });
      } else {
        take(step, number);
      }
      ++number;
    }
  }

 private:
  void take(const Params& step, std::int64_t number) {
    const std::string what = step.text("do");
    if (what == "sleep") {
      compute(step.integer("tenths") * 100 * millisecond);
    } else if (what == "wait") {
      const auto found = under_way_.find(step.text("as"));
      expects(found != under_way_.end(), "a step waits for a call that was made");
      const auto [work, result] = found->second;
      under_way_.erase(found);
      work.wait();
      note(result);
    } else if (what == "recv") {
      const Tensor tensor = own(step);
      const std::optional<Rank> peer = step.has("peer") ? std::optional(rank_of(step, "peer")) : std::nullopt;
      context_.put("from_" + std::to_string(number), std::int64_t{recv(tensor, peer, to_peer(step))});
      note({.tensor = tensor, .list = {}});
    } else {
      Result result;
      const Work work = issue(what, step, result);
      if (step.has("as")) {
        under_way_.insert_or_assign(step.text("as"), std::pair(work, result));
      } else {
        note(result);
      }
    }
  }

  Work issue(const std::string& what, const Params& step, Result& result) const {
    const CollectiveOptions options{.group = group_of(step), .async_op = step.has("as")};
    if (what == "barrier") {
      return barrier({.group = options.group, .async_op = options.async_op});
    }
    if (what == "all_to_all_single") {
      return exchange(step, options, result);
    }
    result.tensor = own(step);
    if (what == "all_reduce" || what == "reduce") {
      const ReduceOptions reduction{.op = step.has("op") ? *parse_reduce_op(step.text("op")) : ReduceOp::sum,
                                    .group = options.group,
                                    .async_op = options.async_op};
      return what == "reduce" ? reduce(result.tensor, rank_of(step, "root"), reduction)
                              : all_reduce(result.tensor, reduction);
    }
    if (what == "broadcast") {
      return broadcast(result.tensor, rank_of(step, "root"), options);
    }
    if (what == "send" || what == "isend") {
      const Tensor sent = std::exchange(result.tensor, {});
      if (what == "isend") {
        return isend(sent, rank_of(step, "peer"), to_peer(step));
      }
      send(sent, rank_of(step, "peer"), to_peer(step));
      return {};
    }
    if (what == "irecv") {
      return irecv(result.tensor, rank_of(step, "peer"), to_peer(step));
    }
    return issue_with_list(what, step, options, result);
  }

  // all_gather, gather and scatter.
  Work issue_with_list(const std::string& what, const Params& step, const CollectiveOptions& options,
                       Result& result) const {
    const bool is_root = what != "all_gather" && rank_of(step, "root") == context_.rank();
    if (what == "scatter") {
      TensorList parts;
      for (std::int64_t member = 0; is_root && member < members_of(step); ++member) {
        parts.push_back(ramp(10 * member, result.tensor.numel(), result.tensor.dtype()));
      }
      return scatter(result.tensor, parts, rank_of(step, "root"), options);
    }
    const Tensor tensor = std::exchange(result.tensor, {});
    result.is_list = is_root || what == "all_gather";
    for (std::int64_t member = 0; result.is_list && member < members_of(step); ++member) {
      result.list.push_back(Tensor::zeros({tensor.numel()}, tensor.dtype()));
    }
    if (what == "all_gather") {
      return all_gather(result.list, tensor, options);
    }
    expects(what == "gather", "the steps of a drawn program are known");
    return gather(tensor, result.list, rank_of(step, "root"), options);
  }

  Work exchange(const Params& step, const CollectiveOptions& options, Result& result) const {
    const Tensor given = own(step);
    const auto splits = [&step](const char* name) {
      return step.has(name) ? step.integers(name) : std::vector<std::int64_t>();
    };
    const auto rows = [&](const std::vector<std::int64_t>& parts) {
      return parts.empty() ? given.numel() : std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
    };
    const std::vector<std::int64_t> in = splits("in");
    const std::vector<std::int64_t> out = splits("out");
    result.tensor = Tensor::zeros({rows(out)}, given.dtype());
    return all_to_all_single(result.tensor, ramp(context_.rank(), rows(in), given.dtype()),
                             {.output_split_sizes = out,
                              .input_split_sizes = in,
                              .group = options.group,
                              .async_op = options.async_op});
  }

  Tensor own(const Params& step) const {
    return ramp(context_.rank(), step.has("numel") ? step.integer("numel") : 1,
                step.has("dtype") ? *parse_dtype(step.text("dtype")) : Dtype::float32);
  }
  static Rank rank_of(const Params& step, const char* name) { return static_cast<Rank>(step.integer(name)); }
  static ProcessGroup group_of(const Params& step) {
    return step.has("group") ? find_group("g" + std::to_string(step.integer("group") + 1)) : world();
  }
  std::int64_t members_of(const Params& step) const {
    return step.has("group")
               ? static_cast<std::int64_t>(context_.params()
                                               .table("groups")
                                               .at(static_cast<std::size_t>(step.integer("group")))
                                               .size())
               : get_world_size();
  }
  static PointToPointOptions to_peer(const Params& step) {
    return {.group = group_of(step),
            .tag = step.has("tag") ? static_cast<std::int32_t>(step.integer("tag")) : 0};
  }

  void note(const Result& result) {
    if (result.is_list) {
      context_.add("out", result.list);
    } else if (result.tensor) {
      context_.add("out", result.tensor);
    }
  }

  CaseContext& context_;
  std::map<std::string, std::pair<Work, Result>> under_way_;
};

}  // namespace

void drawn_program(CaseContext& context) {
  Scope site("user.step");
  DrawnProgram(context).run();
}

}  // namespace rollcall::golden
