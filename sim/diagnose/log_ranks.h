#pragma once

// Compares the logs and stacks of ranks: which ranks raised, were killed, are silent while others report errors, have a
// list of calls that ends early, or are elsewhere in their program.

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "sim/diagnose/log_fact.h"
#include "sim/report/diagnosis.h"

namespace rollcall::check {

// What settles most of what logs leave open.
inline constexpr const char* dumps_would_say =
    "Flight Recorder dumps of all ranks (TORCH_FR_BUFFER_SIZE=2000; on Gloo "
    "torch._C._distributed_c10d._dump_fr_trace())";

inline constexpr const char* advice_on_new_group =
    "call new_group on every rank, members or not, with the same ranks and in one order";

// Null if there is none.
const LogFact* first_of(const std::vector<LogFact>& facts, LogFact::Kind kind);

// The ranks of the facts that pass the test.
template <typename Test>
RankSet ranks_where(const std::vector<LogFact>& facts, const Test& test) {
  RankSet ranks;
  for (const LogFact& fact : facts) {
    ranks.insert(std::invoke(test, fact) ? fact.ranks : RankSet());
  }
  return ranks;
}

RankSet ranks_with(const std::vector<LogFact>& facts, LogFact::Kind kind);
RankSet ranks_with(const std::vector<LogFact>& facts, std::initializer_list<LogFact::Kind> kinds);

// Ranks whose stacks show them in a call, and those whose stacks show them in none.
RankSet ranks_in_calls(const std::vector<LogFact>& facts);
RankSet ranks_in_no_call(const std::vector<LogFact>& facts);

// One that blames nobody: what was read does not decide.
Diagnosis undecided();

// Functions of torch.distributed.
bool is_message(const std::string& op);
bool is_about_groups(const std::string& op);

// Where an error stands, and its text.
std::string error_evidence(const LogFact& error);

// Sets the call of the finding and who waits in it for whom.
void set_op(const std::string& op, const RankSet& waiting, const RankSet& missing, Diagnosis& diagnosis);

// Ranks that gave up waiting in another call: a rank that waits for them waits for what they wait for.
RankSet waited_themselves(const std::vector<LogFact>& facts);

// Ranks that were alive when the job stood still: they noticed it, or were seen, and nothing says that they ended.
RankSet alive_ranks(const std::vector<LogFact>& facts);

// Ranks whose last call, in a list of DETAIL, follows a different call than ever before.
RankSet straying_ranks(const std::vector<LogFact>& facts);

// A call with a root ends for some ranks while others wait in it. If the last call that DETAIL lists for one of these
// ranks is such a call, the rank may wait there: then ranks that name different roots are possible, too.
void doubt_calls_with_roots(const std::vector<LogFact>& facts, const RankSet& ranks, Diagnosis& diagnosis);

// Each returns null if the facts do not suffice.
std::optional<Diagnosis> judge_errors(const std::vector<LogFact>& facts);
// Judges what a supervisor saw of processes: killed, gone, stopped.
std::optional<Diagnosis> judge_ends(const std::vector<LogFact>& facts);
std::optional<Diagnosis> judge_aborts(const std::vector<LogFact>& facts);
// log_call_lists.cc.
std::optional<Diagnosis> judge_call_lists(const std::vector<LogFact>& facts);
// log_silence.cc.
std::optional<Diagnosis> judge_silence(const std::vector<LogFact>& facts);
// log_watchdog.cc.
std::optional<Diagnosis> judge_watchdog(const std::vector<LogFact>& facts);
// Of watchdogs that stood still while no call is known to have failed. Accuses no rank.
std::optional<Diagnosis> judge_stuck_watchdogs(const std::vector<LogFact>& facts);
// log_store_barrier.cc.
std::optional<Diagnosis> judge_store_barriers(const std::vector<LogFact>& facts);
// log_setup.cc: what no call is to blame for.
// Ranks whose DDP found that another one's model differs: that is not an error of their own.
RankSet ranks_that_compared(const std::vector<LogFact>& facts);
std::optional<Diagnosis> judge_shared_gpus(const std::vector<LogFact>& facts);
std::optional<Diagnosis> judge_models(const std::vector<LogFact>& facts);
// Of ranks that outlived the process that serves the store. Accuses no rank.
std::optional<Diagnosis> judge_lost_store(const std::vector<LogFact>& facts);
// Of a job that something outside it has ended. Accuses no rank.
std::optional<Diagnosis> judge_stopped_job(const std::vector<LogFact>& facts);
// log_stacks.cc.
std::optional<Diagnosis> judge_host_stacks(const std::vector<LogFact>& facts);
// Of GPUs' errors in the kernel's log, which names no ranks.
std::optional<Diagnosis> judge_devices(const std::vector<LogFact>& facts);
// These accuse no rank.
std::optional<Diagnosis> judge_logged_errors(const std::vector<LogFact>& facts);
// Of lines of NCCL, which name hosts and GPUs.
std::optional<Diagnosis> judge_nccl_failures(const std::vector<LogFact>& facts);
std::optional<Diagnosis> judge_unplaced_errors(const std::vector<LogFact>& facts);

}  // namespace rollcall::check
