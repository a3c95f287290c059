#pragma once

// Lowers the statement lists of a scenario to one Program. Reports every error in them that can be found in a
// file: unknown names, missing arguments, ranks out of range.

#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "scenarios/json/json_tree.h"
#include "scenarios/program/names.h"
#include "scenarios/program/program.h"
#include "scenarios/program/statements.h"
#include "scenarios/program/value_reader.h"

namespace rollcall::scenario {

class Lowering {
 public:
  // `join` and `try` run their bodies by recursion on the rank's small stack.
  static constexpr int nesting_max = 8;

  // All are borrowed for the lifetime of the object.
  Lowering(const ScenarioFacts& facts, const SourceText& source, Diagnostics& diagnostics);

  // Called first, for every list of the file: finds the names that its statements define.
  void collect(const Json& list) { names_.collect(list, diagnostics_); }
  // Called after that, for every list that ranks run.
  Block lower_program(const Json& list);
  // Called for every object, in the order of ScenarioFacts::objects, before the programs.
  void lower_object(const Json& object);

  // Called for tensors that expectations are about, after everything else; the entry's key is the tensor's
  // name.
  void watch(const Json& entry) { read_.watch(entry); }

  // The result; the Lowering is spent.
  std::shared_ptr<const Program> finish();

  // What statement_rules() returns. The rows name the functions below.
  static std::vector<StatementRule> make_statement_rules();

 private:
  // The properties that tensors without a name must share to use the same slot.
  struct ScratchLook {
    Dtype dtype = Dtype::float32;
    std::optional<DeviceTemplate> device;
    std::int64_t numel = -1;  // -1: the call's default
    friend auto operator<=>(const ScratchLook&, const ScratchLook&) = default;
  };
  // The source line that a statement says it represents.
  struct GivenSite {
    TableIndex file = none;  // of Program::strings; none: not given
    std::uint32_t line = 0;
  };
  // A kind of object: the keys that it has, and what lowers it.
  struct ObjectRule {
    std::string_view kind;
    std::vector<std::string_view> keys;
    ObjectKind (Lowering::*lower)(const Json& object);
  };

  static const std::vector<ObjectRule>& object_rules();
  void check_object_keys(const Json& object, const ObjectRule& rule);
  ObjectKind lower_joinable(const Json& object);
  ObjectKind lower_model(const Json& object);
  ObjectKind lower_sharded(const Json& object);
  ObjectKind lower_fully_sharded(const Json& object);
  ObjectKind lower_data_parallel(const Json& object);
  ObjectKind lower_optimizer(const Json& object);
  ObjectKind lower_pipeline(const Json& object);
  ObjectKind lower_parallel_module(const Json& object);
  ObjectKind lower_ring(const Json& object);
  void check_model_release(const Json& object);
  void check_strategy(const Json& object, const ShardedObject& model);
  void read_model_work(const Json& object, ModelWork& work);
  void require_gpu(const Json& node);
  ShardedUnit read_unit(const Json& node, const std::string& name, FullyShardedObject& model);
  void read_root(const Json& node, ShardedUnit& root);
  void read_unit_keys(const Json& node, ShardedUnit& unit);
  ReshardAfterForward read_reshard(const Json& value);
  MixedPrecisionPolicy read_policy(const std::optional<Json>& value);
  Rank size_of_group(const Json& object);
  ParallelLayer read_layer(const Json& node);
  std::optional<Placement> read_placement(const Json& node);
  std::vector<StageTensor> read_input_args(const Json& object);
  bool lower_parallel(const Statement& statement, TableIndex object, ParallelVerb verb);
  std::vector<ParameterSpec> read_parameters(const std::optional<Json>& list, std::string_view singular);
  void read_parameter(const Json& node, std::string_view singular, std::vector<ParameterSpec>& parameters);

  Block lower_part(const Json& object, std::string_view key, const NameScope& scope = {});
  Block lower_list(const Json& list);
  void lower_statements(const Json& list);
  void lower_statement(const Json& node);
  void check_release(const Statement& statement);
  void check_arguments(const Statement& statement);
  void check_argument(const Statement& statement, const Json& member);
  void report_unrecognized(const Json& node);

