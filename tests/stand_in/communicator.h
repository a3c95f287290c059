#pragma once

// A communicator of the stand-in: one member's side of it, and the kernels that it runs on streams.

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "tests/stand_in/rendezvous.h"
#include "tests/stand_in/stream.h"

namespace rollcall::stand_in {

enum class Function { all_reduce, broadcast, reduce, all_gather, reduce_scatter, send, recv };

inline bool is_message(Function function) { return function >= Function::send; }

// One call of NCCL's API.
struct Call {
  Function function = Function::all_reduce;
  const void* from = nullptr;
  void* into = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t op = ncclSum;
  int root = -1;  // for a message: the peer
  double factor = 1;
  bool scales = false;  // op is a user-defined operator
  std::shared_ptr<Stream> stream{};
};

class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  Communicator(std::shared_ptr<Shared> shared, int rank, int size, int device, bool blocks);

  int rank() const { return rank_; }
  int size() const { return size_; }
  int device() const { return device_; }
  bool blocks() const { return blocks_; }

  // Meets the other members. A nonblocking communicator does so on its own thread, and is ncclInProgress meanwhile.
  ncclResult_t connect();

  // ncclCommGetAsyncError. Issues the calls that are not issued yet.
  ncclResult_t state();
  // Reads the state without a query.
  bool is_in_progress() const { return state_ == ncclInProgress; }
  void set_state(ncclResult_t state) { state_ = state; }

  // Launches the calls of one group, in the caller's order, as one kernel. Their arguments have been checked.
  ncclResult_t launch(std::vector<Call> calls);

  // Ends the running kernels; none runs when it returns.
  void abort();
  void wait_for_kernels();

  // Runs `work` on a thread; the communicator is ncclInProgress until it is done.
  ncclResult_t do_meanwhile(const std::function<ncclResult_t()>& work);
  // True if everything that was launched is over.
  bool is_idle();

  // ncclCommFinalize, which all members call: returns when the calls of all members are over.
  void finalize();
  bool is_finalized() const { return shared_->members[rank_].finalized; }

  // Returns null if this member is in no part, or if it has been aborted.
  std::shared_ptr<Communicator> split(int color, int key, bool blocks);

  // Only one thread may use a communicator at a time.
  std::mutex& use() { return use_; }

  std::map<int, double> factors;  // of the user-defined operators, by number

 private:
  bool join();
  bool is_duplicate() const;
  void issue(const std::vector<Call>& calls);
  void run(const std::vector<Call>& calls);
  bool run_collective(const Call& call);
  bool run_messages(const std::vector<Call>& calls);
  bool step_send(const Call& call, std::uint64_t number, bool& posted);
  bool step_receive(const Call& call, std::uint64_t number);
  bool until(const std::function<bool()>& condition);
  bool agree(std::uint64_t number) const;
  void compute(const Call& call, std::uint64_t number, std::vector<std::byte>& result) const;
  const std::byte* memory_of(int member) const { return memories_[static_cast<std::size_t>(member)]; }

  std::shared_ptr<Shared> shared_;
  int rank_;
  int size_;
  int device_;
  bool blocks_;
  std::atomic<ncclResult_t> state_ = ncclInProgress;
  std::atomic<bool> is_aborted_ = false;
  std::vector<const std::byte*> memories_;  // by rank
  std::vector<Call> held_;                  // launched, but not issued
  bool was_asked_ = false;                  // the state was queried since then
  std::mutex mutex_;                        // guards the two above
  SharedPoint last_;                        // the last issued kernel
  std::uint64_t collectives_ = 0;           // touched by one kernel at a time, likewise:
  std::vector<std::uint64_t> sent_;
  std::vector<std::uint64_t> received_;
  std::uint64_t splits_ = 0;
  std::mutex running_mutex_;
  std::condition_variable stopped_;
  int running_ = 0;
  std::mutex use_;
};

}  // namespace rollcall::stand_in
