#pragma once

// Reducer: the part of DistributedDataParallel that averages gradients during the backward pass. Gradients
// are gathered in buckets; a bucket is all-reduced as soon as it and all buckets before it are full
// (torch/csrc/distributed/c10d/reducer.cpp, same names).
//
//   forward    prepare_for_forward, rebuild_buckets (once), ..., prepare_for_backward
//   backward   gradient_ready for each parameter, in autograd's order; then finish_backward
//
// Buckets are first laid out in the order of the parameters, and once more in the order in which the first backward
// produced gradients; rank 0's order is used. With find_unused_parameters they stay as they are.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/train/buckets.h"
#include "sim/train/comm_hooks.h"
#include "sim/train/module.h"

namespace rollcall {

struct ReducerOptions {
  ProcessGroup group{};
  std::vector<std::int64_t> bucket_limits{1024 * 1024,
                                          25 * 1024 * 1024};  // bytes; the last applies to the rest
  bool limits_first_pass = false;  // the first iteration's buckets have these limits, too
  bool find_unused_parameters = false;
  bool skip_unused = false;  // buckets of unused parameters only are not reduced
  bool static_graph = false;
  bool gradient_as_bucket_view = false;  // gradients are divided where they are, as soon as they are ready
  bool name_parameters = false;          // in errors, as with TORCH_DISTRIBUTED_DEBUG=INFO or DETAIL
  std::string pairing{};  // " of NAME": separates this model's calls from those of other models
};

class Reducer {
 public:
  // parameters: those that require gradients, borrowed.
  Reducer(std::vector<Parameter*> parameters, ReducerOptions options);

  // Throws RuntimeError for a second one.
  void register_comm_hook(CommHook hook);

  // Counts a forward pass whose backward will reduce.
  void prepare_for_forward() { ++iteration_; }
  // The all_reduce that counts the ranks with inputs; its result is the divisor of this pass unless
  // `use_initial_world_size`. An empty tensor: none was issued.
  void set_forward_pass_work(const Work& work, const Tensor& active_ranks, bool use_initial_world_size);
  // Rebuilds the buckets if a backward has been recorded and they have not been rebuilt yet. Blocks. Throws
  // RuntimeError when the prior backward left buckets unfinished: some parameter got no gradient.
  void rebuild_buckets(Site site);
  // unused: parameters that the outputs of this pass do not depend on. Used only with find_unused_parameters.
  void prepare_for_backward(std::vector<std::uint32_t> unused);

  // Autograd's hook: parameter `index` has its gradient of this pass, already accumulated. May issue buckets.
  void gradient_ready(std::uint32_t index, Site site);
  // Autograd's final callback: waits for the buckets and gives the averages to the parameters. Does nothing when some
  // bucket was never issued; the next rebuild_buckets then says so.
  void finish_backward(Site site);

  // What a joined rank does in place of a backward: sends zeros for every bucket. Its own gradients stay unchanged, and
  // are out of date from now on.
  void shadow_buckets();
  // The same for the map of used parameters: sends what the last reduction left in it, as torch does. On a rank that
  // never ran a backward, torch sends uninitialized memory; here it is zeros.
  void shadow_unused_map();
  // Part of the same: lets the buckets be rebuilt in the same iteration as on the other ranks.
  void push_all_rebuilt_parameters();

 private:
  struct Bucket {
    std::vector<std::uint32_t> variables;
    Tensor contents{};  // the gradients, divided and end to end; kept from pass to pass
    std::size_t pending = 0;
    BucketFuture future{};
  };
  struct Place {
    std::uint32_t bucket = 0;
    std::uint32_t position = 0;
  };

  void initialize_buckets(BucketIndices indices);
  BucketIndices agree_on_buckets(const BucketIndices& mine, Site site) const;
  bool should_rebuild_buckets() const;
  bool detects_unused_parameters() const { return options_.find_unused_parameters && !options_.static_graph; }
  bool is_first_static_iteration() const { return options_.static_graph && iteration_ == 1; }
  void ensure_prior_reduction_finished() const;
  std::string unready_parameters() const;
  void refuse_marking_twice(std::uint32_t index) const;

  void count_static_hook(std::uint32_t index, Site site);
  void mark_variable_ready(std::uint32_t index, Site site);
  void mark_variable_ready_dense(std::uint32_t index);
  bool divides_in_place() const { return options_.gradient_as_bucket_view && !hook_; }
  void issue_full_buckets(Site site);
  bool skips(const Bucket& bucket) const;
  BucketFuture reduce(std::size_t index, const Tensor& contents, Site site) const;
  void fill(Bucket& bucket) const;
  bool fill_with_one_value(Bucket& bucket) const;
  Tensor zeros_like(const Bucket& bucket) const;
  void set_divide_factor();
  void reduce_unused_map(Site site);
  void reduce_delayed(Site site);
  void finalize_backward();
  void finalize_bucket(Bucket& bucket);
  bool is_globally_unused(std::uint32_t index);

  std::vector<Parameter*> parameters_;
  ReducerOptions options_;
  CommHook hook_;
  std::string bucket_pairing_;
  std::string unused_pairing_;
  std::string rebuild_pairing_;

  std::vector<Bucket> buckets_;
  std::vector<Place> places_;  // of each parameter
  std::size_t next_bucket_ = 0;
  std::vector<std::uint32_t> rebuilt_parameters_;
  bool has_rebuilt_ = false;

  std::int64_t iteration_ = 0;
  bool expects_gradients_ = false;   // torch's expect_autograd_hooks_
  bool requires_finalize_ = false;   // some gradient arrived, and the reduction is not finished
  bool finalize_is_queued_ = false;  // all buckets were issued
  bool has_marked_unused_ = false;
  std::vector<std::uint32_t> unused_;
  std::vector<bool> ready_;
  std::vector<std::int32_t> static_hooks_;       // gradients per parameter in a static graph's first pass
  std::vector<std::int32_t> static_hooks_left_;  // of this pass

  double divisor_ = 0;  // 0: not known yet in this pass
  Work forward_work_;
  Tensor active_ranks_;
  bool use_initial_world_size_ = true;

  std::vector<std::int32_t> used_;  // by this rank in this pass; after a reduction, by how many ranks
  bool used_is_reduced_ = false;
  Tensor used_everywhere_;  // torch's local_used_map_dev_
  Work used_work_;
};

}  // namespace rollcall