  void lower_for(const Statement& statement);
  void lower_repeat(const Statement& statement);
  void lower_for_each_input(const Statement& statement);
  void lower_loop(const Statement& statement, const Loop& loop, std::string_view variable);
  void lower_if(const Statement& statement);
  void lower_break(const Statement& statement);
  void lower_join(const Statement& statement);
  void lower_try(const Statement& statement);
  void lower_forward(const Statement& statement);
  void lower_model_forward(const Statement& statement, TableIndex object);
  void lower_notify(const Statement& statement);
  void lower_backward(const Statement& statement);
  void lower_step(const Statement& statement);
  void lower_zero_grad(const Statement& statement);
  void lower_state_dict(const Statement& statement);
  void lower_no_sync(const Statement& statement);
  void lower_parallelize(const Statement& statement);
  void lower_eval(const Statement& statement);
  void lower_init_device_mesh(const Statement& statement);
  void lower_sharding(const Statement& statement);
  void lower_clip_grad_norm(const Statement& statement);
  std::uint32_t read_part(const Json& name, TableIndex object, const std::vector<std::string>& parts);
  TableIndex read_pass(const Statement& statement, TableIndex object);
  bool is_model(TableIndex object) const;
  bool require_model(const Statement& statement, TableIndex object);
  void lower_branches(const Statement& statement);

  void lower_wait(const Statement& statement);
  void lower_drop(const Statement& statement);
  void lower_wait_stream(const Statement& statement);
  void lower_print(const Statement& statement);
  void lower_raise(const Statement& statement);
  void lower_exit(const Statement& statement);
  void lower_compute(const Statement& statement);
  void lower_kernel(const Statement& statement);
  void read_work(const Statement& statement, action::LaunchKernel& kernel);
  void lower_event(const Statement& statement);
  SlotIndex read_stream(const Statement& statement);
  void lower_item(const Statement& statement);
  void lower_fill(const Statement& statement);
  void lower_add(const Statement& statement);
  void lower_copy(const Statement& statement);
  void lower_check(const Statement& statement);
  void lower_set_device(const Statement& statement);
  void lower_touch(const Statement& statement);
  void lower_synchronize(const Statement& statement);

  void lower_message(const Statement& statement);
  void lower_batch(const Statement& statement);
  void lower_coalesced(const Statement& statement);
  std::optional<Collective> read_coalesced(const Json& node);
  void lower_checkpoint(const Statement& statement);
  void read_saved(const Json& name, CheckpointCall& call);
  void lower_objects(const Statement& statement);
  MessageCall read_message(const Statement& statement);

  void lower_new_group(const Statement& statement);
  void lower_new_subgroups(const Statement& statement);
  void lower_split_group(const Statement& statement);
  void lower_destroy_group(const Statement& statement);
  void lower_monitored_barrier(const Statement& statement);
  void lower_store(const Statement& statement);
  GroupStatement begin_group_call(const Statement& statement, GroupStatement::Kind kind);
  void end_group_call(const Statement& statement, GroupStatement call);
  TableIndex read_label(const Statement& statement);
  std::optional<Duration> read_timeout(const Statement& statement);

  void lower_collective(const Statement& statement);
  void read_call(const Statement& statement, Collective& call);
  void read_lists(const Statement& statement, Collective& call);
  void read_splits(const Statement& statement, Collective& call);
  SlotIndex read_output(const Statement& statement, OpKind kind);
  TensorSpec read_tensor(const Statement& statement, bool may_share);
  SlotIndex scratch_tensor(const TensorSpec& spec, bool may_share);

  // Returns the argument; if it is missing, empty, and reports an error.
  std::optional<Json> require(const Statement& statement, std::string_view argument);
  void require_true(const Statement& statement);
  GivenSite read_site(const Statement& statement);
  void emit(const Json& node, Action action);
  Address here() const { return static_cast<Address>(program_->code.size()); }
  template <typename T>
  T& at(Address address) {
    return std::get<T>(program_->code[address].action);
  }
  bool enter_nesting(const Statement& statement);

  const ScenarioFacts& facts_;
  const SourceText& source_;
  Diagnostics& diagnostics_;
  std::shared_ptr<Program> program_;
  Names names_;
  ValueReader read_;

  std::vector<std::vector<Address>> breaks_;  // by open loop, innermost last: jumps that wait for its end
  // Variables for loops, two per level. Lists that can run inside each other have their own.
  std::vector<SlotIndex> program_loop_slots_;
  std::vector<SlotIndex>* loop_slots_ = &program_loop_slots_;
  int nesting_ = 0;
  bool in_object_ = false;
  GivenSite given_site_;    // of the statement being lowered
  bool in_thread_ = false;  // of a `parallel`
  std::map<ScratchLook, SlotIndex> scratch_tensors_;
  SlotIndex scratch_output_ = no_slot;
  SlotIndex scratch_outputs_ = no_slot;  // a list
  SlotIndex scratch_inputs_ = no_slot;   // a list
};

}  // namespace rollcall::scenario
