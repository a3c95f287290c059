#pragma once

// The interpreter: runs the lowered program of a scenario as a rank program, through the same functions that
// a C++ program calls.

#include <string>
#include <vector>

#include "scenarios/program/program.h"
#include "scenarios/run/run_state.h"
#include "sim/base/error.h"
#include "sim/c10d/observer.h"
#include "sim/c10d/work.h"

namespace rollcall::scenario {

class RankFrame;
struct Scenario;

// Runs the program of `rank`, on that rank's own fiber or thread. Throws what the program raises.
void run_rank(const Scenario& scenario, Rank rank, RunState& state);

// Runs part of the program. Returns the address to continue at: the block's end, or an address outside the
// block if a `break` left it. Throws what the statements raise, and ProgramExit on `exit`.
Address run_block(RankFrame& frame, const Block& block);

// Issues one collective call, and waits for it unless it is asynchronous. With `unfinished` it does not wait:
// calls of a thread that would block it are added there.
void run_collective(RankFrame& frame, const Collective& call, Site site, std::vector<Work>* unfinished);
// The same for a send or receive, and for a batch of them.
void run_message(RankFrame& frame, const MessageCall& call, Site site, std::vector<Work>* unfinished);
void run_batch(RankFrame& frame, const MessageBatch& batch, Site site);
void run_coalesced(RankFrame& frame, const CoalescedCalls& calls, Site site);
// These always wait.
void run_checkpoint(RankFrame& frame, const CheckpointCall& call, Site site);
void run_objects(RankFrame& frame, const ObjectCall& call, Site site);

// A thread of a rank, and its position.
struct Thread {
  Block block;
  Address at = 0;
  std::vector<Work> waits_for;  // the calls that its last statement blocks in
};
// Runs one instruction of the thread; instead of blocking the rank, it adds to waits_for.
void step(RankFrame& frame, Thread& thread);

// Runs the threads of a rank, which take turns at every statement that another rank could notice; which one
// is next is a decision. A thread that waits for a call leaves the others running.
void run_threads(RankFrame& frame, const Branches& threads);

// Called after a call that should block: if blocking_wait is set, the host also waits for what nccl makes
// only a stream wait for.
void block_host(const RankFrame& frame);

// A text with its holes filled.
std::string compose(const RankFrame& frame, TableIndex text);

// Calls about groups and on the store; they block.
void run_group_call(RankFrame& frame, const GroupStatement& call, Site site);
void run_init_device_mesh(RankFrame& frame, const MeshStatement& call, Site site);
void run_store_call(RankFrame& frame, const StoreStatement& call, Site site);

// A failed `check`: for the program, an exception like any other; for the verdict, a wrong result.
class CheckFailure : public Error {
 public:
  explicit CheckFailure(Observation observation);

  const Observation& observation() const { return observation_; }

 private:
  Observation observation_;
};

// The statement `check`: throws CheckFailure unless all elements equal the check's value, and NotImplementedError for a
// meta tensor.
void check_elements(RankFrame& frame, const Tensor& tensor, const action::Check& check, Site site);

// Ends a rank's program: Python's SystemExit. Not a std::exception, so that `try` lets it through.
struct ProgramExit {};

}  // namespace rollcall::scenario
