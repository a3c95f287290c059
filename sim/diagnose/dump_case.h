#pragma once

// One job under investigation: its dumps, which ranks wait for which, and the words for it. The files
// dump_*.cc each look for one kind of fault; dump_judge.cc asks them in turn.

#include <optional>
#include <string>

#include "sim/diagnose/dump_waits.h"
#include "sim/report/diagnosis.h"

namespace rollcall::check {

// The advice that settles what a single moment leaves open.
inline constexpr const char* second_dump =
    "a second dump, later than the job's longest pause lasts: if the same calls are unfinished then, it "
    "hangs (--hung, if that is known)";

// Whether the dumps show that time passed without progress. They do not say when they were written.
enum class Progress : std::uint8_t {
  standstill,  // a call outlived its timeout, or the user says so
  still,       // two dumps of a rank are the same: how much time lies between them is not recorded
  assumed,     // unfinished calls only: such dumps are written on timeouts; or no states at all
  silent,      // a rank made no call for longer than ever before, as it also does when it saves a checkpoint
  unclear,     // nothing indicates either
  running,     // some dumps are older than what peers know of their ranks, or calls finished unnoticed
};

struct DumpCase {
  explicit DumpCase(const JobDump& job);

  DumpView view;
  Messages messages;
  Waits waits;
  Roots roots;
  Progress progress;
};

// Each returns a diagnosis without the common parts (victims, chain, counts), or null.
std::optional<Diagnosis> judge_join(const DumpCase& job);      // Join's hooks out of step with iterations
std::optional<Diagnosis> judge_mismatch(const DumpCase& job);  // calls that met, disagree and do not end
std::optional<Diagnosis> judge_splits(const DumpCase& job);    // all-to-alls whose sizes do not fit
std::optional<Diagnosis> judge_ended(const DumpCase& job);     // the same for calls that are over for all
// Devices that do not see the end of calls that their peers have finished, in a job at rest. Calls that their hosts
// owe, and cycles, are consequences of this.
std::optional<Diagnosis> judge_blind(const DumpCase& job);
std::optional<Diagnosis> judge_cycle(const DumpCase& job);     // ranks that wait for each other
std::optional<Diagnosis> judge_ahead(const DumpCase& job);     // an extra call that went unnoticed until now
std::optional<Diagnosis> judge_absence(const DumpCase& job);   // ranks that owe a call
std::optional<Diagnosis> judge_device(const DumpCase& job);    // all made the call, and one device is stuck
std::optional<Diagnosis> judge_lost(const DumpCase& job);      // ranks without a dump
std::optional<Diagnosis> judge_unlisted(const DumpCase& job);  // waits in groups whose members are not listed
std::optional<Diagnosis> judge_stall(const DumpCase& job);     // all made the call, and nothing moves
std::optional<Diagnosis> judge_late(const DumpCase& job);      // ranks that the others regularly wait for
Diagnosis judge_quiet(const DumpCase& job);                    // no hang: slow ranks, or no fault

inline bool stands_still(Progress progress) {
  return progress == Progress::standstill || progress == Progress::still;
}

// True if the unfinished calls may be called a hang. If progress is unclear, that takes a job in which most ranks
// wait.
bool may_hang(const DumpCase& job);

// The ranks with two dumps that have made calls between them.
RankSet ranks_with_calls_between(const JobDump& job);

// True if a call is over for some ranks while others still wait in it, and nothing says that it succeeded.
bool ended_otherwise(const DumpCase& job);

// The part of a usual step, as far as finished calls show, in which as many ranks waited for others as wait now. 0 if
// too little is known.
double share_of_waiting(const DumpCase& job);

// The progress of a job in which ranks wait.
Progress progress_of(const DumpView& view, const Waits& waits, const Roots& roots);

// A rank's operation as a report shows it. Batches and their members are named by their messages.
Call name_call(const DumpCase& job, const RankOps& ops, const DumpOp& op);
// One message of a batch, or a message.
Call name_message(const DumpCase& job, const RankOps& ops, std::uint32_t record);
// The call that holds up the ranks of a node: as a report shows it, and as its first rank recorded it.
Call name_node(const DumpCase& job, const WaitNode& node);
const DumpCall& recorded_call(const DumpCase& job, const WaitNode& node);
// The number of elements of tensors of these shapes; -1: more than can be counted.
std::int64_t elements_of(const std::vector<std::vector<std::int64_t>>& shapes);
// The same of what all members of the call pass.
std::int64_t recorded_elements(const DumpCall& call);
// "all_reduce of [4096] Float".
std::string arguments_phrase(const DumpCall& call);
// "mesh_tp", "group 7".
std::string group_phrase(const DumpGroup& group);

// The ranks of the job that left no dump.
RankSet ranks_without_dump(const JobDump& job);
// The ranks whose recorder skips messages, as Gloo's does: it does not show that they wait in one.
RankSet ranks_without_messages(const DumpCase& job);

// True if ranks made messages that their recorders counted but did not keep.
bool has_unrecorded_messages(const DumpCase& job);
RankSet ranks_of(const WaitNode& node);

// The ranks that have a node.
RankSet ranks_in(const std::map<Rank, std::size_t>& node_of);
// The members for which the call of the node, a collective, is over.
RankSet ranks_past(const DumpCase& job, const WaitNode& node);
RankSet blockers_of(const WaitNode& node);
RankSet blockers_of(const WaitNode& node, Blocker::Why why);

// Of the calls that the culprits owe, the one they would have made first: its waiters have the most open calls. On a
// tie, the call of the narrower group: narrow groups are used within a step, wide ones at its end.
const WaitNode& telling_node(const DumpCase& job, const RankSet& culprits);

// Fills `finding.at`, group and kind of call from a node, with `missing` ranks.
void set_place(const DumpCase& job, const WaitNode& node, const RankSet& missing, Diagnosis& diagnosis);
void set_group(const DumpCase& job, std::uint32_t group, Diagnosis& diagnosis);

// For ranks that have never used the node's group, although they are members.
Diagnosis never_used(const DumpCase& job, const WaitNode& node, const RankSet& outsiders);

// Compares the culprits of `diagnosis` with the smallest change under which all recorded calls could have finished, and
// names the ranks that have to change. Leaves the diagnosis of jobs with missing records alone.
void mend(const DumpCase& job, Diagnosis& diagnosis);

// What would settle whether the splits of this all-to-all fit.
std::string splits_to_compare(const Call& call);

// For an all-to-all that does not end, although its sizes may fit: the one member whose sizes differ from those of all
// others, if there is one.
std::optional<Diagnosis> suspect_splits(const DumpCase& job, const WaitNode& node);

// Adds the ranks that suffer, and how each wait leads to the culprits.
void add_victims(const DumpCase& job, Diagnosis& diagnosis);

}  // namespace rollcall::check
