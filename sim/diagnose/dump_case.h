#pragma once

// One job under investigation: its dumps, who waits for whom in them, and the words for it. The files
// dump_*.cc each look for one kind of fault; dump_judge.cc asks them in turn.

#include <optional>
#include <string>

#include "sim/diagnose/dump_waits.h"
#include "sim/report/diagnosis.h"

namespace rollcall::check {

// Settles what one moment leaves open.
inline constexpr const char* second_dump =
    "a second dump, later than the job's longest pause lasts: if the same calls are unfinished then, it hangs "
    "(--hung, if that is known)";

// Whether the dumps show that time passed without progress. They do not say when they were written.
enum class Progress : std::uint8_t {
  standstill,  // a call outlived its timeout, or two dumps of a rank are the same
  assumed,     // unfinished calls only: such dumps are written on timeouts; or no states at all
  silent,      // a rank made no call for longer than ever before. So it does when it saves a checkpoint
  unclear,     // nothing speaks for either
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

// Each returns a diagnosis without the common parts (victims, chain, counts), or nothing.
std::optional<Diagnosis> judge_join(const DumpCase& job);      // Join's hooks out of step with iterations
std::optional<Diagnosis> judge_mismatch(const DumpCase& job);  // calls that met, disagree and do not end
std::optional<Diagnosis> judge_ended(const DumpCase& job);     // and those that are over for all
// The same for the two ends of a message, or of one of a batch.
std::optional<Diagnosis> judge_message(const DumpCase& job, const WaitNode& node);
// Devices that do not see calls finish which their peers have finished, in a job at rest. What their hosts owe, and the
// cycles that come of it, follow from that.
std::optional<Diagnosis> judge_blind(const DumpCase& job);
std::optional<Diagnosis> judge_cycle(const DumpCase& job);     // ranks that wait for each other
std::optional<Diagnosis> judge_ahead(const DumpCase& job);     // a call more than the others, unnoticed until now
std::optional<Diagnosis> judge_absence(const DumpCase& job);   // ranks that owe a call
std::optional<Diagnosis> judge_device(const DumpCase& job);    // all came, and one device does not follow
std::optional<Diagnosis> judge_lost(const DumpCase& job);      // ranks without a dump
std::optional<Diagnosis> judge_unlisted(const DumpCase& job);  // in groups whose members nobody lists
std::optional<Diagnosis> judge_stall(const DumpCase& job);     // all came, nothing moves
std::optional<Diagnosis> judge_late(const DumpCase& job);      // ranks that the others regularly wait for
Diagnosis judge_quiet(const DumpCase& job);                    // nobody waits: slow ranks, or no fault

// Whether what is unfinished may be called a hang. Where progress is unclear, only a job of which the larger
// part waits.
bool may_hang(const DumpCase& job);

// Some ranks know a call to be over in which others still wait, and nothing says that it succeeded.
bool ended_otherwise(const DumpCase& job);

// For how large a part of a usual step, as far as finished calls show, as many ranks waited for others as wait now. 0:
// too little is known.
double share_of_waiting(const DumpCase& job);

// Progress where somebody waits.
Progress progress_of(const DumpView& view, const Waits& waits, const Roots& roots);

// A rank's operation as a report shows it. Batches and their members are named by their messages.
Call name_call(const DumpCase& job, const RankOps& ops, const DumpOp& op);
// One message of a batch, or a message.
Call name_message(const DumpCase& job, const RankOps& ops, std::uint32_t record);
// What the ranks of a node are held up by.
Call name_node(const DumpCase& job, const WaitNode& node);
// Of all inputs together; -1: more than can be counted.
std::int64_t recorded_elements(const DumpCall& call);
// "all_reduce of [4096] Float".
std::string arguments_phrase(const DumpCall& call);
// "mesh_tp", "group 7".
std::string group_phrase(const DumpGroup& group);

// Members of groups that left none.
RankSet ranks_without_dump(const JobDump& job);
// Their recorder passes over messages, and so over ranks that wait in one.
RankSet ranks_of_gloo(const DumpCase& job);
RankSet ranks_of(const WaitNode& node);
RankSet blockers_of(const WaitNode& node);

// Fills `finding.at`, group and kind of call from a node, with `culprits` missing.
void set_place(const DumpCase& job, const WaitNode& node, const RankSet& missing, Diagnosis& diagnosis);
void set_group(const DumpCase& job, std::uint32_t group, Diagnosis& diagnosis);

// Who suffers, and how each wait leads to the culprits.
void add_victims(const DumpCase& job, Diagnosis& diagnosis);

}  // namespace rollcall::check
